"""Rates where examples are not single independent trials: clusters, weights, several members.

A rate is a ratio of totals over units (clusters, or examples). Its variance comes from the units'
linearised contributions, so examples of one person, weights, and the average over members of a
population need no assumption of independence within a unit. Shifts and excesses get the wider of
that and Tango's limits on the effective size (`intervals/effective_size.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from fairweight.auditing.compare.comparison import (
    MIN_CLUSTERS,
    Comparison,
    Outcomes,
    groupings_of,
)
from fairweight.auditing.compare.estimate import (
    Estimate,
    Family,
    LimitsAt,
    Sums,
    joined,
    limits_where,
)
from fairweight.auditing.counts.counts import numbered, ratio, sums
from fairweight.auditing.intervals.effective_size import (
    INDEPENDENT,
    Clumping,
    EffectiveCounts,
    WiderExcess,
    WiderShift,
    effective_clusters,
    effective_size,
    intraclass_correlation,
)
from fairweight.auditing.intervals.units import (
    NO_VARIANCE,
    TwoWay,
    crossed_variance,
    linearised,
    linearised_variance,
    sign_flip,
)
from fairweight.auditing.metrics.registry import Metric
from fairweight.auditing.pairing import mean_of
from fairweight.base.types import Floats, Limits

Test: TypeAlias = TwoWay | WiderShift | WiderExcess  # limits at any level, and p


@dataclass(frozen=True)
class Entries:
    """What is sampled, in coordinate form: an entry is a unit's part in a row."""

    unit: NDArray[np.int64]
    row: NDArray[np.int64]
    size: Floats  # weight (× denominator) of a unit's examples in the row
    number: Floats  # how many they are
    copies: Floats  # how many equal units an entry stands for
    n_rows: int
    n_units: int | None  # None: units are examples, and entries of different rows are unrelated
    place: NDArray[np.int64] | None = None  # of every cell: its entry; None where cells are entries
    count: Floats | None = None  # examples of every cell, where cells are summed

    def total(self, values: Floats) -> Floats:
        """Sums over the units of every row."""
        return sums(self.row, values * self.copies, self.n_rows)

    def summed(self, values: Floats) -> Floats:
        """Values of cells, (cells,) or (cells, members), summed over each unit's part in a row."""
        if self.place is None or self.count is None:
            return values
        if values.ndim == 1:
            return sums(self.place, values * self.count, len(self.row))

        where = (self.place, np.arange(len(self.count)))
        shape = (len(self.row), len(self.count))
        made: Floats = coo_array((self.count, where), shape=shape).tocsr() @ values
        return made


def entries_of(
    c: Comparison,
    cells: NDArray[np.intp],
    row: NDArray[np.int64],
    n_rows: int,
    denominator: Floats | None = None,
) -> Entries:
    """Entries as cells of equal examples, or one for each unit with a part in a row."""
    cube = c.cube
    weight = np.ones(len(cells)) if cube.weight is None else cube.weight[cells]
    if denominator is not None:
        weight = weight * denominator
    count = cube.count[cells].astype(float)
    if cube.unit is None:
        return Entries(cells, row, weight, np.ones(len(cells)), count, n_rows, None)
    n_units = len(cube.unit_names)
    key, place = numbered(cube.unit[cells] * n_rows + row, n_units * n_rows)
    number = sums(place, count, len(key))
    plain = cube.weight is None and denominator is None
    size = number if plain else sums(place, weight * count, len(key))
    return Entries(
        unit=key // n_rows,
        row=key % n_rows,
        size=size,
        number=number,
        copies=np.ones(len(key)),
        n_rows=n_rows,
        n_units=n_units,
        place=place,
        count=count,
    )


