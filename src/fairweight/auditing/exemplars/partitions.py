"""The partitions of the examples that rows speak of: classes, group levels, intersections."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.counts.cube import Codes, Cube
from fairweight.auditing.counts.groupings import groupings, level_name


@dataclass(frozen=True)
class Partition:
    """Disjoint parts that hold every example between them."""

    kind: str  # class, group, intersection: the families of corrections
    levels: tuple[str, ...]
    code: Codes  # (n,) into levels
    missing: NDArray[np.bool_]  # (levels,): stands for missing values
    columns: tuple[str, ...] = ()  # group columns; () for classes

    @property
    def by(self) -> str:
        return "class" if self.kind == "class" else "group"

    def place(self, level: int) -> dict[str, str | None]:
        """The columns `by`, `group` and `class` of a level's row."""
        name = self.levels[level]
        return {
            "by": self.by,
            "group": None if self.by == "class" else name,
            "class": name if self.by == "class" else None,
        }


def partitions(answers: Answers) -> tuple[Partition, ...]:
    """By class, and by every grouping that was asked for."""
    labels = answers.classes[: answers.n_label_classes]
    by_class = Partition(
        "class", labels, answers.label.astype(np.int32), np.zeros(len(labels), dtype=bool)
    )
    n = answers.n_examples
    rows = Cube(  # one cell per example and no member: what `groupings` looks at
        members=(),
        label_classes=answers.classes,
        other_classes=(),
        columns=answers.columns,
        tasks=(),
        label=by_class.code,
        prediction=np.zeros((n, 0), dtype=np.int32),
        count=np.ones(n, dtype=np.int64),
        n_examples=n,
    )
    by_group = tuple(
        Partition(
            "group" if found.single else "intersection",
            found.levels,
            found.code,
            found.missing,
            found.columns,
        )
        for found in groupings(rows, answers.groupings)
    )
    return by_class, *by_group


def training_sizes(answers: Answers, partition: Partition) -> NDArray[np.float64] | None:
    """Training examples in each level; None where the training table cannot tell."""
    train = answers.train
    if train is None or any(name not in train for name in partition.columns) or train.empty:
        return None
    if partition.columns:
        texts = [[level_name(name, value) for value in train[name]] for name in partition.columns]
        names = [" & ".join(parts) for parts in zip(*texts, strict=True)]
    else:
        names = [str(value) for value in train["label"]]
    place = {name: i for i, name in enumerate(partition.levels)}
    sizes = np.zeros(len(partition.levels))
    for name, n in zip(names, train["n"], strict=True):
        if name in place:  # levels that the test data do not have cannot be asked about
            sizes[place[name]] += float(n)
    return sizes
