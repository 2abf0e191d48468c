"""Finished stages that no study refers to."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from fairweight.base import locks
from fairweight.base.files import atomic_file
from fairweight.errors import InputError, UnknownNameError
from fairweight.runs import store_layout

# Which stages studies refer to: what is referred to is never removed.

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,150}")


def register(root: Path, study: str, keys: Collection[str]) -> None:
    """Say which stages a study refers to; replaces what it said before."""
    if not _NAME.fullmatch(study):
        raise InputError(
            f"The study's name '{study}' cannot be kept; use letters, digits and . _ - @ +, "
            f"beginning with a letter or digit."
        )
    when = datetime.now(UTC).isoformat(timespec="seconds")
    record = {"study": study, "registered": when, "keys": sorted(set(keys))}
    with (
        locks.held(store_layout.studies_lock(root), wait=True),
        atomic_file(store_layout.study(root, study)) as stream,
    ):
        json.dump(record, stream)


def registered(root: Path) -> dict[str, list[str]]:
    """Keys that each study refers to.

    A record that cannot be read is an error: what it refers to would look like garbage.
    """
    try:
        names = sorted(os.listdir(store_layout.studies(root)))
    except FileNotFoundError:
        return {}
    return {
        name.removesuffix(".json"): _keys(store_layout.studies(root) / name)
        for name in names
        if name.endswith(".json") and not name.startswith(".")
    }


def unregister(root: Path, study: str) -> None:
    with locks.held(store_layout.studies_lock(root), wait=True):
        known = registered(root)
        if study not in known:
            raise UnknownNameError("The study", study, known)
        store_layout.study(root, study).unlink()


def referred(root: Path) -> set[str]:
    """Keys that any study refers to, itself or through the inputs of finished stages."""
    reached: set[str] = set()
    ahead = {key for keys in registered(root).values() for key in keys}
    while ahead:
        reached |= ahead
        ahead = {one for key in ahead for one in _inputs(root, key)} - reached
    return reached


def _keys(path: Path) -> list[str]:
    with suppress(ValueError, KeyError, TypeError):
        return [str(key) for key in json.loads(path.read_text(encoding="utf-8"))["keys"]]
    raise InputError(
        f"'{path}' cannot be read, so what its study refers to is unknown; run the study again "
        f"to write it anew, or delete the file if nobody wants the study any more."
    )


def _inputs(root: Path, key: str) -> list[str]:
    # A stage that is not done, or damaged, has no inputs to protect: they are referred to by
    # the study itself.
    with suppress(OSError, ValueError, KeyError, TypeError):
        content = json.loads(store_layout.manifest(root, key).read_text(encoding="utf-8"))
        return [str(one) for one in content["inputs"]]
    return []


def garbage(root: Path) -> list[tuple[str, int]]:
    """Keys that no study refers to, itself or through inputs, with their bytes."""
    unused = sorted(store_layout.done(root) - referred(root))
    return [(key, store_layout.size_bytes(store_layout.stage(root, key))) for key in unused]


def remove(root: Path, keys: Iterable[str]) -> None:
    """Remove finished stages, each at once; refuses all if a study refers to any of them."""
    wanted = set(keys)
    # No study can be registered between the look and the removal.
    with locks.held(store_layout.studies_lock(root), wait=True):
        kept = sorted(wanted & referred(root))
        if kept:
            raise InputError(
                f"{len(kept)} of {len(wanted)} stages are referred to by a study, the first is "
                f"{kept[0]}; remove only what 'garbage' lists."
            )
        for key in sorted(wanted & store_layout.done(root)):
            store_layout.discard(root, key, store_layout.stage(root, key))


# Folders that serve nobody any more: old half-done work, rooms of the dead, damaged stages.


def leftovers(root: Path) -> list[tuple[Path, int]]:
    """Folders with their bytes."""
    return [(folder, store_layout.size_bytes(folder)) for folder in _unused(root)]


def clear(root: Path, folders: Iterable[Path]) -> None:
    """Remove folders that `leftovers` listed, except those that are in use by now."""
    with locks.held(store_layout.studies_lock(root), wait=True):
        unused = set(_unused(root))
        for folder in unused.intersection(map(Path, folders)):
            if folder.parent == store_layout.rooms(root):
                store_layout.clear(root, folder.name)
            elif folder.parent == store_layout.damages(root):
                shutil.rmtree(folder, ignore_errors=True)
            else:
                with store_layout.claim(root, folder.name) as ours:
                    if ours:
                        shutil.rmtree(folder, ignore_errors=True)


def _unused(root: Path) -> Iterator[Path]:
    finished, wanted = store_layout.done(root), referred(root)
    for key in _names(store_layout.works(root)):
        if (key in finished or key not in wanted) and not store_layout.is_claimed(root, key):
            yield store_layout.work(root, key)
    for name in store_layout.abandoned(root):
        yield store_layout.room(root, name)
    for name in _names(store_layout.damages(root)):
        yield store_layout.damages(root) / name


def _names(folder: Path) -> list[str]:
    with suppress(FileNotFoundError):
        return sorted(os.listdir(folder))
    return []
