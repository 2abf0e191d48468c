"""Cube × grouping → Counts: once for the data as they are, thousands of times for replicates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.groupings import Grouping, joint_slices
from fairweight.auditing.counts.stats import Counts, Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROUNDING = 1e-12  # share of a class's weight below which right answers are rounding errors
EXACT_SINGLE = 2**24  # whole numbers below it are exact in single precision, which is faster


@dataclass(frozen=True)
class Layout:
    """Where the counts of one grouping stand in a flat vector of statistics.

    label (S, C), then for every member missed (S, C), false (S, C) and abstained (S). Only errors
    are counted: right answers are what is left of the labels, and models are mostly right, so a
    replicate of sixty members costs a tenth of counting every answer.
    """

    n_slices: int
    n_classes: int
    n_members: int
    start: int
    exact: bool  # whole numbers: differences of sums have no rounding errors

    @property
    def size(self) -> int:
        cells = self.n_slices * self.n_classes
        return cells + self.n_members * (2 * cells + self.n_slices)

    def read(self, flat: Floats, members: slice, like: Counts) -> Counts:
        """Counts with shape (..., members, S, C) from flat statistics (..., total)."""
        s, c = self.n_slices, self.n_classes
        lead = flat.shape[:-1]
        at = self.start
        label = flat[..., at : at + s * c].reshape(*lead, 1, s, c)
        at += s * c
        block = 2 * s * c + s
        parts = flat[..., at : at + self.n_members * block].reshape(*lead, self.n_members, block)
        parts = parts[..., members, :]
        k = parts.shape[-2]
        missed = parts[..., : s * c].reshape(*lead, k, s, c)
        false = parts[..., s * c : 2 * s * c].reshape(*lead, k, s, c)
        correct = label - missed
        if not self.exact:
            correct = np.where(correct < ROUNDING * label, 0.0, correct)
        return Counts(
            label=np.broadcast_to(label, correct.shape),
            predicted=correct + false,
            correct=correct,
            abstained=parts[..., 2 * s * c :],
            classes=like.classes,
            positive=like.positive,
        )


class Tally:
    """Counts of chosen members in several groupings, of the data or of any reweighting of items.

    An item is what a bootstrap draws: a cell (of `multiplicity` equal examples), or a unit
    (cluster) with all its examples. Every statistic is linear in how often each item is drawn, so
    a replicate is one sparse product.
    """

    def __init__(
        self,
        cube: Cube,
        groupings: Sequence[Grouping],
        members: Sequence[int],
        *,
        positive: int | None,
    ) -> None:
        from scipy.sparse import csr_array

        self.members = tuple(members)
        self.groupings = tuple(groupings)
        classes = cube.label_classes
        nothing = np.zeros(0)
        self._like = Counts(nothing, nothing, nothing, nothing, classes, positive)
        self.layouts: list[Layout] = []
        start = 0
        for grouping in groupings:
            layout = Layout(
                len(grouping.levels), len(classes), len(members), start, cube.weight is None
            )
            self.layouts.append(layout)
            start += layout.size
        self.size = start
        fine, self._spread = _matrices(cube, self.groupings, self.layouts, self.members, self.size)
        self._cell_count = cube.count
        self._per_cell = fine
        self._single: csr_array | None = None
        if cube.unit is None:
            self.multiplicity = cube.count
            self._per_item = fine
            if cube.weight is None:
                self._single = csr_array(
                    (fine.data.astype(np.float32), fine.indices, fine.indptr), shape=fine.shape
                )
        else:
            n_units = len(cube.unit_names)
            self.multiplicity = np.ones(n_units, dtype=np.int64)
            self._per_item = fine @ _units_by_cell(cube, n_units)

    def observed(self) -> list[Counts]:
        """Counts of the data, shape (members, S, C), one per grouping."""
        flat = self._spread @ (self._per_cell @ self._cell_count.astype(np.float64))
        return [self._read(flat, i) for i in range(len(self.layouts))]

    def flat(self, weights: NDArray[Any]) -> Floats:
        """Flat statistics (R, size) under weights (R, items).

        Replicates are the fastest axis in memory: sums over classes, members and slices then run
        along them, several times faster than along a handful of classes.
        """
        return self._product(self._per_item, weights, self._single)

    def flat_of(self, items: NDArray[np.intp]) -> Callable[[NDArray[Any]], Floats]:
        """As `flat`, of chosen items alone: a function of their weights (R, chosen)."""
        if len(items) == self._per_item.shape[1]:
            return self.flat
        chosen = self._per_item[:, items]
        return lambda weights: self._product(chosen, weights)

    def _product(
        self, per_item: csr_array, weights: NDArray[Any], single: csr_array | None = None
    ) -> Floats:
        """Single precision only where every sum is a whole number that it holds exactly."""
        whole = weights.dtype.kind in "iu"
        if single is not None and whole and int(weights.sum(axis=1).max(initial=0)) < EXACT_SINGLE:
            fine = single @ np.ascontiguousarray(weights.T, dtype=np.float32)
        else:
            fine = per_item @ np.ascontiguousarray(weights.T, dtype=np.float64)
        made: Floats = (self._spread @ fine).T
        return made

    def read(self, flat: Floats) -> list[Counts]:
        return [self._read(flat, i) for i in range(len(self.layouts))]

    def _read(self, flat: Floats, i: int) -> Counts:
        return self.layouts[i].read(flat, slice(None), self._like)


def _matrices(
    cube: Cube,
    groupings: Sequence[Grouping],
    layouts: Sequence[Layout],
    members: Sequence[int],
    size: int,
) -> tuple[csr_array, csr_array]:
    """What one example of each cell adds, (fine, cells), and what that adds to, (size, fine).

    Every error is counted once, in the finest slices that the groupings make together, and the
    few sums of those are then added up for every grouping.
    """
    from scipy.sparse import coo_array

    n_classes = len(cube.label_classes)
    joint, slices = joint_slices(groupings)
    everyone = np.arange(cube.n_cells)
    width = 1 + 3 * len(members)  # labels; missed, false and abstained of every member
    at = joint * width
    keys: list[NDArray[np.int64]] = [at * n_classes + cube.label]
    cells: list[NDArray[np.intp]] = [everyone]
    for m, member in enumerate(members):
        start = 1 + 3 * m
        wrong = np.flatnonzero(cube.prediction[:, member] != cube.label)
        prediction = cube.prediction[wrong, member]
        keys.append((at[wrong] + start) * n_classes + cube.label[wrong])
        cells.append(wrong)
        known = (prediction >= 0) & (prediction < n_classes)
        keys.append((at[wrong[known]] + start + 1) * n_classes + prediction[known])
        cells.append(wrong[known])
        silent = wrong[prediction < 0]
        keys.append((at[silent] + start + 2) * n_classes)
        cells.append(silent)
    cell = np.concatenate(cells)
    used, row = _numbered(np.concatenate(keys), len(slices) * width * n_classes)
    value = np.ones(len(cell)) if cube.weight is None else cube.weight[cell]
    fine = coo_array((value, (row, cell)), shape=(len(used), cube.n_cells)).tocsr()
    return fine, _spread(used, slices, layouts, n_classes, width, size)


def _numbered(
    keys: NDArray[np.int64], n_possible: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct keys in order, and which of them each key is.

    >>> [part.tolist() for part in _numbered(np.array([7, 2, 7]), 9)]
    [[2, 7], [1, 0, 1]]
    """
    if n_possible > len(keys):
        used, number = np.unique(keys, return_inverse=True)
        return used, number.reshape(-1)
    used = np.flatnonzero(np.bincount(keys, minlength=n_possible))  # no need to sort millions
    number = np.empty(n_possible, dtype=np.int64)
    number[used] = np.arange(len(used))
    return used, number[keys]


