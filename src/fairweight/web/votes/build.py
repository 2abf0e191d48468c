"""The index of an item's votes: built once, found again as long as its files are the same."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fairweight
from fairweight.errors import InputError
from fairweight.report.bundle import cache_folder
from fairweight.tables.paths import find_files
from fairweight.web.item import Item
from fairweight.web.votes.write import FORMAT, INDEX, Progress, write_index

if TYPE_CHECKING:
    from fairweight.auditing.answers import Answers
    from fairweight.tables.align import Aligned


def indexed(item: Item, progress: Progress | None = None) -> Path:
    """The folder with an item's index, which is built where it is not there yet."""
    folder = index_folder(item)
    if not (folder / INDEX).is_file():
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds all predictions
        build_index(item, folder, progress)
        _remove_older(folder)
    return folder


def build_index(item: Item, folder: Path, progress: Progress | None = None) -> None:
    """Read an item's predictions and write their index, whole or not at all."""
    from fairweight.tables.align import align

    if item.predictions is None:
        raise InputError(
            f"'{item.title}' has no prediction table, so single examples cannot be shown; put the "
            "tables beside the audit (predictions.parquet), or name them."
        )
    if progress is not None:
        progress("reading predictions", 0, 1)
    aligned = align(
        item.predictions,
        examples=item.examples,
        variants=item.variants,
        **dict(item.columns),
        further=True,
    )
    with aligned:
        write_index(
            _answers(aligned, item.positive),
            folder,
            cluster=item.columns.get("cluster"),
            notes=aligned.notes,
            progress=progress,
        )


def index_folder(item: Item) -> Path:
    """Where the index is kept: named by where the tables are, and by what they were like."""
    files = [file for given in _sources(item) for file in _files(given)]
    where = [str(file.resolve()) for file in files]
    facts = [(name, *_facts(Path(name))) for name in where]
    asked = {"columns": dict(item.columns), "positive": item.positive}
    like = [fairweight.__version__, FORMAT, facts, asked]
    return cache_folder() / "views" / f"{_digest([where, asked])}-{_digest(like)}"


def _answers(aligned: Aligned, positive: str | None) -> Iterator[Answers]:
    """Task by task, so that only one of them is in memory."""
    from fairweight.auditing.answers import from_aligned, tasks_of

    for task in tasks_of(aligned):
        yield from_aligned(aligned, task, positive=None if aligned.has_task else positive)


def _sources(item: Item) -> list[str]:
    given = item.predictions if isinstance(item.predictions, list | tuple) else [item.predictions]
    beside = [text for text in (item.examples, item.variants) if text is not None]
    return [*(str(text) for text in given if text is not None), *beside]


def _files(given: str) -> tuple[Path, ...]:
    """The files of a source; `NAME=FILE` is a file with a name."""
    _, equals, file = given.partition("=")
    return find_files(file if equals and not Path(given).exists() else given).files


def _facts(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns


def _digest(held: Any) -> str:
    text = json.dumps(held, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _remove_older(folder: Path) -> None:
    """Indexes of the same tables as they were before; who has one open keeps it."""
    place, _, _ = folder.name.partition("-")
    for other in folder.parent.glob(f"{place}-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
