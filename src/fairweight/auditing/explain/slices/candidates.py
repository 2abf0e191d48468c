"""All slices that are large enough, with what each of them is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import MIN_CLUSTERS
from fairweight.auditing.explain.slices.contrasts import (
    AnyContrast,
    Half,
    OutcomeContrast,
    OutcomeHalf,
    cell_contrasts,
    joined_contrasts,
)
from fairweight.auditing.prediction_matrix import Answers
from fairweight.base.types import Floats
from fairweight.errors import UnknownNameError
from fairweight.tables.names import level_name

# Numbers as levels: quantile bins, named by the values they hold.

_DIGITS = range(3, 18)  # 17 significant digits tell any two numbers apart


def quantile_bins(values: Floats, bins: int) -> tuple[tuple[str | None, ...], NDArray[np.int32]]:
    """Levels and codes of a numeric column, None and the last code for missing values.

    Parameters
    ----------
    values
        NaN is missing.
    bins
        How many bins of about equal size. Equal values are never parted, so that there are fewer
        where many are equal.

    Examples
    --------
    >>> quantile_bins(np.array([1.0, 2.0, 3.0, 4.0, np.nan]), 2)
    (('1 to 2', '3 to 4', None), array([0, 0, 1, 1, 2], dtype=int32))
    """
    known = ~np.isnan(values)
    if not known.any():
        return (None,), np.zeros(values.size, dtype=np.int32)
    given = values if known.all() else values[known]
    inner = np.arange(1, bins) / bins
    # Quantiles that are values of the column: no arithmetic, so infinities are values too.
    uppers = np.unique(np.quantile(given, inner, method="inverted_cdf"))
    place = np.searchsorted(uppers, given, side="left")
    used, code = np.unique(place, return_inverse=True)
    least = np.full(used.size, np.inf)
    most = np.full(used.size, -np.inf)
    np.minimum.at(least, code, given)
    np.maximum.at(most, code, given)
    ends = np.unique(np.concatenate([least, most]))
    for digits in _DIGITS:  # as few as keep the ends apart
        shown = {float(end): f"{end + 0.0:.{digits}g}" for end in ends}
        if len(set(shown.values())) == ends.size:
            break
    pairs = zip(least.tolist(), most.tolist(), strict=True)
    levels = tuple(shown[a] if a == b else f"{shown[a]} to {shown[b]}" for a, b in pairs)
    full = np.full(values.size, used.size, dtype=np.int32)
    full[known] = code
    return (levels, full) if known.all() else ((*levels, None), full)


# The columns that slices are made of, as small codes.

Small = NDArray[np.unsignedinteger[Any]]
LABEL = "label"


@dataclass(frozen=True)
class SliceColumn:
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
) -> list[SliceColumn]:
    """The named columns that have a level of at least `min_size` examples.

    `label` stands for the class, unless there is such a column.
    """
    groups = {column.name: (column.values, column.code) for column in answers.columns}
    found = []
    values: Sequence[str | None]
    for name in dict.fromkeys(names):
        if name in groups:
            values, code = groups[name]
        elif name in answers.numbers:
            values, code = quantile_bins(answers.numbers[name], bins)
        elif name == LABEL:
            values, code = answers.classes, answers.label.astype(np.int32)
        else:
            raise UnknownNameError("Column", name, [*searchable(answers), LABEL])
        large = np.flatnonzero(np.bincount(code, minlength=len(values)) >= min_size)
        if large.size:
            place = np.full(len(values), large.size, dtype=np.min_scalar_type(large.size))
            place[large] = np.arange(large.size)
            levels = tuple(level_name(name, values[i]) for i in large)
            found.append(SliceColumn(name, levels, place[code]))
    return found


# Slices with a larger common share (Jaccard) are nearly the same examples.
SAME = 0.8


@dataclass(frozen=True)
class Slice:
    """A level of a column, or the examples that two levels have in common."""

    columns: tuple[int, ...]
    levels: tuple[int, ...]

    def name(self, columns: Sequence[SliceColumn]) -> str:
        pairs = zip(self.columns, self.levels, strict=True)
        return " & ".join(columns[i].levels[level] for i, level in pairs)

    def members(self, columns: Sequence[SliceColumn]) -> NDArray[np.bool_]:
        """Which examples belong to it, (n,)."""
        inside = np.ones(columns[0].code.size, dtype=np.bool_)
        for i, level in zip(self.columns, self.levels, strict=True):
            inside &= columns[i].code == level
        return inside


@dataclass(frozen=True)
class Candidates:
    """Every tested slice: levels of single columns first, then pairs."""

    slices: tuple[Slice, ...]
    n: NDArray[np.int64]  # examples, both halves together
    everyone: AnyContrast  # against all others
    parents: tuple[AnyContrast, ...]  # pairs only: within the first level, within the second

    @property
    def n_single(self) -> int:
        return len(self.slices) - self.parents[0].excess.size if self.parents else len(self.slices)


def candidates(
    columns: Sequence[SliceColumn],
    discovery: NDArray[np.bool_],
    half: Half | OutcomeHalf,
    *,
    pairs: bool,
    min_size: int,
    clustered: bool,
) -> Candidates | None:
    """Slices chosen by their sizes alone, never by results; None where there is none.

    Parameters
    ----------
    columns
        Of all examples.
    discovery
        Which of them are in the discovery half.
    half
        The changes of the discovery half.
    pairs
        Whether levels of two columns are combined.
    min_size
        Least examples of a slice and of all others, both halves together.
    clustered
        A slice, and what it is compared with, then also needs 20 clusters in the discovery half.

    Notes
    -----
    A pair that holds more than four fifths of one of its parents is nearly that parent, and no
    slice of its own.
    """
    codes = [(column.code[discovery], column.code[~discovery]) for column in columns]
    places: list[tuple[int, ...]] = [(i,) for i in range(len(columns))]
    if pairs:
        places += list(combinations(range(len(columns)), 2))
    slices: list[Slice] = []
    sizes: list[NDArray[np.int64]] = []
    contrasts: tuple[list[AnyContrast], ...] = ([], [], [])
    for place in places:
        shape = (columns[place[0]].width, columns[place[1]].width if len(place) == 2 else 1)
        here, there = (_cells([codes[i][side] for i in place], shape) for side in (0, 1))
        against = list(cell_contrasts(half, here, shape, within=len(place) == 2))
        n = np.bincount(there, minlength=shape[0] * shape[1]).reshape(shape)
        first = against[0]
        if isinstance(first, OutcomeContrast):
            n = (n + first.size).astype(np.int64)
        elif isinstance(half, Half) and half.weight is None:
            n = (n + first.inside.size).astype(np.int64)
        else:
            n = n + np.bincount(here, minlength=shape[0] * shape[1]).reshape(shape)
        keep: NDArray[np.bool_] = (n >= min_size) & (n.sum() - n >= min_size)
        keep[-1, :] = False  # everyone whose level is too small: no level of its own
        if len(place) == 2:
            keep[:, -1] = False
            for axis in (0, 1):
                keep &= n <= SAME * n.sum(axis=axis, keepdims=True)
        if clustered:
            fewest = [c.degrees + 1 for c in against if c.degrees is not None]
            keep &= np.min(fewest, axis=0) >= MIN_CLUSTERS
        at = np.nonzero(keep)
        if at[0].size:
            cells = zip(*(index.tolist() for index in at[: len(place)]), strict=True)
            slices += [Slice(place, cell) for cell in cells]
            sizes.append(n[at])
            for kind, contrast in zip(contrasts, against, strict=False):
                kind.append(contrast.at(at))
    if not slices:
        return None
    everyone, *parents = (joined_contrasts(kind) for kind in contrasts if kind)
    return Candidates(tuple(slices), np.concatenate(sizes), everyone, tuple(parents))


def _cells(codes: list[NDArray[Any]], shape: tuple[int, int]) -> NDArray[Any]:
    """The flat place of every example in the table of one or two columns."""
    if len(codes) == 1:
        return codes[0]
    # The narrowest type that holds every place: counting is bound by memory.
    kind = np.min_scalar_type(shape[0] * shape[1])
    flat = codes[0].astype(kind)
    flat *= kind.type(shape[1])
    flat += codes[1].astype(kind, copy=False)
    return flat