@dataclass(frozen=True)
class RowTotals:
    """Sums over the units of every row, (rows,) or (rows, members), that a ratio is made of."""

    a: Floats  # of values
    d: Floats  # of sizes
    aa: Floats  # of squares and products
    ad: Floats
    dd: Floats

    @property
    def rate(self) -> Floats:
        return ratio(self.a, self.d)

    def variance(self, units: Floats) -> Floats:
        """Linearised, over so many units."""
        return linearised_variance(self.a, self.d, self.aa, self.ad, self.dd, units)

    def others(self) -> RowTotals:
        """For every row, the sums of all other rows."""
        return RowTotals(*(p.sum(axis=0) - p for p in (self.a, self.d, self.aa, self.ad, self.dd)))


@dataclass(frozen=True)
class Sizes:
    """How many units each row has, and the sums of their sizes."""

    entries: Entries
    units: Floats
    d: Floats
    dd: Floats

    def totals(self, values: Floats) -> RowTotals:
        e = self.entries
        a = e.total(values)
        ad = a if self.dd is self.d else e.total(values * e.size)
        return RowTotals(a, self.d, e.total(values**2), ad, self.dd)


def sizes_of(e: Entries, *, alike: bool) -> Sizes:
    """`alike`: every unit is one example of weight 1."""
    units = e.total(np.ones(len(e.row)))
    if alike:
        return Sizes(e, units, units, units)
    return Sizes(e, units, e.total(e.size), e.total(e.size**2))


@dataclass(frozen=True)
class Sample:
    """What each row was measured on; of a row, or of all others."""

    n: Floats  # examples
    weight: Floats  # Σ w
    squared_weight: Floats  # Σ w²
    changed: Floats  # Σ w · share of the pairs of members that changed
    clusters: Floats  # units with a part in it
    squared_sizes: Floats  # Σ m², m the examples of a unit
    pairs: int
    bound: Floats | None = None  # of two cluster columns: Σ (m̄ − 1) ICC over both

    @property
    def effective_clusters(self) -> Floats:
        return effective_clusters(self.n, self.squared_sizes)

    @property
    def mean_cluster(self) -> Floats:
        """m̄ = Σ m² / Σ m, m the predictions in a unit."""
        return ratio(self.squared_sizes * self.pairs, self.n)

    @property
    def kish(self) -> Floats:
        return ratio(self.n * self.squared_weight, self.weight**2)

    def churn(self, shift: Floats) -> Floats:
        """Share lost + share gained; at least the shift, where units count unlike pairs."""
        return np.maximum(ratio(self.changed, self.weight), np.abs(shift))

    def iid_variance(self, shift: Floats) -> Floats:
        """Variance of the shift if all predictions were independent."""
        return ratio(np.maximum(self.churn(shift) - shift**2, 0.0), self.n * self.pairs)

    def counts(self, shift: Floats, variance: Floats, clumping: Clumping) -> EffectiveCounts:
        """Lost and gained as on n_eff independent examples."""
        mean_cluster = self.mean_cluster
        if self.bound is not None:
            mean_cluster, clumping = 1 + self.bound, replace(clumping, icc=1.0)
        n = effective_size(
            self.n * self.pairs,
            self.iid_variance(shift),
            variance,
            clusters=self.clusters,
            kish=self.kish,
            mean_cluster=mean_cluster,
            clumping=clumping,
        )
        return EffectiveCounts(n, self.churn(shift), shift)


def crossed_sample(c: Comparison, samples: Sequence[Sample]) -> Sample:
    """What rows were measured on where two columns bind examples; of one column its own.

    Where both say something else, that with fewer (effective) clusters holds.
    """
    if len(samples) == 1:
        return samples[0]
    first, second = samples[:2]
    bound = [s.mean_cluster - 1 for s in (first, second)]
    iccs = [clumping_of(x).icc for x in c.bindings[:2]]
    return replace(
        first,
        clusters=np.minimum(first.clusters, second.clusters),
        squared_sizes=np.maximum(first.squared_sizes, second.squared_sizes),
        bound=bound[0] * iccs[0] + bound[1] * iccs[1],
    )


