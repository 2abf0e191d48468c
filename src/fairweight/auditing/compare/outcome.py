"""Rows of an outcome: shares of 0 and 1, or ratios of sums, overall, by group and intersection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.special import ndtr

from fairweight.auditing.compare.comparison import (
    Comparison,
    Outcomes,
    Slots,
    event_outcomes,
    groupings_of,
    slots_of,
)
from fairweight.auditing.compare.estimate import (
    Block,
    Estimate,
    Family,
    LimitsAt,
    Sums,
    joined,
    limits_where,
    status,
    without_limits,
)
from fairweight.auditing.compare.lead import mean_test
from fairweight.auditing.compare.linear import (
    enough_units,
    entries_of,
    rate_limits,
    sizes_of,
)
from fairweight.auditing.compare.retraining import context, difference
from fairweight.auditing.compare.rows import Built, build, rates, scopes
from fairweight.auditing.compare.simultaneous import MeanFamily
from fairweight.auditing.compare.task_mean import mean_heterogeneity
from fairweight.auditing.compare.two_way import method_rates
from fairweight.auditing.counts.counts import ratio, sums
from fairweight.auditing.counts.cube import pair_values
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.intervals.excess import excess_interval, excess_test
from fairweight.auditing.intervals.proportion import tango, tango_test
from fairweight.auditing.intervals.ratio import (
    N_CHANGED,
    RatioExcess,
    RatioShift,
    RatioSums,
    UsualChange,
    examples_for,
    min_detectable_change,
    products_of,
)
from fairweight.auditing.metrics.outcomes import KINDS
from fairweight.auditing.metrics.registry import Metric, metric
from fairweight.base.types import Floats, Limits


def outcome_metric(c: Comparison) -> Metric:
    """The metric that an outcome is reported as."""
    assert c.cube.outcome is not None
    return metric(c.cube.outcome.role.metric)


def outcome_rows(c: Comparison) -> Iterator[Built]:
    """Rows about these models and, for populations, about the method."""
    entry = outcome_metric(c)
    for kind in KINDS:
        yield from _shares(c, entry, kind) if entry.event is not None else _numbers(c, entry, kind)


def _shares(c: Comparison, entry: Metric, kind: str) -> Iterator[Built]:
    """Outcomes that are 0 or 1: what predictions give, row by row."""
    assert entry.event is not None
    (family,) = rates(c, [(entry, kind)])
    if family is not None:
        yield from scopes(c, [(family, event_outcomes(c, entry.event, kind))])


# Outcomes that are numbers: ratios of sums.


def _numbers(c: Comparison, entry: Metric, kind: str) -> Iterator[Built]:
    chosen = groupings_of(c, kind)
    if not chosen:
        return
    family = joined([ratio_family(c, entry, grouping, kind) for grouping in chosen])
    if not c.one_pair:
        assert family.members is not None
        about = context(c.retraining, difference(family.members))
        family = replace(family, columns={**family.columns, **about})
    yield Built(family, "model", build(c, family))
    if c.one_scope:
        return
    method: Family | None = without_limits(family)
    if c.has_method:
        rows = [_linear_outcomes(c, grouping, kind) for grouping in chosen]
        method = method_rates(c, entry, rows, kind)
    if method is not None:
        method = replace(method, columns=family.columns, status=None, sized=None)
        yield Built(method, "method", build(c, replace(method, members=None), "method"))


@dataclass(frozen=True)
class UnitTotals:
    """Sums over units (examples, clusters) of the rows of one column, and of all other rows."""

    rows: RatioSums
    others: RatioSums
    factor: Floats | float  # of the half-widths of the excess, where clusters lie on both sides


def _products(values: Floats, centre: float) -> Floats:
    return products_of(values[0], values[1], values[2], values[3], centre)


def unit_totals(c: Comparison, code: NDArray[np.int64], n_rows: int) -> UnitTotals:
    """What the limits of a column's rows are made of; once for each column."""
    cube = c.cube
    baseline, variant = cube.members[0].variant, c.variant
    values = np.stack(pair_values(cube, baseline, variant))  # weighted
    plain = pair_values(cube, baseline, variant, weighted=False)
    count = cube.count.astype(np.float64)
    centre = float(ratio(np.array((values[0] * count).sum()), (values[2] * count).sum()))
    centre = centre if np.isfinite(centre) else 0.0
    changed = (plain[0] != plain[1]) | (plain[2] != plain[3])
    examples, den = (sums(code, v * count, n_rows) for v in (np.ones(len(count)), plain[2]))

    def others(per_row: Floats) -> Floats:
        return np.asarray(per_row.sum() - per_row)

    if cube.unit is None:
        by_row = coo_array(
            (count, (code, np.arange(len(count)))), shape=(n_rows, len(count))
        ).tocsr()
        products = by_row @ _products(values, centre)
        moved = sums(code, changed * count, n_rows)
        return UnitTotals(
            RatioSums(examples, moved, products, examples, den, centre),
            RatioSums(
                others(examples), others(moved), products.sum(axis=0) - products,
                others(examples), others(den), centre,
            ),
            1.0,
        )  # fmt: skip
    # A cluster's totals in a row; what it has elsewhere belongs to the others.
    e = entries_of(c, np.arange(cube.n_cells), code, n_rows)
    assert e.n_units is not None
    own = np.stack([e.summed(v) for v in values])
    touched = e.summed(changed.astype(np.float64))  # how many of a cluster's examples changed
    whole = np.stack([sums(e.unit, v, e.n_units) for v in own])
    number = sums(e.unit, e.number, e.n_units)
    present = number > 0
    touched_whole = sums(e.unit, touched, e.n_units)
    still_touched = touched_whole[e.unit] > touched
    inside, everywhere = _products(own, centre), _products(whole, centre)
    left = whole[:, e.unit] - own
    partial = number[e.unit] > e.number
    outside = _products(left, centre) * partial[:, None]
    by_entry = coo_array(
        (np.ones(len(e.row)), (e.row, np.arange(len(e.row)))), shape=(n_rows, len(e.row))
    ).tocsr()
    rows = RatioSums(
        e.total(np.ones(len(e.row))), e.total((touched > 0).astype(float)), by_entry @ inside,
        examples, den, centre,
    )  # fmt: skip
    rest = RatioSums(
        present.sum() - e.total((~partial).astype(float)),
        (touched_whole > 0).sum()
        - e.total((touched_whole[e.unit] > 0).astype(float) - still_touched),
        everywhere[present].sum(axis=0) - by_entry @ (everywhere[e.unit] - outside),
        others(examples), others(den), centre,
    )  # fmt: skip
    if not partial.any():
        return UnitTotals(rows, rest, 1.0)

    def influence(totals: RatioSums, values: Floats, row: NDArray[np.int64]) -> Floats:
        """What units add to a row's shift: e / n."""
        m = totals.moments()
        base, total = (totals.total(name)[row] for name in ("den", "den_compressed"))
        with np.errstate(invalid="ignore", divide="ignore"):
            made = (values[1] - m.compressed[row] * values[3]) / total
            made = made - (values[0] - m.baseline[row] * values[2]) / base
        return np.asarray(np.nan_to_num(made), dtype=np.float64)

    here, there = influence(rows, own, e.row), influence(rest, left, e.row)
    # Of clusters without a part in the row all is outside.
    as_rest = influence(rest, whole[:, e.unit], e.row)
    every = np.zeros(n_rows)
    units = np.flatnonzero(present)
    for row in range(n_rows):
        at = np.full(len(units), row)
        every[row] = (influence(rest, whole[:, units], at) ** 2).sum()
    elsewhere = np.maximum(every - e.total(as_rest**2), 0.0)
    together = elsewhere + e.total((here - there) ** 2)
    apart = elsewhere + e.total(here**2 + there**2)
    factor = np.sqrt(ratio(together, apart))
    return UnitTotals(rows, rest, np.where(np.isfinite(factor), factor, 1.0))


