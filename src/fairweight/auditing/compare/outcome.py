"""Rows of an outcome: shares of 0 and 1, or ratios of sums, overall, by group and intersection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
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
    RowTotals,
    enough_units,
    entries_of,
    fewest,
    rate_limits,
    units_name,
)
from fairweight.auditing.compare.retraining import context, difference
from fairweight.auditing.compare.rows import Built, build, rates, scopes
from fairweight.auditing.compare.simultaneous import MeanFamily
from fairweight.auditing.compare.task_mean import mean_heterogeneity
from fairweight.auditing.compare.two_way import method_rates
from fairweight.auditing.counts.counts import ratio, sums
from fairweight.auditing.counts.cube import pair_values
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.counts.outcome_sums import OutcomeSums, terms_of
from fairweight.auditing.intervals.excess import excess_interval, excess_test
from fairweight.auditing.intervals.proportion import tango, tango_test
from fairweight.auditing.intervals.ratio import (
    N_CHANGED,
    CrossedShift,
    RatioExcess,
    RatioMoments,
    RatioShift,
    RatioSums,
    UsualChange,
    examples_for,
    min_detectable_change,
    products_of,
)
from fairweight.auditing.intervals.units import crossed_variance
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
        if entry.event is None:
            yield from _numbers(c, entry, kind)
            continue
        # Outcomes that are 0 or 1: what predictions give, row by row.
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


COMPRESSED = 1  # the second of a pair


@dataclass(frozen=True)
class UnitTotals:
    """Sums over units (examples, clusters) of the rows of one column, and of all other rows."""

    rows: RatioSums
    others: RatioSums
    together: Floats | None = None  # Σ (U_g − U_o)², U what a unit adds to either side's shift
    apart: Floats | None = None  # Σ U_g² + Σ U_o²; None where no unit lies on both sides

    @staticmethod
    def factor(parts: Sequence[UnitTotals]) -> Floats | float:
        """Of the half-widths of the excess, where clusters lie on both sides."""
        if all(part.together is None for part in parts):
            return 1.0
        both = []
        for part in parts:
            here, there = (side.influence_or_0() for side in (part.rows, part.others))
            squares = part.rows.product_of(here, here) + part.others.product_of(there, there)
            both.append((squares if part.together is None else part.together,
                         squares if part.apart is None else part.apart))  # fmt: skip
        found = np.sqrt(ratio(*(crossed_variance(parts) for parts in zip(*both, strict=True))))
        return np.where(np.isfinite(found), found, 1.0)


def pair_sums(c: Comparison) -> OutcomeSums:
    """The sums of every cell, of the variant against the baseline, about one constant.

    Of populations the means over members are what an example has.
    """
    known: OutcomeSums | None = c.once.get("sums")
    if known is not None:
        return known
    cube = c.cube
    assert cube.outcome is not None
    held = cube.outcome.sums
    if held is None:
        before, after, den_b, den_c = pair_values(
            cube, cube.members[0].variant, c.variant, weighted=False
        )
        near = float(ratio(np.array(before @ cube.amount), den_b @ cube.amount))
        held = OutcomeSums.of_values(
            cube.members[0].variant,
            [(before, den_b), (after, den_c)],
            first=0,
            higher=outcome_metric(c).better == "higher",
            terms=terms_of(4, 3 if cube.unit is None else 1),
            centre=np.full(cube.n_cells, near if np.isfinite(near) else 0.0),
            count=cube.count.astype(np.float64),
            weight=cube.weight,
            place=np.arange(cube.n_cells),
            size=cube.n_cells,
        )
    total = held.totals(COMPRESSED)
    above = float((total[0] + held.centre * total[2]).sum())
    centre = float(ratio(np.array(above), total[2].sum()))
    same = np.full(cube.n_cells, centre if np.isfinite(centre) else 0.0)
    made = c.once["sums"] = held.recentred(same)
    return made


def unit_totals(c: Comparison, code: NDArray[np.int64], n_rows: int) -> UnitTotals:
    """What the limits of a column's rows are made of; once for each column."""
    cube, held = c.cube, pair_sums(c)
    centre = float(held.centre[0])
    examples, den = (sums(code, v, n_rows) for v in (held.count, held.den))

    def others(per_row: Floats) -> Floats:
        return np.asarray(per_row.sum() - per_row)

    if cube.unit is None:
        products = by_row(code, n_rows) @ held.all_products(COMPRESSED)
        moved = sums(code, held.changed[:, COMPRESSED], n_rows)
        return UnitTotals(
            RatioSums(examples, moved, products, examples, den, centre),
            RatioSums(
                others(examples), others(moved), products.sum(axis=0) - products,
                others(examples), others(den), centre,
            ),
        )  # fmt: skip
    # A cluster's totals in a row; what it has elsewhere belongs to the others.
    e = entries_of(c, np.arange(cube.n_cells), code, n_rows)
    assert e.n_units is not None
    assert e.place is not None
    own = np.stack([sums(e.place, v, len(e.row)) for v in held.totals(COMPRESSED)])
    # How many of a cluster's examples changed.
    touched = sums(e.place, held.changed[:, COMPRESSED], len(e.row))
    whole = np.stack([sums(e.unit, v, e.n_units) for v in own])
    number = sums(e.unit, e.number, e.n_units)
    present = number > 0
    touched_whole = sums(e.unit, touched, e.n_units)
    still_touched = touched_whole[e.unit] > touched
    inside, everywhere = products_of(own), products_of(whole)
    left = whole[:, e.unit] - own
    partial = number[e.unit] > e.number
    outside = products_of(left) * partial[:, None]
    by_entry = by_row(e.row, n_rows)
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
        return UnitTotals(rows, rest)

    of_rows, of_rest = rows.influence_or_0(), rest.influence_or_0()
    here, there = (of_rows[:, e.row] * own).sum(axis=0), (of_rest[:, e.row] * left).sum(axis=0)
    # Of clusters without a part in the row all is outside.
    as_rest = (of_rest[:, e.row] * whole[:, e.unit]).sum(axis=0)
    every = replace(rest, products=everywhere[present].sum(axis=0)).product_of(of_rest, of_rest)
    elsewhere = np.maximum(every - e.total(as_rest**2), 0.0)
    together = elsewhere + e.total((here - there) ** 2)
    apart = elsewhere + e.total(here**2 + there**2)
    return UnitTotals(rows, rest, together, apart)