def _spread(
    used: NDArray[np.int64],
    slices: NDArray[np.int64],
    layouts: Sequence[Layout],
    n_classes: int,
    width: int,
    size: int,
) -> csr_array:
    """(size, fine): which statistics of which groupings every fine sum belongs to."""
    from scipy.sparse import coo_array

    cls, what, place = used % n_classes, used // n_classes % width, used // (n_classes * width)
    member, part = (what - 1) // 3, (what - 1) % 3
    targets = []
    for i, layout in enumerate(layouts):
        block = layout.n_slices * n_classes
        own = slices[place, i]
        of_member = layout.start + block + member * (2 * block + layout.n_slices) + part * block
        inside = np.where(part == 2, own, own * n_classes + cls)  # abstentions have no class
        targets.append(
            np.where(what == 0, layout.start + own * n_classes + cls, of_member + inside)
        )
    columns = np.tile(np.arange(len(used)), len(layouts))
    ones = np.ones(len(columns))
    return coo_array((ones, (np.concatenate(targets), columns)), shape=(size, len(used))).tocsr()


def _units_by_cell(cube: Cube, n_units: int) -> csr_array:
    """(cells, units): how many examples of each cell a unit holds."""
    from scipy.sparse import coo_array

    assert cube.unit is not None
    cells = np.arange(cube.n_cells)
    return coo_array(
        (cube.count.astype(np.float64), (cells, cube.unit)), shape=(cube.n_cells, n_units)
    ).tocsr()
