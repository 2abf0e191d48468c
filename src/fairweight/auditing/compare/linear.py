"""Rates where examples are not single independent trials: clusters, weights, several members.

A rate is a ratio of totals over units (clusters, or examples). Its variance comes from the units'
linearised contributions, so examples of one person, weights, and the average over members of a
population need no assumption of independence within a unit. Shifts and excesses get the wider of
that and Tango's limits on the effective size (`intervals/effective_size.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import (
    MIN_CLUSTERS,
    Comparison,
    EventRows,
    groupings_of,
    join_slots,
)
from fairweight.auditing.compare.estimate import RateEstimate, limits_where
from fairweight.auditing.counts.counts import ratio, sums
from fairweight.auditing.pairing import mean_of
from fairweight.base.types import Floats, Limits

if TYPE_CHECKING:
    from fairweight.auditing.intervals.effective_size import Clumping, EffectiveCounts, WiderExcess
    from fairweight.auditing.intervals.units import TwoWay


@dataclass(frozen=True)
class Entries:
    """What is sampled, in coordinate form: an entry is a unit's part in a row."""

    unit: NDArray[np.int64]
    row: NDArray[np.int64]
    size: Floats  # weight of a unit's examples in the row
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
        from scipy.sparse import coo_array

        where = (self.place, np.arange(len(self.count)))
        shape = (len(self.row), len(self.count))
        made: Floats = coo_array((self.count, where), shape=shape).tocsr() @ values
        return made


def entries_of(
    c: Comparison, cells: NDArray[np.intp], row: NDArray[np.int64], n_rows: int
) -> Entries:
    """Entries as cells of equal examples, or one for each unit with a part in a row."""
    cube = c.cube
    weight = np.ones(len(cells)) if cube.weight is None else cube.weight[cells]
    count = cube.count[cells].astype(float)
    if cube.unit is None:
        return Entries(cells, row, weight, np.ones(len(cells)), count, n_rows, None)
    n_units = len(cube.unit_names)
    key, place = _distinct(cube.unit[cells] * n_rows + row, n_units * n_rows)
    number = sums(place, count, len(key))
    size = number if cube.weight is None else sums(place, weight * count, len(key))
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


