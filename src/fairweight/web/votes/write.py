"""Answers of a task as files that are mapped, not read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.tables.write import atomic_directory
from fairweight.web.votes.columns import (
    group_codes,
    member_scores,
    narrowest,
    partners,
    side_columns,
    variant_columns,
)
from fairweight.web.votes.texts import write_texts

Progress = Callable[[str, int, int], None]

INDEX = "index.json"
FORMAT = 1
MOST_FULL_SCORES = 2**26  # scores up to which they keep four bytes each; beyond it two
HIDDEN = frozenset({"image", "image_path"})  # texts that are shown as images


@dataclass(frozen=True)
class TaskHead:
    """What is known of a task without its arrays."""

    name: str | None
    n_examples: int
    classes: tuple[str, ...]
    n_label_classes: int
    positive: int | None
    baseline: str
    variants: tuple[str, ...]
    members: tuple[tuple[str, str], ...]  # variant, seed
    partners: tuple[int | None, ...]  # of every member, the row of the baseline's it comes from
    scales: tuple[int, ...]  # of every variant, what its votes add up to
    groups: tuple[str, ...]
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    integer_ids: bool
    scored: bool


def write_index(
    tasks: Iterable[Answers],
    folder: Path,
    *,
    cluster: str | None = None,
    notes: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> None:
    """Write the index of one or several tasks; whole or not at all.

    Parameters
    ----------
    cluster
        What the clusters of the answers are called; they become a group column.
    progress
        Called with words, what is done and what there is to do.
    """
    heads: list[TaskHead] = []
    told: dict[str, None] = dict.fromkeys(notes)
    with atomic_directory(folder, completion=(INDEX,)) as room:
        for number, answers in enumerate(tasks):
            place = room / str(number)
            place.mkdir()
            heads.append(_write_task(answers, place, cluster, progress))
            told |= dict.fromkeys(answers.notes)
        held = {
            "format": FORMAT,
            "tasks": [asdict(head) for head in heads],
            "notes": list(told),
        }
        (room / INDEX).write_text(json.dumps(held), encoding="utf-8")


def _write_task(
    answers: Answers, folder: Path, cluster: str | None, progress: Progress | None
) -> TaskHead:
    steps = len(answers.variants) + 2
    told = "indexing votes" if answers.task is None else f"indexing votes of {answers.task}"

    def step(done: int) -> None:
        if progress is not None:
            progress(told, done, steps)

    step(0)
    scores = member_scores(answers)
    _save(folder, "label", answers.label)
    _save(folder, "prediction", answers.prediction)
    if scores is not None:
        kind = np.float32 if scores.size <= MOST_FULL_SCORES else np.float16
        _save(folder, "score", scores.astype(kind, copy=False))
    groups = _write_groups(answers, folder, cluster)
    texts = {name: v for name, v in answers.texts.items() if name not in HIDDEN}
    for i, values in enumerate(answers.numbers.values()):
        _save(folder, f"number{i}", values)
    for i, named in enumerate(texts.values()):
        write_texts(folder / f"text{i}.arrow", named.tolist())
    integer_ids = _write_ids(answers, folder)
    scales = _write_sides(answers, folder, step)
    step(steps)
    return TaskHead(
        name=answers.task,
        n_examples=answers.n_examples,
        classes=answers.classes,
        n_label_classes=answers.n_label_classes,
        positive=answers.positive,
        baseline=answers.baseline,
        variants=answers.variants,
        members=tuple((m.variant, m.seed) for m in answers.members),
        partners=tuple(partners(answers)),
        scales=scales,
        groups=groups,
        numbers=tuple(answers.numbers),
        texts=tuple(texts),
        integer_ids=integer_ids,
        scored=scores is not None,
    )


def _write_sides(answers: Answers, folder: Path, step: Callable[[int], None]) -> tuple[int, ...]:
    """Columns of the baseline (number 0) and of every variant."""
    scales = []
    for number, variant in enumerate((answers.baseline, *answers.variants)):
        columns = side_columns(answers, variant)
        if number:
            more, scale = variant_columns(answers, variant, columns["bits"])
            columns |= more
            scales.append(scale)
        for name, values in columns.items():
            _save(folder, f"{name}{number}", values)
        step(number + 1)
    return tuple(scales)


def _write_groups(answers: Answers, folder: Path, cluster: str | None) -> tuple[str, ...]:
    names: list[str] = []
    for name, levels, codes in group_codes(answers):
        _save(folder, f"group{len(names)}", codes)
        write_texts(folder / f"level{len(names)}.arrow", levels)
        names.append(name)
    if cluster is not None and cluster not in names and answers.cluster is not None:
        _save(
            folder,
            f"group{len(names)}",
            answers.cluster.astype(narrowest(len(answers.cluster_names))),
        )
        write_texts(folder / f"level{len(names)}.arrow", answers.cluster_names)
        names.append(cluster)
    return tuple(names)


def _write_ids(answers: Answers, folder: Path) -> bool:
    """Identities; whole numbers stay numbers, others become text with the order that sorts it."""
    ids = answers.example_id
    if ids is None:
        ids = np.arange(answers.n_examples)
    if ids.dtype.kind in "iu":
        _save(folder, "id", ids)
        return True
    texts = [str(value).encode("utf-8", "replace").decode("utf-8") for value in ids.tolist()]
    write_texts(folder / "id.arrow", texts)
    order = sorted(range(len(texts)), key=texts.__getitem__)
    _save(folder, "id_order", np.array(order, dtype=np.uint32))
    return False


def _save(folder: Path, name: str, values: NDArray[Any]) -> None:
    np.save(folder / f"{name}.npy", np.ascontiguousarray(values), allow_pickle=False)
