"""Rates for scope `method`: members and examples (or clusters) are both sampled: two-way t."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import MIN_CLUSTERS, Comparison
from fairweight.auditing.compare.estimate import Limits, RateEstimate
from fairweight.auditing.compare.events import EventRows
from fairweight.auditing.compare.linear import Contributions, excess_of, joined_estimates
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.counts.sums import sums
from fairweight.auditing.metrics.ratio import ratio

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from fairweight.auditing.intervals.two_way import Term, TwoWay


def interval_name(c: Comparison) -> str:
    return f"two-way t over members and {'clusters' if c.cube.unit_is_cluster else 'examples'}"


def method_rates(c: Comparison, rows: Iterable[EventRows], kind: str) -> RateEstimate | None:
    """As `linear_rates`, about the method; None without rows."""
    estimates = [_estimate(c, part, kind) for part in rows]
    return joined_estimates(estimates, kind) if estimates else None


@dataclass(frozen=True)
class Items:
    """What is sampled, in coordinate form: an entry is an item's part in a row."""

    total: csr_array  # (rows, entries): sums entries by row, copies counted
    happened: Floats  # (entries, members): weight on which the event happens
    weight: Floats  # (entries,)
    number: Floats  # (rows,): items in each row
    unit: NDArray[np.int64]  # (entries,)
    row: NDArray[np.int64]  # (entries,)
    copies: Floats  # (entries,)

    @property
    def alike(self) -> bool:
        """Whether every item weighs 1."""
        return bool((self.weight == 1).all())


@dataclass(frozen=True)
class Parts:
    """A mean over units and items, and the parts of its variance, (rows,)."""

    each: Floats  # (units, rows)
    members: Term
    examples: Term
    interaction: Term


def _estimate(c: Comparison, part: EventRows, kind: str) -> RateEstimate:
    items = _items(c, part.cells, part.row, part.n_rows, part.happens)
    first, second = (_averaged(items.happened, w) for w in (c.pairing.first, c.pairing.second))
    sides = _side(items, first), _side(items, second)
    base, compressed = (side.parts(items.number) for side in sides)
    change = _side(items, second - first) if c.pairing.paired else None
    apart = None if change else _side(items, (second.mean(axis=1) - first.mean(axis=1))[:, None])
    enough = items.number >= (MIN_CLUSTERS if c.clustered else 2)
    shift = _difference(sides, change, apart, lambda side: side.parts(items.number))
    excess: TwoWay | None = None
    if part.partition and kind in ("class", "group", "intersection"):
        excess = _difference(sides, change, apart, lambda side: _excess_parts(c, items, side))
    nothing = np.full(part.n_rows, np.nan)

    def limits(found: TwoWay, bounds: tuple[float, float]) -> Callable[[float | Floats], Limits]:
        def at(alpha: float | Floats) -> Limits:
            low, high = _bounded(found, items.number, alpha, bounds)
            return np.where(enough, low, np.nan), np.where(enough, high, np.nan)

        return at

    def excess_limits(alpha: float) -> Limits:
        if excess is None:
            return nothing, nothing
        low, high = excess.limits(alpha)
        return np.where(enough, low, np.nan), np.where(enough, high, np.nan)

    return RateEstimate(
        slots=part.slots,
        n=sums(part.row, c.cube.count[part.cells], part.n_rows),
        n_clusters=items.number if c.cube.unit_is_cluster else nothing,
        baseline=base.each.mean(axis=0),
        compressed=compressed.each.mean(axis=0),
        shift=shift.estimate,
        p_value=np.where(enough, shift.p_value, np.nan),
        excess=nothing if excess is None else excess.estimate,
        excess_p=nothing if excess is None else np.where(enough, excess.p_value, np.nan),
        discordance=nothing,
        design_effect=nothing,
        baseline_limits=limits(_alone(base), (0.0, 1.0)),
        compressed_limits=limits(_alone(compressed), (0.0, 1.0)),
        limits=limits(shift, (-1.0, 1.0)),
        excess_limits=excess_limits,
        interval=interval_name(c),
        members=ratio((items.total @ items.happened).T, items.total @ items.weight),
    )


