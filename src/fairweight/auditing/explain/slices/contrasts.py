"""A slice and the rest of its population, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.explain.slices.totals import Half, Totals, joined
from fairweight.auditing.explain.slices.units import parts, unit_errors


@dataclass(frozen=True)
class Contrast:
    """Slices against the rest of their populations, one entry each.

    Without `error`: a single pair of models on independent examples.
    """

    inside: Totals
    rest: Totals
    error: Floats | None = None  # linearised standard error of the excess
    degrees: Floats | None = None  # of freedom of it

    @property
    def excess(self) -> Floats:
        return self.inside.shift - self.rest.shift

    def at(self, places: Any) -> Contrast:
        return Contrast(
            self.inside.at(places),
            self.rest.at(places),
            None if self.error is None else self.error[places],
            None if self.degrees is None else self.degrees[places],
        )


def joined_contrasts(parts: list[Contrast]) -> Contrast:
    errors = [part.error for part in parts if part.error is not None]
    degrees = [part.degrees for part in parts if part.degrees is not None]
    return Contrast(
        joined([part.inside for part in parts]),
        joined([part.rest for part in parts]),
        np.concatenate(errors) if errors else None,
        np.concatenate(degrees) if degrees else None,
    )


def cell_contrasts(
    half: Half, cell: NDArray[Any], shape: tuple[int, int], *, within: bool
) -> Iterator[Contrast]:
    """Every cell of a table against everyone else; `within`: also within its row and its column.

    `cell` is the flat place of every example of the half in the table.
    """
    inside = half.table(cell, shape)
    by_unit = None if half.unit is None else parts(half, cell, shape[0] * shape[1])
    rows, columns = (index.ravel() for index in np.indices(shape))
    populations: list[tuple[int | None, NDArray[np.int64], int]] = [(None, 0 * rows, 1)]
    if within:
        populations += [(1, rows, shape[0]), (0, columns, shape[1])]
    for summed_axis, population, number in populations:
        rest = inside.over(summed_axis) - inside
        if half.exact:
            yield Contrast(inside, rest)
        elif by_unit is None:
            yield Contrast(inside, rest, *example_errors(inside, rest))
        else:
            found = unit_errors(by_unit, population, number)
            degrees = np.maximum(np.minimum(found.units, found.rest_units) - 1, 0.0)
            yield Contrast(inside, rest, found.error.reshape(shape), degrees.reshape(shape))


def slice_contrast(half: Half, inside: NDArray[np.bool_]) -> Contrast:
    """One slice against the rest of the half, as a contrast with a single entry."""
    (found,) = cell_contrasts(half, (~inside).astype(np.intp), (2, 1), within=False)
    return found.at((np.array([0]), np.array([0])))


def example_errors(inside: Totals, rest: Totals) -> tuple[Floats, Floats]:
    """Standard error of the excess and its degrees of freedom, examples being sampled.

    For changes that are means over several members. Degrees of freedom are those of the smaller
    side, whose variance is the least known.
    """
    n = inside.size + rest.size
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = sum(
            np.maximum(side.moved - side.size * side.shift**2, 0.0) / side.size**2
            for side in (inside, rest)
        )
        error = np.sqrt(squares * n / (n - 1))
    return error, np.maximum(np.minimum(inside.size, rest.size) - 1, 1.0)