def by_row(row: NDArray[np.int64], n_rows: int, amount: Floats | None = None) -> csr_array:
    """A matrix that sums entries by row."""
    amount = np.ones(len(row)) if amount is None else amount
    return coo_array((amount, (row, np.arange(len(row)))), shape=(n_rows, len(row))).tocsr()


def pool_of(c: Comparison, rho: float = 1.0) -> RatioMoments:
    """All units of the variant and task; made once."""
    name = f"pool {rho}"
    if name not in c.once:
        everyone = np.zeros(c.cube.n_cells, dtype=np.int64)
        c.once[name] = unit_totals(c, everyone, 1).rows.moments(rho)
    made: RatioMoments = c.once[name]
    return made


def usual_change(c: Comparison, rho: float = 1.0) -> UsualChange:
    """What a change is like in the whole variant and task; of two cluster columns the fewer."""
    return UsualChange.of(min((pool_of(x, rho) for x in c.bindings[:2]), key=lambda p: p.n[0]))


def shifts_of(c: Comparison, totals: Sequence[RatioSums], rho: float = 1.0) -> RatioShift:
    """Shifts of rows from their sums in each way of binding examples."""
    return CrossedShift.of(
        [
            RatioShift(rows.moments(rho), UsualChange.of(pool_of(x, rho)))
            for x, rows in zip(c.bindings, totals, strict=True)
        ]
    )


SKEWED, FEW_EXAMPLES = 1.0, 300  # beyond this skewness, below so many examples: no verdict


