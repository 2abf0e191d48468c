"""Rates for scope `method`: members and examples (or clusters) are both sampled.

Rates have two-way t limits. Shifts and excesses have the wider of these and Tango's limits on the
effective size, in which the variance of the two-way t stands for the linearised one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.special import ndtr, stdtrit

from fairweight.auditing.compare.comparison import Comparison, Outcomes
from fairweight.auditing.compare.estimate import (
    Estimate,
    Family,
    LimitsAt,
    Sums,
    joined,
    limits_where,
)
from fairweight.auditing.compare.linear import (
    RowTotals,
    Sample,
    Sizes,
    Test,
    enough_units,
    entries_of,
    estimate_of,
    excess_of,
    excess_test,
    interval_names,
    sample_of,
    shift_test,
    sizes_of,
    tango_degrees,
)
from fairweight.auditing.counts.counts import EXACT_SINGLE, ratio
from fairweight.auditing.intervals.units import (
    NO_VARIANCE,
    Term,
    TwoWay,
    equal_units_limits,
    two_way,
)
from fairweight.auditing.metrics.registry import Metric
from fairweight.base.types import Floats, Limits


def interval_name(c: Comparison) -> str:
    return f"two-way t over members and {'clusters' if c.cube.unit_is_cluster else 'examples'}"


def method_rates(
    c: Comparison, metric: Metric, rows: Iterable[Outcomes], kind: str
) -> Family | None:
    """As `linear_rates`, about the method; None without rows."""
    families = [_family(c, metric, part, kind) for part in rows]
    return joined(families) if families else None


@dataclass(frozen=True)
class Items:
    """What is sampled, with every member's values."""

    sizes: Sizes
    total: csr_array  # (rows, entries): sums entries by row, copies counted
    happened: Floats  # (entries, members): weight × numerator; single precision where it is exact
    alike: bool  # every item is one example of weight 1

    @property
    def number(self) -> Floats:
        """Items in each row."""
        return self.sizes.units


@dataclass(frozen=True)
class VarianceParts:
    """A mean over units and items, and the parts of its variance, (rows,)."""

    each: Floats  # (units, rows)
    members: Term
    examples: Term
    interaction: Term


def _family(c: Comparison, metric: Metric, part: Outcomes, kind: str) -> Family:
    items = _items(c, part.cells, part.row, part.n_rows, part.numerator, part.denominator)
    first, second = (_averaged(items.happened, w) for w in (c.pairing.first, c.pairing.second))
    sides = _side(items, first), _side(items, second)
    base, compressed = (side.parts(items.number) for side in sides)
    if c.pairing.paired:
        compared = [_side(items, second - first)]
    else:
        compared = [*sides, _side(items, _mean(second) - _mean(first))]
    sample, rest = sample_of(c, part, items.sizes)
    t = _difference([side.parts(items.number) for side in compared])
    shift = shift_test(c, part, t, sample)
    enough = enough_units(c, items.number)
    both = enough & enough_units(c, rest.clusters)
    excess: Test | None = None
    if part.partition and kind in ("class", "group", "intersection"):
        t_excess = _difference([_contrast(c, items, side, sample, rest) for side in compared])
        fewest = np.minimum(tango_degrees(c, sample), tango_degrees(c, rest))
        excess = excess_test(c, part, t_excess, t.estimate, fewest, sample, rest)
    nothing, bounds = np.full(part.n_rows, np.nan), (metric.low, metric.high)

    def rate(side: VarianceParts) -> Estimate:
        limits = _bounded(_alone(side), items.number, bounds, is_event=part.is_event)
        return Estimate.closed(side.each.mean(axis=0), limits_where(enough, limits))

    estimate = estimate_of(shift, enough)
    assert estimate.p is not None
    return Family(
        metric,
        part.slots,
        sample.n,
        rate(compressed),
        rate(base),
        estimate,
        estimate_of(excess, both),
        n_clusters=items.number if c.cube.unit_is_cluster else nothing,
        interval=interval_names(c, part, interval_name(c), sample),
        members=ratio((items.total @ items.happened).T, items.sizes.d),
        sums=Sums(estimate.p, ratio(sample.changed, sample.weight), nothing),
    )