def sample_of(c: Comparison, part: Outcomes, s: Sizes) -> tuple[Sample, Sample]:
    """Every row, and all other rows of a partition."""
    cube, e = c.cube, s.entries
    count = cube.count[part.cells]
    changed = c.pairing.changed(part.numerator) if part.is_event else np.full(len(count), np.nan)
    n, squared_weight, squared_sizes = s.units, s.dd, s.units
    if cube.weight is not None:
        weight = cube.weight[part.cells]
        changed = changed * weight
    if e.n_units is not None:
        n, squared_sizes = e.total(e.number), e.total(e.number**2)
        squared_weight = n
        if cube.weight is not None:
            squared_weight = sums(part.row, count * weight**2, part.n_rows)
    sample = Sample(
        n=n,
        weight=s.d,
        squared_weight=squared_weight,
        changed=sums(part.row, count * changed, part.n_rows),
        clusters=s.units,
        squared_sizes=squared_sizes,
        pairs=len(c.pairing.pairs),
    )

    def others(values: Floats) -> Floats:
        return np.asarray(values.sum() - values)

    clusters, sizes = others(sample.clusters), others(sample.squared_sizes)
    if e.n_units is not None:  # a cluster may lie in a row and outside it
        whole = sums(e.unit, e.number, e.n_units)
        own = whole[e.unit]
        clusters = (whole > 0).sum() - e.total((own == e.number).astype(float))
        sizes = (whole**2).sum() - e.total(2 * own * e.number - e.number**2)
    rest = Sample(
        n=others(n),
        weight=others(sample.weight),
        squared_weight=others(squared_weight),
        changed=others(sample.changed),
        clusters=clusters,
        squared_sizes=sizes,
        pairs=sample.pairs,
    )
    return sample, rest