def share_by_unit(
    c: Comparison, shares: list[Floats], row: NDArray[np.int64], n_rows: int, alpha: float
) -> tuple[Floats, Floats, Floats]:
    """Mean of a share per cell and unit, (cells, units), with its two-way limits.

    With two lists of units (every pair of two sides' members was looked at) both vary; their
    interactions are not taken off, which is on the wide side.
    """
    from fairweight.auditing.intervals.two_way import two_way

    cells = np.arange(c.cube.n_cells)
    items = [_items(c, cells, row, n_rows, share) for share in shares]
    sides = [_side(one, one.happened).parts(one.number) for one in items]
    taken_off = [side.interaction for side in sides] if len(sides) == 1 else []
    members = [side.members for side in sides]
    found = two_way(sides[0].each.mean(axis=0), members, sides[0].examples, taken_off)
    low, high = _bounded(found, items[0].number, alpha, (0.0, 1.0))
    enough = items[0].number >= (MIN_CLUSTERS if c.clustered else 2)
    return found.estimate, np.where(enough, low, np.nan), np.where(enough, high, np.nan)


def _items(
    c: Comparison,
    cells: NDArray[np.intp],
    row: NDArray[np.int64],
    n_rows: int,
    happens: NDArray[np.bool_] | Floats,
) -> Items:
    """Entries as cells of equal examples, or summed over each unit's examples in a row."""
    from scipy.sparse import coo_array

    cube = c.cube
    weight = np.ones(len(cells)) if cube.weight is None else cube.weight[cells]
    happened = happens * weight[:, None]
    count = cube.count[cells].astype(float)
    copies, unit = count, cells
    if cube.unit is not None:
        key, place = np.unique(cube.unit[cells] * n_rows + row, return_inverse=True)
        place = place.reshape(-1)
        summed = coo_array((count, (place, np.arange(len(count)))), shape=(len(key), len(count)))
        summed = summed.tocsr()
        happened, weight = summed @ happened, summed @ weight
        row, copies, unit = key % n_rows, np.ones(len(key)), key // n_rows
    total = coo_array((copies, (row, np.arange(len(row)))), shape=(n_rows, len(row))).tocsr()
    number = sums(row, copies, n_rows)
    return Items(total, happened, weight, number, unit, row, copies)


def _averaged(happened: Floats, weights: Floats) -> Floats:
    """Values of units, (entries, units), from values of members."""
    number = (weights > 0).sum(axis=1)
    if (number == 1).all():
        each: Floats = np.take(happened, weights.argmax(axis=1), axis=1)
        return each
    # Summed before it is divided: six children that are all right are right exactly once.
    made: Floats = happened @ (weights > 0).T.astype(np.float64) / number
    return made


@dataclass(frozen=True)
class Totals:
    """Sums by row, (rows, units): of values, of weights, and what a ratio's variance needs."""

    a: Floats
    d: Floats
    aa: Floats
    ad: Floats
    dd: Floats

    def others(self) -> Totals:
        """For every row, the sums of all other rows."""
        return Totals(*(p.sum(axis=0) - p for p in (self.a, self.d, self.aa, self.ad, self.dd)))

    def spread(self, number: Floats) -> tuple[Floats, Floats]:
        """Ratio of every row and its variance over `number` items: linearised."""
        rate = ratio(self.a, self.d)
        residual = np.maximum(self.aa - 2 * rate * self.ad + rate**2 * self.dd, 0.0)
        inflated = ratio(number, np.maximum(number - 1, 0))[:, None]
        return rate, ratio(residual, self.d**2) * inflated


def _totals(items: Items, values: Floats) -> Totals:
    # Squares of what happened or not are what happened: one product less.
    yes_or_no = items.alike and _whole(values)
    happened = items.total @ values
    squared = happened if yes_or_no else items.total @ values**2
    weight = items.weight[:, None]
    size = items.total @ weight
    if items.alike:
        return Totals(happened, size, squared, happened, size)
    mixed, squares = items.total @ (values * weight), items.total @ weight**2
    return Totals(happened, size, squared, mixed, squares)


def _whole(values: Floats) -> bool:
    return bool(((values == 0) | (values == 1)).all())


@dataclass(frozen=True)
class Side:
    """Values of units, (entries, units), and the sums of them and of their mean."""

    values: Floats
    each: Totals
    mean: Totals

    def parts(self, number: Floats) -> Parts:
        rate, own = self.each.spread(number)
        _, together = self.mean.spread(number)
        return _combined(rate.T, own.sum(axis=1), together[:, 0], number)


