"""Errors of an excess where clusters (or weighted examples) are sampled whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.counts.sums import sums
from fairweight.auditing.explain.slices.totals import Half


@dataclass(frozen=True)
class UnitErrors:
    """Of every cell against the others of its population."""

    error: Floats
    units: Floats  # with a part in the cell
    rest_units: Floats  # with a part in the others


@dataclass(frozen=True)
class Parts:
    """Sums per (unit, cell), sorted by key = unit · n_cells + cell."""

    key: NDArray[np.int64]
    change: Floats
    size: Floats
    n_cells: int

    @property
    def unit(self) -> NDArray[np.int64]:
        return self.key // self.n_cells

    @property
    def cell(self) -> NDArray[np.int64]:
        return self.key % self.n_cells

    def per_cell(self, values: Floats) -> Floats:
        return sums(self.cell, values, self.n_cells)

    def merged(self, into: NDArray[np.int64], n_cells: int) -> Parts:
        """The same units in coarser cells: cell c becomes into[c]."""
        key, place = np.unique(self.unit * n_cells + into[self.cell], return_inverse=True)
        place = place.reshape(-1)
        return Parts(
            key, sums(place, self.change, key.size), sums(place, self.size, key.size), n_cells
        )


def parts(half: Half, cell: NDArray[Any], n_cells: int) -> Parts:
    assert half.unit is not None
    weight = np.ones(half.n) if half.weight is None else half.weight
    key, place = np.unique(half.unit * n_cells + cell, return_inverse=True)
    place = place.reshape(-1)
    return Parts(
        key, sums(place, half.change * weight, key.size), sums(place, weight, key.size), n_cells
    )


def unit_errors(p: Parts, population: NDArray[np.int64], n_populations: int) -> UnitErrors:
    """Linearised standard errors of (shift of a cell − shift of the rest of its population).

    Parameters
    ----------
    p
        Sums per unit and cell.
    population
        Which population each cell belongs to: all one for the excess over everyone else; the level
        of the parent for a sub-slice within its parent.

    Notes
    -----
    The influence of a unit is its residual inside over the size inside, minus its residual in the
    rest over the size of the rest; the variance is G / (G − 1) times the sum of their squares, as
    in `auditing.compare.linear.excess_of`, which knows one population only.
    """
    whole = p.merged(population, n_populations)
    at = np.searchsorted(whole.key, p.unit * n_populations + population[p.cell])
    own_change, own_size = whole.change[at], whole.size[at]
    size, change = p.per_cell(p.size), p.per_cell(p.change)
    rest_size = whole.per_cell(whole.size)[population] - size
    rest_change = whole.per_cell(whole.change)[population] - change
    cc, cs, ss = (
        whole.per_cell(product)[population]
        for product in (whole.change**2, whole.change * whole.size, whole.size**2)
    )
    number = whole.per_cell(np.ones(whole.key.size))[population]
    c = p.cell
    with np.errstate(invalid="ignore", divide="ignore"):
        shift, rest_shift = change / size, rest_change / rest_size
        inside = (p.change - shift[c] * p.size) / size[c]
        outside = (own_change - p.change) - rest_shift[c] * (own_size - p.size)
        as_rest = own_change - rest_shift[c] * own_size
        everyone = cc - 2 * rest_shift * cs + rest_shift**2 * ss
        squares = (everyone - p.per_cell(as_rest**2)) / rest_size**2
        squares += p.per_cell((inside - outside / rest_size[c]) ** 2)
        error = np.sqrt(np.maximum(squares, 0.0) * number / (number - 1))
    units = p.per_cell(np.ones(c.size))
    only = p.per_cell((own_size - p.size <= 1e-12 * own_size).astype(np.float64))
    return UnitErrors(error, units, number - only)
