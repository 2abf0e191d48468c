"""Counts of models in slices: what every metric is a function of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.groupings import Grouping, joint_slices
from fairweight.base.types import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Counts:
    """How often each class is the label, is predicted, and is predicted rightly.

    The last axis is the class; every axis before it is free (replicates, members, slices), so one
    formula serves a single number and two thousand bootstrap replicates of ten thousand groups.
    Only classes that occur as labels have a place; a prediction of any other class is simply
    nobody's `correct` and nobody's `predicted`.
    """

    label: Floats  # (..., C)
    predicted: Floats  # (..., C)
    correct: Floats  # (..., C)
    abstained: Floats  # (...)
    classes: tuple[str, ...]
    positive: int | None = None  # index into classes; only ever set where there are two classes
    _made: dict[str, NDArray[Any]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def n(self) -> Floats:
        """Examples (or weight) in each slice."""
        return self.once("n", lambda: self.label.sum(axis=-1))

    @property
    def present(self) -> NDArray[np.bool_]:
        """Classes that have examples in the slice."""
        return self.once("present", lambda: self.label > 0)

    @property
    def n_present(self) -> Floats:
        """How many they are."""
        return self.once("n_present", lambda: self.present.sum(axis=-1, dtype=np.float64))

    def once(self, name: str, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """What several metrics need of the same counts (recall, FPR, ...) is computed once.

        The array is shared: whoever takes it must not change it.
        """
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    @property
    def binary(self) -> bool:
        return len(self.classes) == 2

    def averaged(self, weights: Floats | None = None) -> Counts:
        """The mean over members (third last axis) as one member.

        Label denominators are shared, so mean counts give mean rates. `weights`, (..., members),
        say how much each member counts; None: all alike.
        """
        if weights is None and self.correct.shape[-3] == 1:
            return self
        if weights is None:
            return replace(
                self,
                label=self.label[..., :1, :, :],
                predicted=self.predicted.mean(axis=-3, keepdims=True),
                correct=self.correct.mean(axis=-3, keepdims=True),
                abstained=self.abstained.mean(axis=-2, keepdims=True),
            )

        def weighted(counts: Floats) -> Floats:
            made: Floats = np.einsum("...msc,...m->...sc", counts, weights)[..., None, :, :]
            return made

        return replace(
            self,
            label=np.broadcast_to(self.label[..., :1, :, :], weighted(self.correct).shape),
            predicted=weighted(self.predicted),
            correct=weighted(self.correct),
            abstained=weighted(self.abstained[..., None])[..., 0],
        )

    def others(self) -> Counts:
        """For every slice (second last axis), the counts of everyone outside it."""
        return replace(
            self,
            label=self.label.sum(axis=-2, keepdims=True) - self.label,
            predicted=self.predicted.sum(axis=-2, keepdims=True) - self.predicted,
            correct=self.correct.sum(axis=-2, keepdims=True) - self.correct,
            abstained=self.abstained.sum(axis=-1, keepdims=True) - self.abstained,
        )

    def levels(self, keep: NDArray[np.bool_]) -> Counts:
        """The slices (second last axis) where `keep` is true."""
        if keep.all():
            return self
        return replace(
            self,
            label=self.label[..., keep, :],
            predicted=self.predicted[..., keep, :],
            correct=self.correct[..., keep, :],
            abstained=self.abstained[..., keep],
        )


# Sums of weights by index, as numbers.


def sums(index: NDArray[np.integer[Any]], weights: NDArray[Any], size: int) -> Floats:
    """For every place 0 .. size-1, the sum of the weights that point at it.

    >>> sums(np.array([0, 2, 2]), np.array([1.0, 0.5, 2.0]), 3).tolist()
    [1.0, 0.0, 2.5]
    """
    return np.bincount(index, weights=weights, minlength=size).astype(np.float64, copy=False)


# Division that says when there is nothing to divide by.


def ratio(part: Floats, whole: Floats) -> Floats:
    """`part / whole`, NaN where `whole` is not above 0.

    >>> ratio(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, nan]
    """
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    defined = whole > 0
    if defined.all():
        return np.asarray(part / whole)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(defined, part / whole, np.nan)


# Cube × grouping → Counts: once for the data as they are, thousands of times for replicates.

ROUNDING = 1e-12  # share of a class's weight below which right answers are rounding errors
EXACT_SINGLE = 2**24  # whole numbers below it are exact in single precision, which is faster


@dataclass(frozen=True)
class CountLayout:
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

    def read(self, flat: Floats, like: Counts) -> Counts:
        """Counts with shape (..., members, S, C) from flat statistics (..., total)."""
        s, c = self.n_slices, self.n_classes
        lead = flat.shape[:-1]
        at = self.start
        label = flat[..., at : at + s * c].reshape(*lead, 1, s, c)
        at += s * c
        block = 2 * s * c + s
        parts = flat[..., at : at + self.n_members * block].reshape(*lead, self.n_members, block)
        k = self.n_members
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

    Parameters
    ----------
    totals
        Groupings in which classes are not told apart: one class, which every right prediction is.
    """

    def __init__(
        self,
        cube: Cube,
        groupings: Sequence[Grouping],
        members: Sequence[int],
        *,
        positive: int | None,
        totals: Sequence[Grouping] = (),
    ) -> None:
        from scipy.sparse import coo_array, csr_array, hstack, vstack  # plain arrays do without it

        self.members = tuple(members)
        self.groupings = (*groupings, *totals)
        self.totals = tuple(totals)
        nothing = np.zeros(0)
        like = Counts(nothing, nothing, nothing, nothing, cube.label_classes, positive)
        self._like = [like] * len(groupings)
        self._like += [replace(like, classes=("",), positive=None)] * len(totals)
        self.layouts: list[CountLayout] = []
        start = 0
        for grouping, made in zip(self.groupings, self._like, strict=True):
            layout = CountLayout(
                len(grouping.levels), len(made.classes), len(members), start, cube.weight is None
            )
            self.layouts.append(layout)
            start += layout.size
        self.size = start
        apart = len(groupings)
        fine, self._spread = _matrices(
            cube, groupings, self.layouts[:apart], self.members, self.size
        )
        if totals:
            right = cube.prediction == cube.label[:, None]
            merged = replace(
                cube,
                label_classes=("",),
                label=np.zeros_like(cube.label),
                prediction=np.where(right, 0, np.where(cube.prediction < 0, -1, 1)),
            )
            more = _matrices(merged, totals, self.layouts[apart:], self.members, self.size)
            fine = vstack([fine, more[0]], format="csr")
            self._spread = hstack([self._spread, more[1]], format="csr")
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
            self.multiplicity = np.ones(len(cube.unit_names), dtype=np.int64)
            shape = (cube.n_cells, len(cube.unit_names))
            place = (np.arange(cube.n_cells), cube.unit)
            self._per_item = (
                fine @ coo_array((cube.count.astype(float), place), shape=shape).tocsr()
            )

    def observed(self) -> list[Counts]:
        """Counts of the data, shape (members, S, C), one per grouping."""
        return self.read(self._spread @ (self._per_cell @ self._cell_count.astype(np.float64)))

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
            fine = single @ np.ascontiguousarray(weights.astype(np.float32).T)
        else:
            fine = per_item @ np.ascontiguousarray(weights.T, dtype=np.float64)
        made: Floats = (self._spread @ fine).T
        return made

    def read(self, flat: Floats) -> list[Counts]:
        """Counts of shape (..., members, S, C) from flat statistics, one per grouping."""
        return [
            layout.read(flat, like) for layout, like in zip(self.layouts, self._like, strict=True)
        ]