def _side(items: Items, values: Floats) -> Side:
    each = _totals(items, values)
    if values.shape[1] == 1:
        return Side(values, each, each)
    return Side(values, each, _totals(items, values.mean(axis=1)[:, None]))


def _combined(each: Floats, own: Floats, together: Floats, number: Floats) -> Parts:
    """Parts from the units' values, the sum of their variances and that of their mean."""
    k = len(each)
    others = np.maximum(number - 1, 1)
    if k == 1:  # a mean over units: only its part over examples is asked for
        return Parts(each, (np.zeros(len(number)), 1), (together, others), (together, others))
    interaction = np.maximum(own - k * together, 0.0) / (k * (k - 1))
    return Parts(
        each,
        (each.var(axis=0, ddof=1) / k, k - 1),
        (together, others),
        (interaction, (k - 1) * others),
    )


def _alone(side: Parts) -> TwoWay:
    from fairweight.auditing.intervals.two_way import two_way

    return two_way(side.each.mean(axis=0), [side.members], side.examples, [side.interaction])


def _difference(
    sides: tuple[Side, Side],
    change: Side | None,
    apart: Side | None,
    parts_of: Callable[[Side], Parts],
) -> TwoWay:
    """Of paired units their differences, else the difference of two independent sets of units.

    `apart` is the difference of the two means over units: examples are the same on both sides.
    """
    from fairweight.auditing.intervals.two_way import two_way

    if change is not None:
        return _alone(parts_of(change))
    assert apart is not None
    base, compressed = parts_of(sides[0]), parts_of(sides[1])
    return two_way(
        compressed.each.mean(axis=0) - base.each.mean(axis=0),
        [base.members, compressed.members],
        parts_of(apart).examples,
        [base.interaction, compressed.interaction],
    )


def _excess_parts(c: Comparison, items: Items, side: Side) -> Parts:
    """The same parts of each row's ratio minus the ratio of all other rows."""
    if c.clustered:
        n_units = len(c.cube.unit_names)
        each, variance = _clustered_excesses(items, side.values, n_units)
        _, together = _clustered_excesses(items, side.values.mean(axis=1)[:, None], n_units)
    else:
        each, variance = _excesses(items, side.each)
        _, together = _excesses(items, side.mean)
    return _combined(each.T, variance.sum(axis=1), together[:, 0], items.number)


def _excesses(items: Items, totals: Totals) -> tuple[Floats, Floats]:
    """Excess of every row and its variance over items, (rows, units)."""
    inside, variance = totals.spread(items.number)
    outside, outside_variance = totals.others().spread(items.number.sum() - items.number)
    return inside - outside, variance + outside_variance


def _clustered_excesses(items: Items, values: Floats, n_units: int) -> tuple[Floats, Floats]:
    """One unit of members after the other: clusters may lie in a row and outside it."""
    n_rows = items.total.shape[0]
    found, variances = [], []
    for column in values.T:
        nothing = np.zeros(len(column))
        u = Contributions(
            items.unit, items.row, nothing, column, items.weight, items.copies, n_rows, n_units
        )
        shift = ratio(u.total(column), u.total(items.weight))
        excess, error, _, _ = excess_of(u, column, shift)
        found.append(excess)
        variances.append(error**2)
    return np.stack(found, axis=1), np.stack(variances, axis=1)


def _bounded(
    found: TwoWay, number: Floats, alpha: float | Floats, bounds: tuple[float, float]
) -> Limits:
    """Limits cut at the range; where nothing varies, those of as many equal examples."""
    from scipy.special import ndtr, stdtrit

    from fairweight.auditing.intervals.linearised import equal_units_limits
    from fairweight.auditing.intervals.two_way import NO_VARIANCE

    low, high = found.limits(alpha)
    flat = (found.variance <= NO_VARIANCE) & np.isfinite(found.estimate)
    if flat.any():
        level = 2 * ndtr(stdtrit(found.degrees, np.asarray(alpha) / 2))
        same_low, same_high = equal_units_limits(found.estimate, number, level, bounds)
        low, high = np.where(flat, same_low, low), np.where(flat, same_high, high)
    return np.clip(low, *bounds), np.clip(high, *bounds)