def usual_change(c: Comparison, rho: float = 1.0) -> UsualChange:
    """What a change is like in the whole variant and task."""
    everyone = np.zeros(c.cube.n_cells, dtype=np.int64)
    return UsualChange.of(unit_totals(c, everyone, 1).rows.moments(rho))


SKEWED, FEW_EXAMPLES = 1.0, 300  # beyond this skewness, below so many examples: no verdict


def ratio_family(c: Comparison, entry: Metric, grouping: Grouping, kind: str) -> Family:
    """Ratios of sums in the levels of one column."""
    cube = c.cube
    assert cube.outcome is not None
    code, n_rows = grouping.code.astype(np.int64), len(grouping.levels)
    totals, usual = unit_totals(c, code, n_rows), usual_change(c)
    rows, rest = totals.rows.moments(), totals.others.moments()
    examples = totals.rows.examples
    slots, nothing = slots_of(c, grouping, kind), np.full(n_rows, np.nan)
    enough = enough_units(c, totals.rows.n)
    both = enough & enough_units(c, totals.others.n)
    shift, others = RatioShift(rows, usual), RatioShift(rest, usual)
    p = shift.p_value()
    how = f"ratio of sums: t with skewness over {'clusters' if c.clustered else 'examples'}"
    shifts = Estimate.closed(
        rows.shift, limits_where(enough, shift.limits), np.where(enough, p, np.nan)
    )
    found = RatioExcess(shift, others, totals.factor)
    excess = Estimate.closed(nothing, limits_where(enough, None), nothing)
    if kind != "overall":
        excess = Estimate.closed(
            found.value, limits_where(both, found.limits), np.where(both, found.p_value(), np.nan)
        )
    state = status(c, examples, slots.clusters)
    sized = np.asarray(state == "ok")
    span = cube.outcome.role.range
    if usual.changed < N_CHANGED and span is not None and c.closed_form:
        shifts, excess = _bounded_family(c, code, n_rows, span, kind)
        how, p = "range × Tango", np.asarray(shifts.p)
    elif usual.changed < N_CHANGED:
        state[sized] = f"not_estimable: too few changed values ({usual.changed:.0f})"
    state[sized & np.isnan(rows.shift)] = "not_estimable: no denominator"
    number = cube.count.astype(np.float64)
    amount = cube.amount.astype(np.float64)
    plain = pair_values(cube, cube.members[0].variant, c.variant, weighted=False)
    changed = (plain[0] != plain[1]) | (plain[2] != plain[3])
    own = coo_array((amount, (code, np.arange(len(code)))), shape=(n_rows, len(code))).tocsr()
    assert cube.outcome.numerator is not None
    sizes = cube.outcome.denominator
    below = own @ (np.ones_like(cube.outcome.numerator) if sizes is None else sizes)
    pool = unit_totals(c, np.zeros(len(code), np.int64), 1).rows.moments()
    skewness = float(ratio(pool.third * np.sqrt(pool.n), pool.second**1.5).item())
    unsafe = number.sum() < FEW_EXAMPLES and abs(skewness) > SKEWED
    return Family(
        entry,
        slots,
        examples,
        _side(c, code, n_rows, "compressed"),
        _side(c, code, n_rows, "baseline"),
        shifts,
        excess,
        n_clusters=totals.rows.n if cube.unit_is_cluster else nothing,
        status=state,
        sized=sized,
        interval=how,
        members=ratio((own @ cube.outcome.numerator).T, below.T),
        sums=Sums(np.where(enough, p, np.nan), ratio(sums(code, changed * amount, n_rows),
                  sums(code, amount, n_rows)), np.ones(n_rows)),
        gate_status=f"not_estimable: a skewed outcome on fewer than {FEW_EXAMPLES} examples"
        if unsafe
        else None,
        columns={"churn": ratio(sums(code, changed * amount, n_rows), sums(code, amount, n_rows))},
    )  # fmt: skip