def ratio_family(c: Comparison, entry: Metric, grouping: Grouping, kind: str) -> Family:
    """Ratios of sums in the levels of one column."""
    cube, held = c.cube, pair_sums(c)
    assert cube.outcome is not None
    code, n_rows = grouping.code.astype(np.int64), len(grouping.levels)
    ways = [unit_totals(x, code, n_rows) for x in c.bindings]
    pools = [pool_of(x) for x in c.bindings[:2]]
    changed = min(float(pool.changed[0]) for pool in pools)
    shift = shifts_of(c, [way.rows for way in ways])
    others = shifts_of(c, [way.others for way in ways])
    rows, examples = shift.rows, ways[0].rows.examples
    slots, nothing = slots_of(c, grouping, kind), np.full(n_rows, np.nan)
    units = fewest([way.rows.n for way in ways])
    enough = enough_units(c, units)
    both = enough & enough_units(c, fewest([way.others.n for way in ways]))
    p = shift.p_value()
    how = f"ratio of sums: t with skewness over {units_name(c)}"
    shifts = Estimate.closed(
        rows.shift, limits_where(enough, shift.limits), np.where(enough, p, np.nan)
    )
    found = RatioExcess(shift, others, UnitTotals.factor(ways))
    excess = Estimate.closed(nothing, limits_where(enough, None), nothing)
    if kind != "overall":
        excess = Estimate.closed(
            found.value, limits_where(both, found.limits), np.where(both, found.p_value(), np.nan)
        )
    state = status(c, examples, slots.clusters)
    sized = np.asarray(state == "ok")
    span = cube.outcome.role.range
    if changed < N_CHANGED and span is not None and c.closed_form:
        shifts, excess = _bounded_family(c, code, n_rows, span, kind)
        how, p = "range × Tango", np.asarray(shifts.p)
    elif changed < N_CHANGED:
        state[sized] = f"not_estimable: too few changed values ({changed:.0f})"
    state[sized & np.isnan(rows.shift)] = "not_estimable: no denominator"
    churn = ratio(
        sums(code, held.changed_weight[:, COMPRESSED], n_rows), sums(code, cube.amount, n_rows)
    )
    members = np.stack([rows.baseline, rows.compressed])
    if cube.outcome.numerator is not None:
        own, sizes = by_row(code, n_rows, cube.amount), cube.outcome.denominator
        below = own @ (np.ones_like(cube.outcome.numerator) if sizes is None else sizes)
        members = ratio((own @ cube.outcome.numerator).T, below.T)
    skewness = max(
        abs(float(ratio(pool.third * np.sqrt(pool.n), pool.second**1.5).item())) for pool in pools
    )
    unsafe = cube.count.sum() < FEW_EXAMPLES and skewness > SKEWED
    return Family(
        entry,
        slots,
        examples,
        _side(c, [way.rows for way in ways], "compressed"),
        _side(c, [way.rows for way in ways], "baseline"),
        shifts,
        excess,
        n_clusters=units if cube.unit_is_cluster else nothing,
        status=state,
        sized=sized,
        interval=how,
        members=members,
        sums=Sums(np.where(enough, p, np.nan), churn, np.ones(n_rows)),
        gate_status=f"not_estimable: a skewed outcome on fewer than {FEW_EXAMPLES} examples"
        if unsafe
        else None,
        columns={"churn": churn},
    )


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
    width, held = span[1] - span[0], pair_sums(c)
    down, up = held.losses, held.gains
    if outcome_metric(c).better == "lower":  # a loss is a larger number
        down, up = up, down
    n = sums(code, held.count, n_rows)
    lost, gained = (sums(code, v[:, COMPRESSED], n_rows) / width for v in (down, up))
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


def _side(c: Comparison, ways: Sequence[RatioSums], side: str) -> Estimate:
    """A model's own ratio with linearised limits, cut at the range where it was said."""
    assert c.cube.outcome is not None
    centre, changed = ways[0].centre, float(side == "compressed")
    num, den = (1.0, changed, 0.0, -changed * centre), (0.0, 0.0, 1.0, changed)
    totals = [
        RowTotals(
            rows.sum_of(num), rows.sum_of(den), rows.product_of(num, num),
            rows.product_of(num, den), rows.product_of(den, den),
        )
        for rows in ways
    ]  # fmt: skip
    low, high = c.cube.outcome.role.range or (-np.inf, np.inf)
    both = [(t, rows.n) for t, rows in zip(totals, ways, strict=True)]
    limits = rate_limits(c, both, (low - centre, high - centre), is_event=False)

    def moved(alpha: float | Floats) -> Limits:
        below, above = limits(alpha)
        return below + centre, above + centre

    return Estimate.closed(totals[0].rate + centre, moved)


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
    held = pair_sums(c)
    changed = float(held.changed[:, COMPRESSED].sum() / held.count.sum())
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
    held = pair_sums(c)
    mean = float(held.den.sum() / held.count.sum())
    return float(held.largest_loss[:, COMPRESSED].max()) / mean if mean > 0 else np.nan


def recovery_limits(
    c: Comparison, kind: str, rho: float, levels: Floats
) -> dict[str | None, tuple[Floats, Floats]]:
    """Limits of R_c − ρ R_b at some levels, on the scale of the shift, by group.

    What they are compared with, 0, is there (ρ − 1) R_b.
    """
    found: dict[str | None, tuple[Floats, Floats]] = {}
    for grouping in groupings_of(c, kind):
        code, n_rows = grouping.code.astype(np.int64), len(grouping.levels)
        ways = [unit_totals(x, code, n_rows).rows for x in c.bindings]
        shift = shifts_of(c, ways, rho)
        low, high = shift.limits(levels[:, None])
        moved = (rho - 1) * shift.rows.baseline
        enough = enough_units(c, fewest([way.n for way in ways]))
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
