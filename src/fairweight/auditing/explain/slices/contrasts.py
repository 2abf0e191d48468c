"""A slice and the rest of its population, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.special import ndtr, ndtri, stdtr

from fairweight.auditing.counts.counts import sums
from fairweight.auditing.intervals.excess import excess_test
from fairweight.auditing.intervals.ratio import (
    RatioExcess,
    RatioMoments,
    RatioShift,
    RatioSums,
    UsualChange,
    min_detectable_change,
    products_of,
)
from fairweight.base.types import Floats

# Sums over the examples of slices: what every test of an excess is a function of.


class Totals(NamedTuple):
    """Sums over examples; without weights `size` and `squared_size` are numbers of examples.

    With a single pair of models a change is −1, 0 or 1, so `change` and `moved` determine how many
    answers were lost and gained.
    """

    size: Floats  # Σ w
    squared_size: Floats  # Σ w²
    change: Floats  # Σ w (right after − right before)
    moved: Floats  # Σ w (right after − right before)²

    def __sub__(self, other: Totals) -> Totals:
        return Totals(*(own - its for own, its in zip(self, other, strict=True)))

    def at(self, places: Any) -> Totals:
        return Totals(*(part[places] for part in self))

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


@dataclass(frozen=True)
class Half:
    """The examples of one half, and their changes."""

    change: Floats
    weight: Floats | None
    unit: NDArray[np.int64] | None  # what is sampled whole; None: examples, without weights
    exact: bool  # a single pair of models on independent examples: changes are −1, 0 and 1

    @cached_property
    def changed(self) -> NDArray[np.intp]:
        """Models differ on few examples, and only those need sums."""
        return np.flatnonzero(self.change)

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
        return Half(
            self.change[members],
            None if self.weight is None else self.weight[members],
            None if self.unit is None else self.unit[members],
            self.exact,
        )


# Errors of an excess where clusters (or weighted examples) are sampled whole.


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


def parts(
    unit: NDArray[np.int64], cell: NDArray[Any], change: Floats, size: Floats, n_cells: int
) -> Parts:
    """Sums of changes and sizes per unit and cell."""
    key, place = np.unique(unit * n_cells + cell, return_inverse=True)
    place = place.reshape(-1)
    return Parts(key, sums(place, change, key.size), sums(place, size, key.size), n_cells)


def unit_errors(
    p: Parts, population: NDArray[np.int64], n_populations: int
) -> tuple[Floats, Floats]:
    """Linearised standard errors of (shift of a cell − shift of the rest), degrees of freedom.

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
    whole = parts(p.unit, population[p.cell], p.change, p.size, n_populations)
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
    return error, np.maximum(np.minimum(units, number - only) - 1, 0.0)


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


AnyContrast: TypeAlias = "Contrast | OutcomeContrast"


def joined_contrasts(parts: Sequence[Any]) -> Any:
    """Contrasts of one kind, one after the other."""
    if isinstance(parts[0], OutcomeContrast):
        return parts[0].joined(parts[1:])
    errors = [part.error for part in parts if part.error is not None]
    degrees = [part.degrees for part in parts if part.degrees is not None]
    inside, rest = (
        Totals(*(np.concatenate(column) for column in zip(*side, strict=True)))
        for side in ([part.inside for part in parts], [part.rest for part in parts])
    )
    return Contrast(
        inside,
        rest,
        np.concatenate(errors) if errors else None,
        np.concatenate(degrees) if degrees else None,
    )


def cell_contrasts(
    half: Half | OutcomeHalf, cell: NDArray[Any], shape: tuple[int, int], *, within: bool
) -> Iterator[AnyContrast]:
    """Every cell of a table against everyone else; `within`: also within its row and its column.

    `cell` is the flat place of every example of the half in the table.
    """
    rows, columns = (index.ravel() for index in np.indices(shape))
    populations: list[tuple[tuple[int, ...], NDArray[np.int64], int]] = [((0, 1), 0 * rows, 1)]
    if within:
        populations += [((1,), rows, shape[0]), ((0,), columns, shape[1])]
    if isinstance(half, OutcomeHalf):
        for _, population, number in populations:
            own, others, factor = half.totals(cell.astype(np.int64), rows.size, population, number)
            moments = own.moments(), others.moments()
            factors = np.broadcast_to(np.asarray(factor, dtype=np.float64), rows.shape)
            yield OutcomeContrast(*moments, factors, half.pool, own.examples).reshaped(shape)
        return
    inside = half.table(cell, shape)
    by_unit = None
    if half.unit is not None:
        weight = np.ones(half.change.size) if half.weight is None else half.weight
        by_unit = parts(half.unit, cell, half.change * weight, weight, shape[0] * shape[1])
    for axes, population, number in populations:
        every = Totals(*(part.sum(axis=axes, keepdims=True) for part in inside))
        rest = every - inside
        if half.exact:
            yield Contrast(inside, rest)
        elif by_unit is None:
            yield Contrast(inside, rest, *example_errors(inside, rest))
        else:
            error, degrees = unit_errors(by_unit, population, number)
            yield Contrast(inside, rest, error.reshape(shape), degrees.reshape(shape))