def share_by_unit(
    c: Comparison,
    shares: list[Floats],
    row: NDArray[np.int64],
    n_rows: int,
    bounds: tuple[float, float],
) -> tuple[Floats, LimitsAt]:
    """Mean of a share per cell and unit, (cells, units), with its two-way limits.

    With two lists of units (every pair of two sides' members was looked at) both vary; their
    interactions are not taken off, which is on the wide side.
    """
    cells = np.arange(c.cube.n_cells)
    items = [_items(c, cells, row, n_rows, share) for share in shares]
    sides = [_side(one, one.happened).parts(one.number) for one in items]
    taken_off = [side.interaction for side in sides] if len(sides) == 1 else []
    members = [side.members for side in sides]
    found = two_way(sides[0].each.mean(axis=0), members, sides[0].examples, taken_off)
    number = items[0].number
    limits = _bounded(found, number, bounds, is_event=True)
    return found.estimate, limits_where(enough_units(c, number), limits)


def _items(
    c: Comparison,
    cells: NDArray[np.intp],
    row: NDArray[np.int64],
    n_rows: int,
    numerator: NDArray[np.bool_] | Floats,
    denominator: Floats | None = None,
) -> Items:
    entries = entries_of(c, cells, row, n_rows, denominator)
    alike = c.one_each and denominator is None
    values = numerator if c.cube.weight is None else numerator * c.cube.weight[cells][:, None]
    single = alike and values.dtype == np.bool_ and entries.copies.sum() < EXACT_SINGLE
    kind = np.float32 if single else np.float64
    happened = entries.summed(np.asarray(values, dtype=kind))
    where = (entries.row, np.arange(len(entries.row)))
    copies = entries.copies.astype(kind)
    total = coo_array((copies, where), shape=(n_rows, len(entries.row))).tocsr()
    return Items(sizes_of(entries, alike=alike), total, happened, alike)


def _averaged(happened: Floats, weights: Floats) -> Floats:
    """Values of units, (entries, units), from values of members."""
    number = (weights > 0).sum(axis=1)
    if (number == 1).all():
        each: Floats = np.take(happened, weights.argmax(axis=1), axis=1)
        return each
    # Summed before it is divided: six children that are all right are right exactly once.
    made: Floats = happened @ (weights > 0).T.astype(np.float64) / number
    return made


def _totals(items: Items, values: Floats) -> RowTotals:
    # Squares of what happened or not are what happened: one product less.
    yes_or_no = items.alike and bool(((values == 0) | (values == 1)).all())
    happened = (items.total @ values).astype(np.float64, copy=False)
    squared = happened if yes_or_no else (items.total @ values**2).astype(np.float64, copy=False)
    mixed = happened if items.alike else items.total @ (values * items.sizes.entries.size[:, None])
    return RowTotals(happened, items.sizes.d[:, None], squared, mixed, items.sizes.dd[:, None])


@dataclass(frozen=True)
class SideSums:
    """Values of units, (entries, units), and the sums of them and of their mean."""

    values: Floats
    each: RowTotals
    mean: RowTotals

    def parts(self, number: Floats) -> VarianceParts:
        """Of the mean over units, over `number` items."""
        own, together = (totals.variance(number[:, None]) for totals in (self.each, self.mean))
        return _combined(self.each.rate.T, own.sum(axis=1), together[:, 0], number)


def _side(items: Items, values: Floats) -> SideSums:
    each = _totals(items, values)
    if values.shape[1] == 1:
        return SideSums(values, each, each)
    return SideSums(values, each, _totals(items, _mean(values)))


def _mean(values: Floats) -> Floats:
    """Over units, (entries, 1)."""
    mean: Floats = values.mean(axis=1, dtype=np.float64, keepdims=True)
    return mean


