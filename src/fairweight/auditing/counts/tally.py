"""Cube × grouping → Counts: once for the data as they are, thousands of times for replicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.counts.stats import Counts, Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Layout:
    """Where the counts of one grouping stand in a flat vector of statistics.

    label (S, C), then for every member predicted (S, C), correct (S, C) and abstained (S).
    """

    n_slices: int
    n_classes: int
    n_members: int
    start: int

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
        predicted = parts[..., : s * c].reshape(*lead, k, s, c)
        correct = parts[..., s * c : 2 * s * c].reshape(*lead, k, s, c)
        return Counts(
            label=np.broadcast_to(label, predicted.shape),
            predicted=predicted,
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
        self.members = tuple(members)
        self.groupings = tuple(groupings)
        classes = cube.label_classes
        nothing = np.zeros(0)
        self._like = Counts(nothing, nothing, nothing, nothing, classes, positive)
        self.layouts: list[Layout] = []
        start = 0
        for grouping in groupings:
            layout = Layout(len(grouping.levels), len(classes), len(members), start)
            self.layouts.append(layout)
            start += layout.size
        self.size = start
        self._per_cell = _matrix(cube, self.groupings, self.layouts, self.members, self.size)
        if cube.unit is None:
            self.multiplicity = cube.count
            self._per_item = self._per_cell
        else:
            n_units = len(cube.unit_names)
            self.multiplicity = np.ones(n_units, dtype=np.int64)
            self._per_item = self._per_cell @ _units_by_cell(cube, n_units)
        self._cell_count = cube.count

    def observed(self) -> list[Counts]:
        """Counts of the data, shape (members, S, C), one per grouping."""
        flat = self._per_cell @ self._cell_count.astype(np.float64)
        return [self._read(flat, i) for i in range(len(self.layouts))]

    def flat(self, weights: NDArray[Any], items: NDArray[np.intp] | None = None) -> Floats:
        """Flat statistics (R, size) under weights (R, items), of all items or of those named.

        Replicates are the fastest axis in memory: sums over classes, members and slices then run
        along them, several times faster than along a handful of classes.
        """
        per_item = self._per_item if items is None else self._per_item[:, items]
        made: Floats = (per_item @ np.ascontiguousarray(weights.T, dtype=np.float64)).T
        return made

    def read(self, flat: Floats) -> list[Counts]:
        return [self._read(flat, i) for i in range(len(self.layouts))]

    def _read(self, flat: Floats, i: int) -> Counts:
        return self.layouts[i].read(flat, slice(None), self._like)


def _matrix(
    cube: Cube,
    groupings: Sequence[Grouping],
    layouts: Sequence[Layout],
    members: Sequence[int],
    size: int,
) -> csr_array:
    """(statistics, cells): what one example of each cell adds to every statistic."""
    from scipy.sparse import coo_array

    n_classes = len(cube.label_classes)
    everyone = np.arange(cube.n_cells)
    rows: list[NDArray[np.int64]] = []
    cells: list[NDArray[np.int64]] = []
    for grouping, layout in zip(groupings, layouts, strict=True):
        slice_start = grouping.code.astype(np.int64) * n_classes
        at = layout.start
        rows.append(at + slice_start + cube.label)
        cells.append(everyone)
        at += layout.n_slices * n_classes
        for member in members:
            prediction = cube.prediction[:, member]
            known = (prediction >= 0) & (prediction < n_classes)
            right = prediction == cube.label
            rows.append((at + slice_start + prediction)[known])
            cells.append(everyone[known])
            at += layout.n_slices * n_classes
            rows.append((at + slice_start + prediction)[right])
            cells.append(everyone[right])
            at += layout.n_slices * n_classes
            silent = prediction < 0
            rows.append((at + grouping.code.astype(np.int64))[silent])
            cells.append(everyone[silent])
            at += layout.n_slices
    row, cell = np.concatenate(rows), np.concatenate(cells)
    value = np.ones(len(row)) if cube.weight is None else cube.weight[cell]
    return coo_array((value, (row, cell)), shape=(size, cube.n_cells)).tocsr()


def _units_by_cell(cube: Cube, n_units: int) -> csr_array:
    """(cells, units): how many examples of each cell a unit holds."""
    from scipy.sparse import coo_array

    assert cube.unit is not None
    cells = np.arange(cube.n_cells)
    return coo_array(
        (cube.count.astype(np.float64), (cells, cube.unit)), shape=(cube.n_cells, n_units)
    ).tocsr()
