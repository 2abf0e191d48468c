"""Sums over the examples of slices: what every test of an excess is a function of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.counts.sums import sums


@dataclass(frozen=True)
class Totals:
    """Sums over examples; without weights `size` and `squared_size` are numbers of examples.

    With a single pair of models a change is −1, 0 or 1, so `change` and `moved` determine how many
    answers were lost and gained.
    """

    size: Floats  # Σ w
    squared_size: Floats  # Σ w²
    change: Floats  # Σ w (right after − right before)
    moved: Floats  # Σ w (right after − right before)²

    def __sub__(self, other: Totals) -> Totals:
        return Totals(
            self.size - other.size,
            self.squared_size - other.squared_size,
            self.change - other.change,
            self.moved - other.moved,
        )

    def at(self, places: Any) -> Totals:
        return Totals(
            self.size[places], self.squared_size[places], self.change[places], self.moved[places]
        )

    def over(self, axis: int | None) -> Totals:
        """Summed over an axis that is kept, so that it broadcasts; None: over all."""
        axes = (0, 1) if axis is None else axis
        return Totals(
            *(
                np.broadcast_to(part.sum(axis=axes, keepdims=True), part.shape)
                for part in (self.size, self.squared_size, self.change, self.moved)
            )
        )

    @property
    def shift(self) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            mean: Floats = self.change / self.size
        return mean

    @property
    def lost(self) -> Floats:
        return (self.moved - self.change) / 2

    @property
    def gained(self) -> Floats:
        return (self.moved + self.change) / 2


def joined(parts: list[Totals]) -> Totals:
    return Totals(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("size", "squared_size", "change", "moved")
        )
    )


@dataclass(frozen=True)
class Half:
    """The examples of one half: their changes, and which of them changed at all."""

    change: Floats
    weight: Floats | None
    unit: NDArray[np.int64] | None  # what is sampled whole; None: examples, without weights
    exact: bool  # a single pair of models on independent examples: changes are −1, 0 and 1
    changed: NDArray[np.intp]  # models differ on few examples, and only those need sums

    @property
    def n(self) -> int:
        return self.change.size

    def table(self, cell: NDArray[Any], shape: tuple[int, int]) -> Totals:
        """Totals of the cells of a table; `cell` is the flat place of every example."""
        length = shape[0] * shape[1]
        some = cell[self.changed]
        change = self.change[self.changed]
        if self.weight is None:
            size = np.bincount(cell, minlength=length).astype(np.float64)
            squared = size
            weighted = change
        else:
            size = sums(cell, self.weight, length)
            squared = sums(cell, self.weight**2, length)
            weighted = change * self.weight[self.changed]
        totals = (
            size,
            squared,
            sums(some, weighted, length),
            sums(some, weighted * change, length),
        )
        return Totals(*(part.reshape(shape) for part in totals))

    def part(self, members: NDArray[np.bool_]) -> Half:
        """The examples that `members` marks."""
        return half(
            self.change[members],
            None if self.weight is None else self.weight[members],
            None if self.unit is None else self.unit[members],
            exact=self.exact,
        )


def half(
    change: Floats,
    weight: Floats | None,
    unit: NDArray[np.int64] | None,
    *,
    exact: bool,
) -> Half:
    return Half(change, weight, unit, exact, np.flatnonzero(change))