def _distinct(key: NDArray[np.int64], largest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sorted distinct keys and the place of each key among them; counted where keys are dense."""
    if largest <= 4 * len(key):
        present = np.bincount(key, minlength=largest) > 0
        return np.flatnonzero(present), (np.cumsum(present) - 1)[key]
    distinct, place = np.unique(key, return_inverse=True)
    return distinct, place.reshape(-1)


@dataclass(frozen=True)
class Totals:
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
        from fairweight.auditing.intervals.units import linearised_variance

        return linearised_variance(self.a, self.d, self.aa, self.ad, self.dd, units)

    def others(self) -> Totals:
        """For every row, the sums of all other rows."""
        return Totals(*(p.sum(axis=0) - p for p in (self.a, self.d, self.aa, self.ad, self.dd)))


@dataclass(frozen=True)
class Sizes:
    """How many units each row has, and the sums of their sizes."""

    entries: Entries
    units: Floats
    d: Floats
    dd: Floats

    def totals(self, values: Floats) -> Totals:
        e = self.entries
        a = e.total(values)
        ad = a if self.dd is self.d else e.total(values * e.size)
        return Totals(a, self.d, e.total(values**2), ad, self.dd)


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

    @property
    def effective_clusters(self) -> Floats:
        from fairweight.auditing.intervals.effective_size import effective_clusters

        return effective_clusters(self.n, self.squared_sizes)

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
        from fairweight.auditing.intervals.effective_size import EffectiveCounts, effective_size

        n = effective_size(
            self.n * self.pairs,
            self.iid_variance(shift),
            variance,
            clusters=self.clusters,
            kish=self.kish,
            mean_cluster=ratio(self.squared_sizes * self.pairs, self.n),
            clumping=clumping,
        )
        return EffectiveCounts(n, self.churn(shift), shift)


def sample_of(c: Comparison, part: EventRows, s: Sizes) -> tuple[Sample, Sample]:
    """Every row, and all other rows of a partition."""
    cube, e = c.cube, s.entries
    changed, count = c.pairing.changed(part.happens), cube.count[part.cells]
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
    if "clumping" not in c.once:
        c.once["clumping"] = _clumping(c)
    made: Clumping = c.once["clumping"]
    return made


def _clumping(c: Comparison) -> Clumping:
    from scipy.sparse import coo_array

    from fairweight.auditing.intervals.effective_size import (
        INDEPENDENT,
        Clumping,
        intraclass_correlation,
    )

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
        squares = pairs * sums(row, count * changed, n_rows) - n * _squared_changes(c, own)
        several = clusters > 1
        between = ratio(clusters * e.total(total**2), clusters - 1)
        sizes = pairs**2 * e.total(e.number**2), pairs * n
        parts.append([values[several] for values in (between, np.maximum(squares, 0.0), *sizes)])
    icc = intraclass_correlation(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    if cube.unit is None:
        return Clumping(icc, float(count[changed > 0].sum()))
    return Clumping(icc, float(len(np.unique(cube.unit[changed > 0]))))


def _squared_changes(c: Comparison, rates: Floats) -> Floats:
    """Sum over pairs of the squared difference of two members' rates, (rows,)."""
    if c.pairing.paired or c.pairing.how == "single":
        first, second = np.array(c.pairing.pairs).T
        made: Floats = ((rates[:, second] - rates[:, first]) ** 2).sum(axis=1)
        return made
    before, after = rates[:, : c.n_baseline], rates[:, c.n_baseline :]
    each = (after[:, None, :] - before[:, :, None]) ** 2
    every: Floats = each.sum(axis=(1, 2))
    return every


def linear_rates(c: Comparison, rows: Iterable[EventRows], kind: str) -> RateEstimate | None:
    """As `closed_rates`, from linearised totals per unit; None without rows."""
    estimates = [_estimate(c, part, kind) for part in rows]
    return joined_estimates(estimates, kind) if estimates else None


def _of_members(c: Comparison, part: EventRows) -> Floats:
    """Every member's own rate, (members, rows)."""
    from scipy.sparse import coo_array

    weight = c.cube.count[part.cells].astype(float)
    if c.cube.weight is not None:
        weight *= c.cube.weight[part.cells]
    place = (part.row, np.arange(len(weight)))
    total = coo_array((weight, place), shape=(part.n_rows, len(weight))).tocsr()
    size = sums(part.row, weight, part.n_rows)
    return ratio((total @ part.happens.astype(np.float64)).T, size)


def share_limits(
    c: Comparison, share: Floats, row: NDArray[np.int64], n_rows: int, alpha: float | Floats
) -> Limits:
    """Limits of the mean of a share per cell (such as: flipped pairs of members) in each row."""
    e = entries_of(c, np.arange(c.cube.n_cells), row, n_rows)
    s = sizes_of(e, alike=c.one_each)
    weighted = share if c.cube.weight is None else share * c.cube.weight
    return _rate_limits(c, s.totals(e.summed(weighted)), s.units)(alpha)


def _rate_limits(c: Comparison, t: Totals, units: Floats) -> Callable[[float | Floats], Limits]:
    """Linearised limits of a rate in every row."""
    from fairweight.auditing.intervals.units import linearised

    def limits(alpha: float | Floats) -> Limits:
        return linearised(t.a, t.d, t.aa, t.ad, t.dd, units, alpha)[:2]

    return limits_where(enough_units(c, units), limits)


def enough_units(c: Comparison, units: Floats) -> NDArray[np.bool_]:
    return np.asarray(units >= (MIN_CLUSTERS if c.clustered else 2))


def _estimate(c: Comparison, part: EventRows, kind: str) -> RateEstimate:
    from fairweight.auditing.intervals.effective_size import WiderShift
    from fairweight.auditing.intervals.units import TwoWay

    e = entries_of(c, part.cells, part.row, part.n_rows)
    s = sizes_of(e, alike=c.one_each)
    k = c.n_baseline
    baseline, compressed = (mean_of(side) for side in (part.happens[:, :k], part.happens[:, k:]))
    if c.cube.weight is not None:
        weight = c.cube.weight[part.cells]
        baseline, compressed = baseline * weight, compressed * weight
    baseline, compressed = e.summed(baseline), e.summed(compressed)
    difference = compressed - baseline
    before, after, change = (s.totals(x) for x in (baseline, compressed, difference))
    sample, rest = sample_of(c, part, s)
    clumping = clumping_of(c)
    shift, variance = change.rate, change.variance(s.units)
    t = TwoWay(shift, variance, np.maximum(s.units - 1, 1))
    wider = WiderShift(t, sample.counts(shift, variance, clumping), tango_degrees(c, sample))
    enough = enough_units(c, s.units)
    nothing = np.full(part.n_rows, np.nan)
    excess: WiderExcess | None = None
    both = enough & enough_units(c, rest.clusters)
    if part.partition and kind in ("class", "group", "intersection"):
        found = excess_of(s, difference, change)
        fewest = np.minimum(sample.effective_clusters, rest.effective_clusters)
        degrees = np.maximum(fewest - 1, 1.0)
        t_excess = TwoWay(found.value, found.variance, degrees)
        excess = wider_excess(t_excess, shift, degrees, sample, rest, clumping)
    p_value = wider.p_value if e.n_units is None else _sign_flips(c, e, difference)
    # Never from the row's own result: what so many examples are worth where nothing is known of it.
    expected = sample.counts(shift, np.zeros(part.n_rows), clumping).n
    return RateEstimate(
        slots=part.slots,
        n=sample.n,
        n_clusters=s.units if c.cube.unit_is_cluster else nothing,
        baseline=before.rate,
        compressed=after.rate,
        shift=shift,
        p_value=np.where(enough, p_value, np.nan),
        zero_p=np.where(enough, wider.p_value, np.nan),
        excess=nothing if excess is None else excess.t.estimate,
        excess_p=nothing if excess is None else np.where(both, excess.p_value, np.nan),
        discordance=ratio(sample.changed, sample.weight),
        design_effect=ratio(sample.n, expected),
        baseline_limits=_rate_limits(c, before, s.units),
        compressed_limits=_rate_limits(c, after, s.units),
        limits=limits_where(enough, wider.limits),
        excess_limits=limits_where(both, None if excess is None else excess.limits),
        interval=f"wider of linearised t over {'clusters' if c.clustered else 'examples'} "
        "and Tango on n_eff",
        members=_of_members(c, part),
        assumed=assumed_rows(sample, clumping),
    )


def tango_degrees(c: Comparison, sample: Sample) -> Floats:
    """Degrees of freedom of Tango's quantile: of clusters or weighted examples; else normal."""
    if not c.clustered and not c.one_pair:
        return np.full(len(sample.n), np.inf)
    return np.maximum(sample.effective_clusters - 1, 1.0)


def assumed_rows(sample: Sample, clumping: Clumping) -> NDArray[np.bool_]:
    """Rows without a change whose effective size rests on the changes of other rows."""
    several = sample.squared_sizes * sample.pairs > sample.n
    return np.asarray((sample.changed == 0) & several & (sample.n > 0) & (not clumping.unknown))


def wider_excess(
    t: TwoWay,
    shift: Floats,
    degrees: Floats,
    sample: Sample,
    rest: Sample,
    clumping: Clumping,
) -> WiderExcess:
    """Student's t of an excess, or MOVER on both sides' effective counts.

    Both sides' sizes are divided by how much larger the variance of the excess is than that of
    independent predictions: what clusters or members do to both sides alike is no part of it.
    """
    from fairweight.auditing.intervals.effective_size import EffectiveCounts, WiderExcess

    rest_shift = shift - t.estimate
    own = ratio(t.variance, sample.iid_variance(shift) + rest.iid_variance(rest_shift))
    sides = []
    for side, change in ((sample, shift), (rest, rest_shift)):
        inflated = side.n * side.pairs / np.maximum(np.maximum(1.0, side.kish), own)
        pooled = side.counts(change, np.zeros(len(change)), clumping).n  # nothing changed anywhere
        n = np.where(np.isnan(own), pooled, inflated)
        sides.append(EffectiveCounts(n, side.churn(change), change))
    return WiderExcess(t, sides[0], sides[1], degrees)


def _sign_flips(c: Comparison, e: Entries, difference: Floats) -> Floats:
    """p of a shift of 0: signs of whole clusters are flipped."""
    from scipy.sparse import coo_array

    from fairweight.auditing.intervals.units import sign_flip

    per_unit = coo_array((difference, (e.unit, e.row)), shape=(e.n_units, e.n_rows)).tocsc()
    return sign_flip(per_unit, rng=c.rng("sign flip"))


@dataclass(frozen=True)
class Excess:
    """Shift of each row minus the shift of all other rows, with its linearised variance."""

    shift: Floats
    rest_shift: Floats
    variance: Floats  # of the excess

    @property
    def value(self) -> Floats:
        return self.shift - self.rest_shift


def excess_of(s: Sizes, difference: Floats, change: Totals) -> Excess:
    """The excess of every row of a partition, from differences by entry and their totals.

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
        return Excess(shift, rest_shift, squares * n_units / (n_units - 1))
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
    return Excess(shift, rest_shift, squares * unbiased)


def joined_estimates(parts: list[RateEstimate], kind: str) -> RateEstimate:
    """Tables of several groupings as one, so that a family is one table."""
    if len(parts) == 1:
        return parts[0]

    def joined(name: str) -> Floats:
        return np.concatenate([getattr(part, name) for part in parts])

    ends = np.cumsum([len(part.n) for part in parts])

    def limits_of(name: str, alpha: float | Floats) -> Limits:
        # A level for every row is shared out; levels for all rows are not.
        own = np.shape(alpha)[-1:] == (ends[-1],)
        levels = np.split(alpha, ends[:-1], axis=-1) if own else [alpha] * len(parts)
        both = [getattr(part, name)(level) for part, level in zip(parts, levels, strict=True)]
        return tuple(np.concatenate([b[i] for b in both], axis=-1) for i in (0, 1))  # type: ignore[return-value]

    return RateEstimate(
        slots=join_slots([part.slots for part in parts], kind),
        n=joined("n"),
        n_clusters=joined("n_clusters"),
        baseline=joined("baseline"),
        compressed=joined("compressed"),
        shift=joined("shift"),
        p_value=joined("p_value"),
        zero_p=joined("zero_p"),
        excess=joined("excess"),
        excess_p=joined("excess_p"),
        discordance=joined("discordance"),
        design_effect=joined("design_effect"),
        baseline_limits=lambda alpha: limits_of("baseline_limits", alpha),
        compressed_limits=lambda alpha: limits_of("compressed_limits", alpha),
        limits=lambda alpha: limits_of("limits", alpha),
        excess_limits=lambda alpha: limits_of("excess_limits", alpha),
        interval=parts[0].interval,
        members=np.concatenate([part.members for part in parts], axis=1),
        assumed=np.concatenate([_assumed(part) for part in parts]),
    )


def _assumed(part: RateEstimate) -> NDArray[np.bool_]:
    return np.zeros(len(part.n), bool) if part.assumed is None else part.assumed