def _combined(each: Floats, own: Floats, together: Floats, number: Floats) -> VarianceParts:
    """Parts from the units' values, the sum of their variances and that of their mean."""
    k = len(each)
    others = np.maximum(number - 1, 1)
    if k == 1:  # a mean over units: only its part over examples is asked for
        return VarianceParts(each, _spread_of_units(each), (together, others), (together, others))
    interaction = np.maximum(own - k * together, 0.0) / (k * (k - 1))
    return VarianceParts(
        each, _spread_of_units(each), (together, others), (interaction, (k - 1) * others)
    )


def _spread_of_units(each: Floats) -> Term:
    """s² of the units' values over their number; 0 of a single mean."""
    k = len(each)
    return (np.zeros(each.shape[1]), 1) if k == 1 else (each.var(axis=0, ddof=1) / k, k - 1)


def _alone(side: VarianceParts) -> TwoWay:
    return two_way(side.each.mean(axis=0), [side.members], side.examples, [side.interaction])


def _difference(compared: list[VarianceParts]) -> TwoWay:
    """Of paired units their differences, else the difference of two independent sets of units.

    There the third part is the difference of the two means over units: examples are the same on
    both sides.
    """
    if len(compared) == 1:
        return _alone(compared[0])
    base, compressed, apart = compared
    return two_way(
        compressed.each.mean(axis=0) - base.each.mean(axis=0),
        [base.members, compressed.members],
        apart.examples,
        [base.interaction, compressed.interaction],
    )


def _contrast(
    c: Comparison, items: Items, side: SideSums, sample: Sample, rest: Sample
) -> VarianceParts:
    """Parts of each row's ratio minus the ratio of all other rows."""
    if c.clustered:
        # A cluster may lie in a row and outside it: both of its parts are one difference, and the
        # side with fewer clusters decides.
        fewest = np.minimum(sample.effective_clusters, rest.effective_clusters)
        columns = [*side.values.T, side.values.mean(axis=1)]
        found = [excess_of(items.sizes, x, items.sizes.totals(x)) for x in columns]
        each, own = (np.stack(values) for values in zip(*found[:-1], strict=True))
        return _combined(each, own.sum(axis=0), found[-1][1], fewest)
    inside = side.parts(items.number)
    others = SideSums(side.values, side.each.others(), side.mean.others())
    outside = others.parts(rest.clusters)
    each = inside.each - outside.each
    return VarianceParts(
        each,
        _spread_of_units(each),
        _added(inside.examples, outside.examples),
        _added(inside.interaction, outside.interaction),
    )


def _added(one: Term, other: Term) -> Term:
    """The sum of two independent parts of a variance, degrees of freedom after Satterthwaite."""
    (a, m), (b, n) = ((np.asarray(v, float), np.asarray(d, float)) for v, d in (one, other))
    with np.errstate(invalid="ignore", divide="ignore"):
        degrees = (a + b) ** 2 / (a**2 / m + b**2 / n)
    return a + b, np.where(np.isfinite(degrees), degrees, np.minimum(m, n))


def _bounded(
    found: TwoWay, number: Floats, bounds: tuple[float, float], *, is_event: bool
) -> LimitsAt:
    """Limits of a rate, cut at the bounds of its metric.

    Where nothing varies, shares have the limits of as many equal examples; numbers have none.
    """

    flat = (found.variance <= NO_VARIANCE) & np.isfinite(found.estimate)

    def limits(alpha: float | Floats) -> Limits:
        low, high = found.limits(alpha)
        if flat.any():
            same_low = same_high = np.array(np.nan)
            if is_event:
                level = 2 * ndtr(stdtrit(found.degrees, np.asarray(alpha) / 2))
                same_low, same_high = equal_units_limits(found.estimate, number, level, bounds)
            low, high = np.where(flat, same_low, low), np.where(flat, same_high, high)
        return np.clip(low, *bounds), np.clip(high, *bounds)

    return limits