def clumping_of(c: Comparison) -> Clumping:
    """How changes of correctness go together within clusters (or examples); made once.

    Pooled over classes and the levels of single columns, unweighted. With several members the
    residuals are those of every pair of members, from the pair's own mean in the row.
    """
    known: Clumping | None = c.once.get("clumping")
    if known is not None:
        return known
    if c.crossed:  # samples know the ICC of either column
        return Clumping(1.0, min(clumping_of(x).changed for x in c.bindings[:2]))
    cube, pairs = c.cube, len(c.pairing.pairs)
    if cube.unit is None and pairs == 1:
        return INDEPENDENT
    right = cube.prediction == cube.label[:, None]
    count = cube.count.astype(float)
    before, after = c.pairing.means(right)
    change, changed = after - before, c.pairing.changed(right)
    cells = np.arange(cube.n_cells)
    rowings = [(cube.label.astype(np.int64), len(c.classes))]
    rowings += [(g.code.astype(np.int64), len(g.levels)) for g in groupings_of(c, "group")]
    parts = []
    for row, n_rows in rowings:
        e = entries_of(c, cells, row, n_rows)
        n, clusters = sums(row, count, n_rows), e.total(np.ones(len(e.row)))
        mean = ratio(sums(row, count * change, n_rows), n)
        total = pairs * (e.summed(change) - mean[e.row] * e.number)
        members = coo_array((count, (row, cells)), shape=(n_rows, len(cells))).tocsr() @ right
        own = ratio(members, n[:, None])
        # Over pairs of members, the squared differences of their rates.
        if c.pairing.paired or c.pairing.how == "single":
            first, second = np.array(c.pairing.pairs).T
            squared = ((own[:, second] - own[:, first]) ** 2).sum(axis=1)
        else:
            k = c.n_baseline
            squared = ((own[:, None, k:] - own[:, :k, None]) ** 2).sum(axis=(1, 2))
        squares = pairs * sums(row, count * changed, n_rows) - n * squared
        several = clusters > 1
        between = ratio(clusters * e.total(total**2), clusters - 1)
        sizes = pairs**2 * e.total(e.number**2), pairs * n
        parts.append([values[several] for values in (between, np.maximum(squares, 0.0), *sizes)])
    icc = intraclass_correlation(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    touched = changed > 0
    number = count[touched].sum() if cube.unit is None else len(np.unique(cube.unit[touched]))
    made = c.once["clumping"] = Clumping(icc, float(number))
    return made


def linear_rates(
    c: Comparison, metric: Metric, rows: Iterable[Outcomes], kind: str
) -> Family | None:
    """As `closed_rates`, from linearised totals per unit; None without rows."""
    families = [_family(c, metric, part, kind) for part in rows]
    return joined(families) if families else None


def share_limits(
    c: Comparison,
    share: Floats,
    row: NDArray[np.int64],
    n_rows: int,
    bounds: tuple[float, float],
) -> LimitsAt:
    """Limits of the mean of a share per cell (such as: flipped pairs of members) in each row."""
    weighted = share if c.cube.weight is None else share * c.cube.weight
    totals = []
    for x in c.bindings:
        e = entries_of(x, np.arange(c.cube.n_cells), row, n_rows)
        s = sizes_of(e, alike=c.one_each)
        totals.append((s.totals(e.summed(weighted)), s.units))
    return rate_limits(c, totals, bounds, is_event=True)


def rate_limits(
    c: Comparison,
    totals: Sequence[tuple[RowTotals, Floats]],
    bounds: tuple[float, float],
    *,
    is_event: bool,
) -> LimitsAt:
    """Linearised limits of a ratio in every row, cut at the bounds of its metric.

    Where all units are alike, shares have the limits of as many equal examples; numbers have none.

    Parameters
    ----------
    totals
        Sums over units, and their number, for each way in which examples are bound.
    """
    t = totals[0][0]
    units = fewest([units for _, units in totals])
    variance = crossed_variance([one.variance(number) for one, number in totals])

    def limits(alpha: float | Floats) -> Limits:
        return linearised(
            t.a, t.d, t.aa, t.ad, t.dd, units, alpha, bounds=bounds, variance=variance
        )[:2]

    rows = enough_units(c, units)
    return limits_where(rows if is_event else rows & (variance > 0), limits)


def fewest(units: Sequence[Floats]) -> Floats:
    """Of one or two cluster columns (and their pairs) the smaller number of clusters."""
    return units[0] if len(units) == 1 else np.minimum(units[0], units[1])


def enough_units(c: Comparison, units: Floats) -> NDArray[np.bool_]:
    return np.asarray(units >= (MIN_CLUSTERS if c.clustered else 2))


@dataclass(frozen=True)
class _Measured:
    """Rows with one way of binding examples."""

    sizes: Sizes
    before: RowTotals
    after: RowTotals
    change: RowTotals
    difference: Floats  # (entries,)
    sample: Sample
    rest: Sample


def _measured(c: Comparison, part: Outcomes) -> _Measured:
    e = entries_of(c, part.cells, part.row, part.n_rows, part.denominator)
    s = sizes_of(e, alike=c.one_each and part.denominator is None)
    k = c.n_baseline
    baseline, compressed = (
        mean_of(side) for side in (part.numerator[:, :k], part.numerator[:, k:])
    )
    if c.cube.weight is not None:
        each = c.cube.weight[part.cells]
        baseline, compressed = baseline * each, compressed * each
    baseline, compressed = e.summed(baseline), e.summed(compressed)
    difference = compressed - baseline
    before, after, change = (s.totals(x) for x in (baseline, compressed, difference))
    return _Measured(s, before, after, change, difference, *sample_of(c, part, s))


def _family(c: Comparison, metric: Metric, part: Outcomes, kind: str) -> Family:
    ways, bounds = [_measured(x, part) for x in c.bindings], (metric.low, metric.high)
    first = ways[0]
    e, units = first.sizes.entries, fewest([way.sizes.units for way in ways])
    sample = crossed_sample(c, [way.sample for way in ways])
    rest = crossed_sample(c, [way.rest for way in ways])
    variance = crossed_variance([way.change.variance(way.sizes.units) for way in ways])
    t = TwoWay(first.change.rate, variance, np.maximum(units - 1, 1))
    shift = shift_test(c, part, t, sample)
    enough = enough_units(c, units)
    both = enough & enough_units(c, rest.clusters)
    excess: Test | None = None
    if part.partition and kind in ("class", "group", "intersection"):
        found = [excess_of(way.sizes, way.difference, way.change) for way in ways]
        smaller = np.minimum(sample.effective_clusters, rest.effective_clusters)
        degrees = np.maximum(smaller - 1, 1.0)
        t_excess = TwoWay(found[0][0], crossed_variance([v for _, v in found]), degrees)
        excess = excess_test(c, part, t_excess, t.estimate, degrees, sample, rest)
    p_value = None
    if e.n_units is not None and not c.crossed:  # of a shift of 0: whole clusters' signs flip
        where = (e.unit, e.row)
        per_unit = coo_array((first.difference, where), shape=(e.n_units, e.n_rows)).tocsc()
        p_value = sign_flip(per_unit, rng=c.rng("sign flip"))
    weight = c.cube.amount[part.cells].astype(float)
    where, shape = (part.row, np.arange(len(weight))), (part.n_rows, len(weight))
    own = coo_array((weight, where), shape=shape).tocsr() @ part.numerator.astype(np.float64)
    sized = weight if part.denominator is None else weight * part.denominator
    members = ratio(own.T, sums(part.row, sized, part.n_rows))
    nothing = np.full(part.n_rows, np.nan)
    design_effect = nothing
    if part.is_event:
        # Never from the row's own result: what examples are worth where nothing is known of it.
        expected = sample.counts(t.estimate, np.zeros(part.n_rows), clumping_of(c)).n
        design_effect = ratio(sample.n, expected)
    before_limits, after_limits = (
        rate_limits(c, totals, bounds, is_event=part.is_event)
        for totals in (
            [(way.before, way.sizes.units) for way in ways],
            [(way.after, way.sizes.units) for way in ways],
        )
    )
    return Family(
        metric,
        part.slots,
        sample.n,
        Estimate.closed(first.after.rate, after_limits),
        Estimate.closed(first.before.rate, before_limits),
        estimate_of(shift, enough, p_value),
        estimate_of(excess, both),
        n_clusters=units if c.cube.unit_is_cluster else nothing,
        interval=interval_names(c, part, f"linearised t over {units_name(c)}", sample),
        members=members,
        sums=Sums(
            zero_p=np.where(enough, shift.p_value, np.nan),
            discordance=ratio(sample.changed, sample.weight),
            design_effect=design_effect,
        ),
    )


def units_name(c: Comparison) -> str:
    """What is sampled."""
    return "two columns of clusters" if c.crossed else "clusters" if c.clustered else "examples"


def shift_test(c: Comparison, part: Outcomes, t: TwoWay, sample: Sample) -> Test:
    """Student's t of a shift; of events the wider of it and Tango's limits on effective counts."""
    if not part.is_event:
        return t
    counts = sample.counts(t.estimate, t.variance, clumping_of(c))
    return WiderShift(t, counts, tango_degrees(c, sample))


def excess_test(
    c: Comparison,
    part: Outcomes,
    t: TwoWay,
    shift: Floats,
    degrees: Floats,
    sample: Sample,
    rest: Sample,
) -> Test:
    """Student's t of an excess; of events the wider of it and MOVER on effective counts.

    Both sides' sizes are divided by how much larger the variance of the excess is than that of
    independent predictions: what clusters or members do to both sides alike is no part of it.
    """
    if not part.is_event:
        return t
    clumping, rest_shift = clumping_of(c), shift - t.estimate
    own = ratio(t.variance, sample.iid_variance(shift) + rest.iid_variance(rest_shift))
    sides = []
    for side, change in ((sample, shift), (rest, rest_shift)):
        inflated = side.n * side.pairs / np.maximum(np.maximum(1.0, side.kish), own)
        pooled = side.counts(change, np.zeros(len(change)), clumping).n  # nothing changed anywhere
        n = np.where(np.isnan(own), pooled, inflated)
        sides.append(EffectiveCounts(n, side.churn(change), change))
    return WiderExcess(t, sides[0], sides[1], degrees)


def estimate_of(test: Test | None, rows: NDArray[np.bool_], p: Floats | None = None) -> Estimate:
    """A shift or an excess of the rows that have units enough; none at all without a test.

    Numbers that never vary say nothing about the next example: they have no limits.
    """
    if test is None:
        nothing = np.full(len(rows), np.nan)
        return Estimate.closed(nothing, limits_where(rows, None), nothing)
    varies = rows
    if isinstance(test, TwoWay):
        value, varies = test.estimate, rows & (test.variance > NO_VARIANCE)
    else:
        value = test.t.estimate
    p = np.where(rows, test.p_value if p is None else p, np.nan)
    return Estimate.closed(value, limits_where(varies, test.limits), p)


def interval_names(
    c: Comparison, part: Outcomes, name: str, sample: Sample
) -> NDArray[np.object_] | str:
    """What the limits of each row are, and what they assume.

    Rows without a change whose effective size rests on the changes of other rows say so.
    """
    if not part.is_event:
        return name
    name = f"wider of {name} and Tango on n_eff"
    several = sample.squared_sizes * sample.pairs > sample.n
    known = not clumping_of(c).unknown
    assumed = (sample.changed == 0) & several & (sample.n > 0) & known
    longer = f"{name}; assumes losses clump here as elsewhere"
    return np.where(assumed, longer, name).astype(object)


def tango_degrees(c: Comparison, sample: Sample) -> Floats:
    """Degrees of freedom of Tango's quantile: of clusters or weighted examples; else normal."""
    if not c.clustered and not c.one_pair:
        return np.full(len(sample.n), np.inf)
    return np.maximum(sample.effective_clusters - 1, 1.0)


def excess_of(s: Sizes, difference: Floats, change: RowTotals) -> tuple[Floats, Floats]:
    """Shift of each row minus the shift of all other rows, and the variance of that excess.

    The influence of a unit on the excess of row g is its part in g minus its part in the rest;
    units without a part in g enter through the rest alone. So groups may vary inside clusters.
    """
    e, rest = s.entries, change.others()
    shift, rest_shift = change.rate, rest.rate
    if e.n_units is None:
        n_units = s.units.sum()
        squares = sum(
            t.variance(units) * ratio(units - 1, units)
            for t, units in ((change, s.units), (rest, n_units - s.units))
        )
        return shift - rest_shift, squares * n_units / (n_units - 1)
    unit_m = sums(e.unit, difference, e.n_units)
    unit_d = sums(e.unit, e.size, e.n_units)
    n_units = len(np.unique(e.unit))
    own_m, own_d = unit_m[e.unit], unit_d[e.unit]
    mm, md, dd = (unit_m**2).sum(), (unit_m * unit_d).sum(), (unit_d**2).sum()
    g = e.row
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = (difference - shift[g] * e.size) / change.d[g]
        outside = ((own_m - difference) - rest_shift[g] * (own_d - e.size)) / rest.d[g]
        as_rest = (own_m - rest_shift[g] * own_d) / rest.d[g]
        all_as_rest = (mm - 2 * rest_shift * md + rest_shift**2 * dd) / rest.d**2
        elsewhere = np.maximum(all_as_rest - e.total(as_rest**2), 0)
        squares = elsewhere + e.total((inside - outside) ** 2)
    unbiased = n_units / (n_units - 1) if n_units > 1 else np.nan
    return shift - rest_shift, squares * unbiased