def _matrices(
    cube: Cube,
    groupings: Sequence[Grouping],
    layouts: Sequence[CountLayout],
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
    used, row = numbered(np.concatenate(keys), len(slices) * width * n_classes)
    value = np.ones(len(cell)) if cube.weight is None else cube.weight[cell]
    fine = coo_array((value, (row, cell)), shape=(len(used), cube.n_cells)).tocsr()
    # Which statistics of which groupings every fine sum belongs to.
    cls, what, place = used % n_classes, used // n_classes % width, used // (n_classes * width)
    of, part = (what - 1) // 3, (what - 1) % 3
    targets = []
    for i, layout in enumerate(layouts):
        block = layout.n_slices * n_classes
        own = slices[place, i]
        of_member = layout.start + block + of * (2 * block + layout.n_slices) + part * block
        inside = np.where(part == 2, own, own * n_classes + cls)  # abstentions have no class
        targets.append(
            np.where(what == 0, layout.start + own * n_classes + cls, of_member + inside)
        )
    columns = np.tile(np.arange(len(used)), len(layouts))
    ones, shape = np.ones(len(columns)), (size, len(used))
    return fine, coo_array((ones, (np.concatenate(targets), columns)), shape=shape).tocsr()


def numbered(
    keys: NDArray[np.int64], n_possible: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct keys in order, and which of them each key is.

    >>> [part.tolist() for part in numbered(np.array([7, 2, 7]), 9)]
    [[2, 7], [1, 0, 1]]
    """
    if n_possible > 4 * len(keys):
        used, number = np.unique(keys, return_inverse=True)
        return used, number.reshape(-1)
    used = np.flatnonzero(np.bincount(keys, minlength=n_possible))  # no need to sort millions
    number = np.empty(n_possible, dtype=np.int64)
    number[used] = np.arange(len(used))
    return used, number[keys]
