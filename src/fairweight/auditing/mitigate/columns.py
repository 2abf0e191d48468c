"""Through which columns a curve looks at the examples, and which side of each is watched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.counts.cube import GroupColumn
from fairweight.auditing.counts.stats import Counts, Floats
from fairweight.auditing.metrics.amplification import Sides, sides_of
from fairweight.tables.names import grouping_name


@dataclass(frozen=True)
class Column:
    """Everybody (without a name), or the levels of a column."""

    name: str | None
    code: NDArray[np.int64]  # (n,)
    levels: tuple[str | None, ...]
    judged: NDArray[np.bool_]  # (levels,) known and large enough
    sides: Sides | None  # of bias amplification; None where no identity is estimable


def columns_of(answers: Answers, min_group: int) -> tuple[Column, ...]:
    """Everybody, then every single column among the groupings."""
    nobody = np.zeros(answers.n_examples, dtype=np.int64)
    found = [Column(None, nobody, ("",), np.ones(1, dtype=np.bool_), None)]
    for column in answers.columns:
        if grouping_name([column.name]) not in answers.groupings:
            continue
        size = np.bincount(column.code, minlength=len(column.values))
        known = np.array([value is not None for value in column.values])
        found.append(
            Column(
                column.name,
                column.code.astype(np.int64),
                column.values,
                known & (size >= min_group),
                _sides(answers, column),
            )
        )
    return tuple(found)


def _sides(answers: Answers, column: GroupColumn) -> Sides | None:
    """Each level against the rest; the missing level takes no part."""
    if answers.positive is None:
        return None
    label = np.zeros((len(column.values), answers.n_label_classes))
    np.add.at(label, (column.code, answers.label), 1.0)
    known = np.array([value is not None for value in column.values])
    if known.sum() < 2:
        return None
    train = _training(answers, column)
    kept = sides_of(
        _labels(label[known], answers), None if train is None else _labels(train[known], answers)
    )
    if not kept.estimable.any():
        return None
    if known.all():
        return kept
    toward, estimable = np.zeros((2, len(known)), dtype=np.bool_)
    toward[known], estimable[known] = kept.toward, kept.estimable
    reasons = iter(kept.reason)
    return Sides(
        toward,
        estimable,
        tuple(next(reasons) if is_known else "missing" for is_known in known),
        kept.from_training,
    )


def _training(answers: Answers, column: GroupColumn) -> Floats | None:
    table = answers.train
    if table is None or column.name not in table or table.empty:
        return None
    label = np.zeros((len(column.values), answers.n_label_classes))
    level = {name: i for i, name in enumerate(column.values)}
    place = {name: i for i, name in enumerate(answers.classes[: answers.n_label_classes])}
    for value, cls, n in zip(table[column.name], table["label"], table["n"], strict=True):
        if value in level and cls in place:  # what the test data lack cannot be asked about
            label[level[value], place[cls]] += float(n)
    return label


def _labels(label: Floats, answers: Answers) -> Counts:
    zero = np.zeros_like(label)
    classes = answers.classes[: answers.n_label_classes]
    return Counts(label, zero, zero, zero[:, 0], classes, answers.positive)
