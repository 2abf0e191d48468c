"""The columns that slices are made of, as small codes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.counts.groupings import level_name
from fairweight.auditing.explain.slices.binning import quantile_bins
from fairweight.errors import UnknownNameError

Small = NDArray[np.unsignedinteger[Any]]
LABEL = "label"


@dataclass(frozen=True)
class Column:
    """Levels that are large enough to be slices; everyone else has the code len(levels)."""

    name: str
    levels: tuple[str, ...]  # as results show them: "sex=Female"
    code: Small  # (n,)

    @property
    def width(self) -> int:
        return len(self.levels) + 1


def searchable(answers: Answers) -> list[str]:
    """All group columns, then all numeric ones."""
    groups = [column.name for column in answers.columns]
    return [*groups, *(name for name in answers.numbers if name not in groups)]


def chosen_columns(
    answers: Answers, names: Iterable[str], bins: int, min_size: int
) -> list[Column]:
    """The named columns that have a level of at least `min_size` examples.

    `label` stands for the class, unless there is such a column.
    """
    groups = {column.name: (column.values, column.code) for column in answers.columns}
    found = []
    for name in dict.fromkeys(names):
        if name in groups:
            values, code = groups[name]
        elif name in answers.numbers:
            values, code = quantile_bins(answers.numbers[name], bins)
        elif name == LABEL:
            values, code = answers.classes, answers.label.astype(np.int32)
        else:
            raise UnknownNameError("Column", name, [*searchable(answers), LABEL])
        found.append(_column(name, values, code, min_size))
    return [column for column in found if column.levels]


def _column(
    name: str, values: Iterable[str | None], code: NDArray[np.int32], min_size: int
) -> Column:
    levels = [level_name(name, value) for value in values]
    kept = np.flatnonzero(np.bincount(code, minlength=len(levels)) >= min_size)
    kind = np.min_scalar_type(kept.size)
    place = np.full(len(levels), kept.size, dtype=kind)
    place[kept] = np.arange(kept.size)
    return Column(name, tuple(levels[i] for i in kept), place[code])