def _bounded_family(
    c: Comparison,
    code: NDArray[np.int64],
    n_rows: int,
    span: tuple[float, float],
    kind: str,
) -> tuple[Estimate, Estimate]:
    """Shift and excess where few values changed and their range is known: range × Tango's limits.

    A change of x is x / range of an example that was lost or gained.
    """
    width = span[1] - span[0]
    before, after, _, _ = pair_values(c.cube, c.cube.members[0].variant, c.variant)
    count = c.cube.count.astype(np.float64)
    n, lost, gained = (
        sums(code, v * count, n_rows)
        for v in (
            np.ones(len(count)),
            np.maximum(before - after, 0) / width,
            np.maximum(after - before, 0) / width,
        )
    )
    rest = [side.sum() - side for side in (n, lost, gained)]
    sides = n, lost, gained, *rest

    def scaled(limits: LimitsAt) -> LimitsAt:
        def at(alpha: float | Floats) -> Limits:
            low, high = limits(alpha)
            return width * low, width * high

        return at

    with np.errstate(invalid="ignore", divide="ignore"):
        shift, other = (gained - lost) / n, (rest[2] - rest[1]) / rest[0]
    p = 2 * ndtr(-np.abs(tango_test(n, lost, gained, 0.0)))
    nothing = np.full(n_rows, np.nan)
    return (
        Estimate.closed(width * shift, scaled(partial(tango, n, lost, gained)), p),
        Estimate.closed(nothing, limits_where(nothing > 0, None), nothing)
        if kind == "overall"
        else Estimate.closed(
            width * (shift - other), scaled(partial(excess_interval, *sides)), excess_test(*sides)
        ),
    )