def slice_contrast(half: Half | OutcomeHalf, inside: NDArray[np.bool_]) -> Any:
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


# Outcomes that are numbers: ratios of sums, by the rule of `intervals/ratio.py`.


@dataclass(frozen=True)
class OutcomeHalf:
    """The examples of one half, and the outcomes of both models on them.

    Parameters
    ----------
    values
        (4, n): num_b, num_c, den_b, den_c of every example, times its weight.
    den
        (n,) the baseline's denominators without weights.
    unit
        Clusters, which are sampled whole; None: examples.
    usual
        What a change is like in the whole half, where this is a part of one.
    """

    values: Floats
    den: Floats
    unit: NDArray[np.int64] | None
    usual: UsualChange | None = None

    @cached_property
    def products(self) -> Floats:
        """Products of single examples; of clusters they are made of their totals."""
        return products_of(*self.values)

    @cached_property
    def changed(self) -> Floats:
        num_b, num_c, den_b, den_c = self.values
        moved: Floats = ((num_b != num_c) | (den_b != den_c)).astype(np.float64)
        return moved

    @cached_property
    def pool(self) -> UsualChange:
        """What a change is like in the half, which small slices borrow."""
        if self.usual is not None:
            return self.usual
        everyone = np.zeros(self.den.size, dtype=np.intp)
        inside, _, _ = self.totals(everyone, 1, np.zeros(1, dtype=np.int64), 1)
        return UsualChange.of(inside.moments())

    def part(self, members: NDArray[np.bool_]) -> OutcomeHalf:
        """The examples that `members` marks; a change is like in the whole half."""
        return OutcomeHalf(
            self.values[:, members],
            self.den[members],
            None if self.unit is None else self.unit[members],
            self.pool,
        )

    def totals(
        self, cell: NDArray[Any], n_cells: int, population: NDArray[np.int64], n_populations: int
    ) -> tuple[RatioSums, RatioSums, Floats | float]:
        """Sums inside every cell and in the rest of its population, and what clusters share.

        Parameters
        ----------
        population
            Which one each cell belongs to.
        """

        def rest(per_cell: Floats) -> Floats:
            every = np.zeros((n_populations, *per_cell.shape[1:]))
            np.add.at(every, population, per_cell)
            found: Floats = every[population] - per_cell
            return found

        place = coo_array(
            (np.ones(cell.size), (cell, np.arange(cell.size))), shape=(n_cells, cell.size)
        ).tocsr()
        examples, den = place @ np.ones(cell.size), place @ self.den
        if self.unit is None:
            changed, products = place @ self.changed, place @ self.products
            inside = RatioSums(examples, changed, products, examples, den)
            n = rest(examples)
            return inside, RatioSums(n, rest(changed), rest(products), n, rest(den)), 1.0
        # Totals of every cluster in a cell; what it has elsewhere in the population is the rest.
        key, at = np.unique(self.unit * n_cells + cell, return_inverse=True)
        unit, own_cell = key // n_cells, key % n_cells
        whole_key, whole_at = np.unique(
            unit * n_populations + population[own_cell], return_inverse=True
        )
        everyone = whole_key % n_populations
        entry = coo_array(
            (np.ones(key.size), (own_cell, np.arange(key.size))), shape=(n_cells, key.size)
        ).tocsr()
        both = coo_array(
            (np.ones(whole_key.size), (everyone, np.arange(whole_key.size))),
            shape=(n_populations, whole_key.size),
        ).tocsr()

        def gathered(values: Floats) -> tuple[Floats, Floats, Floats]:
            """Of clusters in a cell, in the rest of the population, and in all of it."""
            own = sums(at.reshape(-1), values, key.size)
            whole = sums(whole_at.reshape(-1), own, whole_key.size)
            return own, whole[whole_at.reshape(-1)] - own, whole

        outside = gathered(np.ones(cell.size))[1]
        touched, untouched, every_touched = gathered(self.changed)
        sides = [gathered(values) for values in self.values]
        here, left, every = (np.stack([side[i] for side in sides]) for i in range(3))
        partial = (outside > 0).astype(np.float64)
        whole_products = products_of(*every)
        inside = RatioSums(
            entry @ np.ones(key.size), entry @ (touched > 0).astype(float),
            entry @ products_of(*here), examples, den,
        )  # fmt: skip
        outer = RatioSums(
            both.sum(axis=1)[population] - entry @ (1 - partial),
            (both @ (every_touched > 0).astype(float))[population]
            - entry @ ((touched + untouched > 0).astype(float) - (untouched > 0)),
            (both @ whole_products)[population]
            - entry @ (whole_products[whole_at.reshape(-1)]
                       - products_of(*left) * partial[:, None]),
            rest(examples), rest(den),
        )  # fmt: skip
        # What a cluster adds to either side's shift: groups may vary inside clusters.
        own_adds = _added(inside, own_cell, here)
        rest_adds = _added(outer, own_cell, left)
        as_rest = _added(outer, own_cell, every[:, whole_at.reshape(-1)])
        alone = RatioSums(outer.n, outer.changed, (both @ whole_products)[population], outer.n, den)
        elsewhere = np.maximum(alone.squares(outer) - entry @ as_rest**2, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            factor = np.sqrt(
                (elsewhere + entry @ (own_adds - rest_adds) ** 2)
                / (elsewhere + entry @ (own_adds**2 + rest_adds**2))
            )
        return inside, outer, np.where(np.isfinite(factor), factor, 1.0)


def _added(of: RatioSums, row: NDArray[np.int64], values: Floats) -> Floats:
    """What units with these totals add to the shift of their rows; 0 where it is undefined."""
    num_b, num_c, den_b, den_c = values
    parts = (num_b, num_c - num_b, den_b, den_c - den_b)
    with np.errstate(invalid="ignore"):  # a row without a rest
        added = sum(c[row] * part for c, part in zip(of.influence(), parts, strict=True))
    return np.nan_to_num(np.asarray(added, dtype=np.float64))


@dataclass(frozen=True)
class OutcomeContrast:
    """Slices against the rest of their populations, of outcomes that are numbers."""

    inside: RatioMoments
    rest: RatioMoments
    factor: Floats
    usual: UsualChange
    size: Floats  # examples inside

    @property
    def found(self) -> RatioExcess:
        inside, rest = (RatioShift(side, self.usual) for side in (self.inside, self.rest))
        return RatioExcess(inside, rest, self.factor)

    @property
    def excess(self) -> Floats:
        return self.found.value

    @property
    def degrees(self) -> Floats:
        """Units of the smaller side, less one."""
        return np.minimum(self.inside.n, self.rest.n) - 1

    def at(self, places: Any) -> OutcomeContrast:
        inside, rest = (
            RatioMoments(**{name: value[places] for name, value in vars(side).items()})
            for side in (self.inside, self.rest)
        )
        return OutcomeContrast(inside, rest, self.factor[places], self.usual, self.size[places])

    def reshaped(self, shape: tuple[int, int]) -> OutcomeContrast:
        return self.at(np.arange(self.size.size).reshape(shape))

    def joined(self, others: Sequence[OutcomeContrast]) -> OutcomeContrast:
        every = [self, *others]

        def side(name: str) -> RatioMoments:
            held = [vars(getattr(one, name)) for one in every]
            return RatioMoments(**{k: np.concatenate([one[k] for one in held]) for k in held[0]})

        factor, size = (np.concatenate([getattr(o, n) for o in every]) for n in ("factor", "size"))
        return OutcomeContrast(side("inside"), side("rest"), factor, self.usual, size)

    def distance(self) -> Floats:
        """The excess in plain standard errors, signed, which are never larger than the rule's."""
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = [side.second / side.n**2 for side in (self.inside, self.rest)]
            away = self.excess / (self.factor * np.sqrt(errors[0] + errors[1]))
        return np.where(self.excess == 0, 0.0, away)


# Is the shift of a slice that of the others? Thousands of slices at once.

# Below this distance in standard deviations p is never under 0.05 (a test walks through small and
# skewed tables), so that Benjamini–Hochberg needs no exact value.
SCREEN = 1.5


def pooled_error(inside: Totals, rest: Totals) -> Floats:
    """Standard error of the excess if slice and rest were drawn from one pot of examples."""
    size, change = inside.size + rest.size, inside.change + rest.change
    effective = size**2 / (inside.squared_size + rest.squared_size)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.maximum((inside.moved + rest.moved) / size - (change / size) ** 2, 0.0)
        spread = spread * effective / (effective - 1)
        portions = inside.squared_size / inside.size**2 + rest.squared_size / rest.size**2
        error: Floats = np.sqrt(spread * portions)
    return error


def distance(c: AnyContrast) -> Floats:
    """The excess in standard errors, signed; 0 where nothing changed, NaN without a rest.

    With several members or clusters the larger of two errors counts: that of the slice's own
    examples, which is too small where by chance nothing changed in it, and the pooled one. Of a
    single pair the smaller one: it only says for which slices p is worth the time.
    """
    if isinstance(c, OutcomeContrast):
        return c.distance()
    error = pooled_error(c.inside, c.rest)
    if c.error is not None:
        error = np.maximum(error, c.error)
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            own = sum(
                np.maximum(side.moved / side.size - side.shift**2, 0.0) / side.size
                for side in (c.inside, c.rest)
            )
        error = np.minimum(error, np.sqrt(own))
    excess = c.excess
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((excess == 0) & ~np.isnan(error), 0.0, excess / error)


def p_values(c: AnyContrast) -> Floats:
    """Two-sided p of every contrast: MOVER for single pairs and outcomes, else linearised t."""
    if isinstance(c, OutcomeContrast):
        return c.found.p_value()
    if c.error is None or c.degrees is None:
        return excess_test(
            c.inside.size, c.inside.lost, c.inside.gained,
            c.rest.size, c.rest.lost, c.rest.gained,
        )  # fmt: skip

    p: Floats = 2 * stdtr(c.degrees, -np.abs(distance(c)))
    return p


def screened_p_values(c: AnyContrast, worth: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Floats:
    """`p_values` where it is worth the time, the normal approximation elsewhere."""
    p: Floats = 2 * ndtr(-np.abs(distance(c)))
    if worth.any():
        p[worth] = p_values(c.at(worth))
    return p


# How much a slice had to pay in excess to be found.

_POWER = 0.8
_GRID = np.arange(1, 2001) / 2000  # half a tenth of a point


def detectable_excess(n: float, half: Half | OutcomeHalf, n_tests: int, alpha: float) -> float:
    """Least excess (positive) with which a slice is found with a power of 80 %.

    Parameters
    ----------
    n
        Examples of the slice in the discovery half.
    half
        The discovery half.
    n_tests, alpha
        Something that stands out alone is found at alpha / n_tests.

    Notes
    -----
    Of the design alone: what was seen in the slice plays no part. An excess δ is that share of
    further answers lost by all members. The excess at which the test of a pair just rejects is
    found by halving; that δ exceeds it with a chance of 80 % is a normal approximation, and so is
    all of it where the linearised test decides (clusters are then taken for independent examples).
    NaN where not even losing every answer would be found.
    """
    if isinstance(half, OutcomeHalf):
        return float(min_detectable_change(n, half.pool, alpha / n_tests))
    n_all = half.change.size
    everyone = half.table(np.zeros(n_all, dtype=np.intp), (1, 1)).at(([0], [0]))
    shift, moved = everyone.shift, everyone.moved / everyone.size
    usual = moved - shift**2
    inside = np.maximum(np.minimum(moved + _GRID, 1.0) - (shift - _GRID) ** 2, 0.0)
    error = np.sqrt(inside / n + usual / max(n_all - n, 1.0))
    level = alpha / n_tests
    needed = _least_rejected(round(n), everyone, level) if half.exact else -ndtri(level / 2) * error
    reached = needed + ndtri(_POWER) * error <= _GRID
    return float(_GRID[np.argmax(reached)]) if reached.any() else float("nan")


def _least_rejected(n: int, everyone: Totals, level: float) -> float:
    """The observed excess at which the p of a slice comes down to the level."""
    size, lost, gained = (
        round(float(part[0])) for part in (everyone.size, everyone.lost, everyone.gained)
    )
    usual_lost, usual_gained = round(n * lost / size), round(n * gained / size)

    def rejects(further: int) -> bool:
        inside = n, usual_lost + further, usual_gained
        rest = size - n, lost - usual_lost, gained - usual_gained
        return bool(excess_test(*inside, *rest) <= level)

    low, high = 0, n - usual_lost - usual_gained
    if high < 1 or not rejects(high):
        return float("inf")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rejects(middle) else (middle, high)
    return high / n