def _side(c: Comparison, code: NDArray[np.int64], n_rows: int, side: str) -> Estimate:
    """A model's own ratio with linearised limits, cut at the range where it was said."""
    assert c.cube.outcome is not None
    before, after, den_b, den_c = pair_values(
        c.cube, c.cube.members[0].variant, c.variant, weighted=False
    )
    value, size = (before, den_b) if side == "baseline" else (after, den_c)
    e = entries_of(c, np.arange(c.cube.n_cells), code, n_rows, size)
    s = sizes_of(e, alike=False)
    weighted = value if c.cube.weight is None else value * c.cube.weight
    t = s.totals(e.summed(weighted))
    bounds = c.cube.outcome.role.range or (-np.inf, np.inf)
    return Estimate.closed(t.rate, rate_limits(c, t, s.units, bounds, is_event=False))


def _linear_outcomes(c: Comparison, grouping: Grouping, kind: str) -> Outcomes:
    """Every member's outcome on every cell, so that its mean in a row is the member's ratio.

    Of denominators that are the same for all models the ratio itself, else it is linearised:
    R + n (num − R den) / Σ den.
    """
    cube, code = c.cube, grouping.code.astype(np.int64)
    assert cube.outcome is not None
    assert cube.outcome.numerator is not None
    numerator, den = cube.outcome.numerator, cube.outcome.denominator
    slots, cells, n_rows = (
        slots_of(c, grouping, kind),
        np.arange(cube.n_cells),
        len(grouping.levels),
    )
    if den is None or cube.outcome.role.shared:
        return Outcomes(slots, cells, code, numerator, True, None if den is None else den[:, 0])
    amount = cube.amount.astype(np.float64)
    own = coo_array((amount, (code, cells)), shape=(n_rows, len(cells))).tocsr()
    below, weight = own @ den, sums(code, amount, n_rows)
    rate = ratio(own @ numerator, below)
    with np.errstate(invalid="ignore", divide="ignore"):
        linear = rate[code] + (weight[:, None] / below)[code] * (numerator - rate[code] * den)
    return Outcomes(slots, cells, code, linear, True, None)


def outcome_power(c: Comparison, tables: Sequence[Built]) -> list[dict[str, Any]]:
    """What every row could have found, from sizes and from what a change is like in the variant."""
    usual = usual_change(c)
    before, after, den, after_den = pair_values(
        c.cube, c.cube.members[0].variant, c.variant, weighted=False
    )
    count = c.cube.count.astype(np.float64)
    changed = float(((before != after) | (den != after_den)) @ count / count.sum())
    rows: list[dict[str, Any]] = []
    for table in tables:
        e, b = table.family, table.block
        m = np.nanmax(b["n_family"]) if np.isfinite(b["n_family"]).any() else 1.0
        level = c.options.alpha / m
        # What is sampled are clusters, where there are some.
        units = np.where(np.isnan(e.clusters), e.n, e.clusters)
        each = float(ratio(np.array(e.n.sum()), np.array(units.sum())))
        least = min_detectable_change(np.maximum(units, 2.0), usual, level)
        needed = each * examples_for(c.margin, usual, level)
        rows += [
            {
                "variant": c.variant,
                "task": c.task,
                "metric": e.metric.name,
                "by": e.slots.by,
                "group": e.slots.group[i],
                "class": None,
                "n": int(e.n[i]),
                "discordance": changed,
                "design_effect": np.nan,
                "n_family": int(m),
                "min_detectable_shift": float(least[i]) if units[i] >= 2 else np.nan,
                "reference_shift": c.margin,
                "n_needed": needed,
                "largest_loss": float(b["largest_loss"][i]),
                "status": str(b["status"][i]),
            }
            for i in range(len(e.n))
        ]
    return rows


def largest_loss(c: Comparison) -> float:
    """The largest loss of one example, over the mean denominator; 0 where none lost."""
    before, after, den, _ = pair_values(
        c.cube, c.cube.members[0].variant, c.variant, weighted=False
    )
    sign = 1.0 if outcome_metric(c).better == "higher" else -1.0
    mean = float(den @ c.cube.count / c.cube.count.sum())
    return float(np.max(sign * (before - after), initial=0.0)) / mean if mean > 0 else np.nan


def recovery_limits(
    c: Comparison, kind: str, rho: float, levels: Floats
) -> dict[str | None, tuple[Floats, Floats]]:
    """Limits of R_c − ρ R_b at some levels, on the scale of the shift, by group.

    What they are compared with, 0, is there (ρ − 1) R_b.
    """
    found: dict[str | None, tuple[Floats, Floats]] = {}
    usual = usual_change(c, rho)
    for grouping in groupings_of(c, kind):
        code, n_rows = grouping.code.astype(np.int64), len(grouping.levels)
        totals = unit_totals(c, code, n_rows)
        rows = totals.rows.moments(rho)
        low, high = RatioShift(rows, usual).limits(levels[:, None])
        moved = (rho - 1) * rows.baseline
        enough = enough_units(c, totals.rows.n)
        for i, name in enumerate(slots_of(c, grouping, kind).group):
            if enough[i]:
                found[name] = low[:, i] + moved[i], high[:, i] + moved[i]
    return found


# The mean over tasks: linearised t over examples (clusters) with all their tasks, and the signs.


def mean_outcome_rows(
    c: Comparison, tasks: Sequence[Sequence[Built]], *, shared: bool
) -> list[Block]:
    """Rows with `task` null: the mean over the tasks in which a row is defined.

    Parameters
    ----------
    c
        The comparison on one of the tasks.
    tasks
        The rows of every task.
    shared
        Whether tasks have examples in common: then n is that of the largest, else their sum.
    """
    if c.signs is None:
        return []
    together, entry = replace(c, task=None), outcome_metric(c)
    made = []
    for kind in KINDS:
        mean = c.signs.means.get((c.variant, kind))
        own = [t.family for task in tasks for t in task
               if t.scope == "model" and t.family.slots.kind == kind]  # fmt: skip
        if mean is None or not own:
            continue
        family = _mean_family(entry, mean, own, kind)
        if not shared:
            place = {name: i for i, name in enumerate(mean.groups)}
            n = np.zeros(len(family.n))
            for one in own:
                np.add.at(n, [place[name] for name in one.slots.group], one.n)
            family = replace(family, n=n)
        made.append(build(together, family))
    return made + mean_heterogeneity(together, made, entry.name)


def _mean_family(entry: Metric, mean: MeanFamily, own: Sequence[Family], kind: str) -> Family:
    names = np.array(mean.groups, dtype=object)
    place = {name: i for i, name in enumerate(mean.groups)}
    sides = {}
    for side in ("baseline", "compressed"):
        total, used = np.zeros(len(names)), np.zeros(len(names))
        for family in own:
            at = np.array([place[name] for name in family.slots.group])
            value = getattr(family, side).value
            known = np.isfinite(value)
            np.add.at(total, at[known], value[known])
            np.add.at(used, at[known], 1)
        with np.errstate(invalid="ignore"):
            sides[side] = Estimate.alone(total / used)

    def tested(quantity: str) -> Estimate:
        value, p, limits = mean_test(mean, quantity)
        return Estimate.closed(value, limits, p)

    shift = tested("shift")
    assert shift.p is not None
    nothing = np.full(len(names), np.nan)
    by = "overall" if kind == "overall" else "group"
    nobody = np.full(len(names), None, dtype=object)
    return Family(
        entry,
        Slots(by, kind, names, nobody, ~mean.inside, nothing),
        mean.n,
        sides["compressed"],
        sides["baseline"],
        shift,
        None if kind == "overall" else tested("excess"),
        interval="linearised t, mean over tasks",
        sums=Sums(shift.p, nothing, nothing),
    )
