"""Who pays differently: heterogeneity, standardised excess, worst shift, concentration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from fairweight.auditing.compare.comparison import (
    TWO_CLUSTERS,
    Comparison,
    Names,
    all_slots,
    groupings_of,
    join_slots,
    slots_of,
)
from fairweight.auditing.compare.estimands import Estimand, grouping_slots, sizes, too_few_levels
from fairweight.auditing.compare.estimate import (
    Estimate,
    Family,
    joined,
    status,
    without_limits,
)
from fairweight.auditing.compare.flips import concentration_statistic, pair_shares
from fairweight.auditing.compare.members import Both, PerMember
from fairweight.auditing.compare.retraining import Statistic, context, difference
from fairweight.auditing.compare.rows import Built
from fairweight.auditing.counts.counts import Tally, ratio, sums
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.intervals.excess import corrected_excess, normal_z, standardised_excess
from fairweight.auditing.intervals.power import examples_needed, min_detectable_shift
from fairweight.auditing.intervals.proportion import wilson
from fairweight.auditing.metrics.harm import WORST_GROUP_SHIFT, class_impact, share_of_top
from fairweight.auditing.metrics.rates import accuracy, recall
from fairweight.auditing.metrics.registry import metric
from fairweight.base.types import Floats, Limits

TOP_SHARES = (0.01, 0.05, 0.10)


Scoped: TypeAlias = Iterator[tuple[Family, str]]  # families with their scope


def heterogeneity(c: Comparison, tables: Sequence[Built]) -> Scoped:
    """Does the change differ by column? From the excesses of the groups, in every scope.

    `tables` are the rows of accuracy by group and by intersection.
    """
    found: dict[str, list[_Column]] = {"model": [], "method": []}
    for table in tables:
        for grouping, place in _places(c, table.family):
            found[table.scope].append(_Column(c, table, grouping, place))
    if not found["model"]:
        return
    yield _heterogeneity(c, found["model"], found["model"], "model"), "model"
    within = _within_classes(c, found["model"])
    yield within, "model"
    if found["method"]:
        yield _heterogeneity(c, found["model"], found["method"], "method"), "method"
        why = c.no_method or "no test over members"
        yield untested(within, f"not_estimable: {why}"), "method"


def untested(family: Family, why: str) -> Family:
    """The same rows about the method, which this test says nothing about."""
    assert family.status is not None
    nothing = np.full(len(family.n), np.nan)
    return replace(
        family,
        compressed=Estimate.alone(family.compressed.value, nothing),
        status=np.where(family.status == "ok", why, family.status),
        columns={**family.columns, "p_adjusted": nothing, "n_family": nothing, "family": None},
    )


class _Column:
    """One group column in the rows of accuracy."""

    def __init__(
        self, c: Comparison, table: Built, grouping: Grouping, place: NDArray[np.intp]
    ) -> None:
        family = table.family
        assert family.excess is not None
        assert family.excess.p is not None
        assert family.members is not None
        self.grouping, self.kind = grouping, family.slots.kind
        self.usable = np.asarray(table.block["n_family"])[place] > 0
        self.n = float(family.n[place].sum())
        self.p = np.where(self.usable, family.excess.p[place], np.nan)
        self.adjusted = np.asarray(table.block["excess_p_adjusted"], float)[place]
        self.n_family = float(self.usable.sum() and np.nanmax(table.block["n_family"]))
        self.members = family.members[:, place]
        self.order = list(groupings_of(c, self.kind)).index(grouping)
        self.why = too_few_levels(c, grouping)
        self.draws = (
            None if c.signs is None else c.signs.families.get((c.variant, c.task, self.kind))
        )

    @property
    def least(self) -> float:
        return float(np.nanmin(self.p)) if np.isfinite(self.p).any() else np.nan

    @property
    def bonferroni(self) -> float:
        """p of the largest excess in this column, times its groups; two groups are one question."""
        number = int(np.isfinite(self.p).sum())
        return min(1.0, self.least * (1 if len(self.grouping.levels) == 2 else number))


def _places(c: Comparison, e: Family) -> Iterator[tuple[Grouping, NDArray[np.intp]]]:
    """Every grouping of a table with the places of its levels."""
    first = 0
    for grouping in groupings_of(c, e.slots.kind):
        yield grouping, np.arange(first, first + len(grouping.levels))
        first += len(grouping.levels)


def _heterogeneity(
    c: Comparison, models: Sequence[_Column], parts: Sequence[_Column], scope: str
) -> Family:
    """Rows of one scope: the value is that of these models in both, the test that of the scope."""
    state = np.array([part.why or "ok" for part in parts], dtype=object)
    if scope == "method" and not c.has_method:
        state[state == "ok"] = f"not_estimable: {c.no_method}"
    alone: dict[str, Floats] = {}
    if scope == "model":
        by_kind = {part.kind: part.draws for part in parts if part.draws is not None}
        for kind, draws in by_kind.items():
            own = [part.p for part in parts if part.kind == kind]
            alone[kind] = draws.column_p(np.concatenate(own))
    p = [alone[part.kind][part.order] if part.kind in alone else part.bonferroni for part in parts]
    adjusted = [
        np.nanmin(part.adjusted) if np.isfinite(part.adjusted).any() else np.nan for part in parts
    ]
    known = np.array([part.why is None for part in models])
    value = np.where(known, normal_z([part.least for part in models]), np.nan)
    about: dict[str, Any] = {"level": [_furthest(part.grouping, -part.p) for part in models]}
    if not c.one_pair:
        # Context of the largest z: errors of the groups' excesses are held at those of the data.
        columns = [
            context(c.retraining, _largest_z(c, part), signed=False)
            if np.isfinite(part.p).any()
            else dict.fromkeys(("matched", "noise_floor", "p_retraining"), np.array([np.nan]))
            for part in models
        ]
        about |= {name: np.concatenate([one[name] for one in columns]) for name in columns[0]}
    return _of_columns(c, "heterogeneity", parts, value, p, adjusted, state, about)


def _of_columns(
    c: Comparison,
    name: str,
    parts: Sequence[_Column],
    value: Floats,
    p: Sequence[float] | Floats,
    adjusted: Sequence[float] | Floats,
    state: Names,
    about: dict[str, Any],
) -> Family:
    """A family with one row per column, corrected as the groups that it is about."""
    ok = np.asarray(state == "ok")
    how = "holm" if c.crossed else "random signs"
    names = [f"confirmatory: {name} by {part.kind} ({how})" for part in parts]
    return Family(
        metric(name),
        join_slots([grouping_slots(c, part.grouping) for part in parts], "grouping"),
        np.array([part.n for part in parts]),
        Estimate.alone(value, np.where(ok, p, np.nan)),
        status=state,
        columns=about
        | {
            "p_adjusted": np.where(ok, adjusted, np.nan),
            "family": [name if good else None for name, good in zip(names, ok, strict=True)],
            "n_family": np.where(ok, [part.n_family for part in parts], np.nan),
        },
    )


def _furthest(grouping: Grouping, size: Floats) -> str | None:
    """The level where something is largest; None where it is nowhere defined."""
    return grouping.levels[int(np.nanargmax(size))] if np.isfinite(size).any() else None


def _within_classes(c: Comparison, parts: Sequence[_Column]) -> Family:
    """Does the change still differ by column among examples of the same class?"""
    n = len(parts)
    largest, p, adjusted = (np.full(n, np.nan) for _ in range(3))
    level: list[str | None] = [None] * n
    state = np.array([part.why or "ok" for part in parts], dtype=object)
    for i, part in enumerate(parts):
        if part.draws is None or state[i] != "ok":
            continue
        found = part.draws.within_p()
        largest[i], p[i], adjusted[i] = (values[part.order] for values in found)
        here = part.draws.column == part.order
        size = np.where(part.draws.inside, np.abs(part.draws.within_z), np.nan)[here]
        level[i] = _furthest(part.grouping, size)
    if len(c.classes) == 1:
        state[state == "ok"] = "not_estimable: one class"
    if c.crossed:
        state[state == "ok"] = f"not_estimable: {TWO_CLUSTERS}"
    state[(state == "ok") & np.isnan(p)] = "not_estimable: classes and groups coincide"
    name = "heterogeneity_within_classes"
    return _of_columns(c, name, parts, largest, p, adjusted, state, {"level": level})


def _largest_z(c: Comparison, part: _Column) -> Statistic:
    """max |excess / error| over the groups of a column."""
    tested = np.isfinite(part.p)
    weight = sums(part.grouping.code, c.cube.amount, len(part.grouping.levels))
    right = part.members * weight
    others = ratio(right.sum(axis=1, keepdims=True) - right, weight.sum() - weight)
    excess = difference((part.members - others)[:, tested])
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.abs(excess(*c.retraining.observed)[0])
        error = own / normal_z(part.p[tested])
    usable = np.isfinite(error) & (error > 0)

    def statistic(first: Floats, second: Floats) -> Floats:
        moved = np.abs(excess(first, second))[:, usable] / error[usable]
        largest: Floats = moved.max(axis=1, initial=0.0)[:, None]
        return largest if usable.any() else np.full((len(first), 1), np.nan)

    return statistic


def standardised_excess_shift(c: Comparison) -> Iterator[Estimand]:
    """`excess_shift_standardised` by group: every label weighted equally in level and rest.

    Its p comes from scores within classes. The swap null does not fit: a loss that is the same
    for everyone is no evidence of an excess.
    """
    for kind in ("group", "intersection"):
        draws = None if c.signs is None else c.signs.families.get((c.variant, c.task, kind))
        for order, grouping in enumerate(groupings_of(c, kind)):
            nothing = np.full(len(grouping.levels), np.nan)
            p = nothing
            if draws is not None:
                here = draws.column == order
                p = 2 * ndtr(-np.abs(np.where(draws.inside, draws.standardised_z, np.nan)[here]))

            def evaluate(both: Both, name: str = grouping.name) -> PerMember:
                # Linear in the right answers: the change is the difference of the members' means.
                base, compressed = (
                    standardised_excess(side.label, np.zeros_like(side.correct), side.correct)
                    for side in both[name]
                )
                return PerMember(base, compressed, compared=True)

            yield Estimand(
                metric("excess_shift_standardised"),
                slots_of(c, grouping, kind),
                sizes(c, grouping),
                evaluate,
                p_value=p,
            )


def worst_shifts(c: Comparison, tables: Sequence[Built]) -> Scoped:
    """The least shift of every column, with limits that are simultaneous over its levels.

    `tables` are the rows of accuracy by group and by intersection.
    """
    for scope in ("model",) if c.one_pair else ("model", "method"):
        parts = [
            _worst_shift(c, table.family, grouping, place, scope)
            for table in tables
            if table.scope == scope
            for grouping, place in _places(c, table.family)
        ]
        if parts:
            yield joined(parts), scope


def _worst_shift(
    c: Comparison, family: Family, grouping: Grouping, place: NDArray[np.intp], scope: str
) -> Family:
    """One row: the least of the levels' shifts, and the least of their limits."""
    usable = np.flatnonzero(c.usable(grouping))
    at, estimate = place[usable], family.shift
    assert estimate is not None
    assert family.members is not None
    shift = estimate.value[at]
    known = bool(np.isfinite(shift).any())
    draws = c.draws(family.slots.kind) if scope == "model" else None

    def least(level: float | Floats) -> Limits:
        """Of limits that each hold at this level, (..., 1)."""
        if not known:
            nothing = np.full((*np.shape(level)[:-1], 1), np.nan)
            return nothing, nothing
        low, high = (side[..., at] for side in estimate.limits(level))
        some = np.isfinite(low).any(axis=-1, keepdims=True)
        low, high = (np.fmin.reduce(side, axis=-1, keepdims=True) for side in (low, high))
        return np.where(some, low, np.nan), np.where(some, high, np.nan)

    def limits(alpha: float | Floats) -> Limits:
        if draws is not None and known:
            return least(float(2 * ndtr(-draws.shift_z_star(float(alpha)))))
        return least(alpha / max(len(usable), 1))

    status, interval = f"not_estimable: no level with {c.options.min_group} examples", None
    columns: dict[str, Any] = {"level": None}
    if known:
        columns["level"] = grouping.levels[usable[int(np.nanargmin(shift))]]
        how = "" if family.interval is None else np.asarray(family.interval).reshape(-1)[0]
        interval = f"minimum of simultaneous {str(how).partition('; ')[0]} limits"
        fine = bool(np.isfinite(limits(c.options.alpha)[0][0]))
        status = "ok" if fine else "not_estimable: too few clusters"
        if scope == "method" and not c.has_method:
            interval, status = None, f"not_estimable: {c.no_method}"
        if not c.one_pair:
            every = difference(family.members[:, at])
            columns |= context(
                c.retraining, lambda one, other: every(one, other).min(axis=1, keepdims=True)
            )
    members = None
    if scope == "model":  # every compressed member against the baseline's mean
        each = family.members[:, at]
        alone = np.fmin.reduce(each - each[: c.n_baseline].mean(axis=0), axis=1, initial=np.nan)
        alone[: c.n_baseline] = np.nan
        members = alone[:, None]
    return Family(
        metric(WORST_GROUP_SHIFT),
        grouping_slots(c, grouping),
        sizes(c, grouping).sum(keepdims=True),
        Estimate(
            np.array([np.nanmin(shift) if known else np.nan]),
            limits,
            corrected=lambda levels: least(levels / max(len(usable), 1)),
        ),
        status=np.array([status], dtype=object),
        interval=interval,
        members=members,
        columns=columns,
    )


def concentration_table(c: Comparison) -> list[dict[str, Any]]:
    """Who bears the lost answers: each level, and the top 1, 5 and 10 % of clusters."""
    lost, gained = _lost_and_gained(c)
    count = c.cube.count.astype(float)
    all_lost, all_gained, everyone = float(lost.sum()), float(gained.sum()), float(count.sum())
    # Column, part, examples, lost and gained answers, and the share that chance would give it.
    found: list[tuple[str, str, float, float, float, float]] = []
    for grouping in c.groupings:
        size = len(grouping.levels)
        n, down, up = (sums(grouping.code, w, size) for w in (count, lost, gained))
        for i, level in enumerate(grouping.levels):
            found.append((grouping.name, level, n[i], down[i], up[i], n[i] / everyone))
    if c.cube.unit_is_cluster and c.cube.unit is not None and not c.crossed:
        unit = c.cube.unit
        n, down, up = (sums(unit, w, len(c.cube.unit_names)) for w in (count, lost, gained))
        rng = c.rng("concentration")
        share_lost, reference = share_of_top(down, TOP_SHARES, exposure=n, rng=rng)
        share_gained, _ = share_of_top(up, TOP_SHARES, exposure=n, rng=rng)
        order = np.argsort(-down, kind="stable")
        for i, share in enumerate(TOP_SHARES):
            top = order[: max(1, int(np.ceil(round(share * len(n), 9))))]
            borne = share_lost[i] * all_lost, share_gained[i] * all_gained
            found.append(("(clusters)", f"top {share:.0%}", n[top].sum(), *borne, reference[i]))
    return [
        {
            "variant": c.variant,
            "task": c.task,
            "column": column,
            "part": part,
            "n": int(size),
            "share_examples": size / everyone,
            "lost": fewer,
            "gained": more,
            "share_lost": fewer / all_lost if all_lost else np.nan,
            "share_gained": more / all_gained if all_gained else np.nan,
            "share_lost_poisson": expected,
        }
        for column, part, size, fewer, more, expected in found
    ]


def concentrations(c: Comparison) -> Scoped:
    """`concentration`: the share of all lost answers that each group bears."""
    lost, _ = _lost_and_gained(c)
    total = float(lost.sum())
    for kind in ("group", "intersection"):
        chosen = groupings_of(c, kind)
        if not chosen:
            continue
        borne = np.concatenate([sums(g.code, lost, len(g.levels)) for g in chosen])
        n, slots = sizes(c, *chosen), all_slots(c, kind)
        state, value = status(c, n, slots.clusters), np.full(len(n), np.nan)
        if not total:
            state[:] = "not_estimable: no answer was lost"
        else:
            value = borne / total
        estimate = Estimate.alone(value)
        if total and c.closed_form:
            estimate = Estimate(value, partial(wilson, borne, np.full(len(borne), total)))
        about: list[dict[str, Any]] = []
        each = [np.full(len(n), np.nan)] * c.n_baseline
        for member in range(c.n_baseline, len(c.cube.members)):
            pairs = [pair for pair in c.pairing.pairs if pair[1] == member]
            own, _ = _lost_and_gained(c, pairs)
            here = np.concatenate([sums(g.code, own, len(g.levels)) for g in chosen])
            each.append(ratio(here, own.sum()))
        for grouping in chosen:  # where retraining alone puts the lost answers
            if c.one_pair or c.retraining.splits is None:
                about.append({})
                continue
            shares = pair_shares(c, grouping)
            if shares is None:
                nothing = np.full(len(grouping.levels), np.nan)
                about.append({"matched": nothing, "noise_floor": nothing})
                continue
            whole = shares["lost"].sum(axis=0, keepdims=True)
            statistic = concentration_statistic(shares["lost"], whole)
            made = context(replace(c.retraining, relabelled=None), statistic, signed=False)
            about.append({name: made[name] for name in ("matched", "noise_floor")})
        family = Family(
            metric("concentration"),
            slots,
            n,
            estimate,
            status=state,
            interval="wilson, given the number of lost answers" if c.closed_form else None,
            columns={name: np.concatenate([part[name] for part in about]) for name in about[0]},
        )
        yield replace(family, members=np.stack(each)), "model"
        if not c.one_pair:  # whether another run repeats them is not estimated
            why = "no interval over members" if c.has_method else c.no_method
            state = np.where(state == "ok", f"not_estimable: {why}", state)
            yield replace(without_limits(family), status=state), "method"


def _lost_and_gained(
    c: Comparison, pairs: Sequence[tuple[int, int]] | None = None
) -> tuple[Floats, Floats]:
    """Lost and gained answers (or weight) of each cell, all its examples; means over pairs."""
    cube = c.cube
    right = cube.prediction == cube.label[:, None]
    lost, gained = np.zeros(cube.n_cells), np.zeros(cube.n_cells)
    pairs = c.pairing.pairs if pairs is None else pairs
    for first, second in pairs:
        lost += right[:, first] & ~right[:, second]
        gained += ~right[:, first] & right[:, second]
    amount = cube.count / len(pairs) * (1.0 if cube.weight is None else cube.weight)
    return lost * amount, gained * amount


def group_error_table(c: Comparison, by_group: Sequence[Family]) -> list[dict[str, Any]]:
    """Range of each level's excess if the declared share of group labels is wrong."""
    error = c.options.group_error
    rows: list[dict[str, Any]] = []
    if not error:
        return rows
    total = float(c.cube.count.sum())
    for e in by_group:
        assert e.excess is not None
        excess = e.excess.value
        low, high = corrected_excess(excess, e.n / total, error)
        for i, group in enumerate(e.slots.group):
            rows.append(
                {
                    "variant": c.variant,
                    "task": c.task,
                    "group": group,
                    "error": error,
                    "excess_shift": float(excess[i]),
                    "corrected_low": float(low[i]),
                    "corrected_high": float(high[i]),
                }
            )
    return rows


def class_impacts(c: Comparison) -> Scoped:
    """`class_impact`: Welch's test of recall − accuracy over the members of both populations."""
    entry, n = metric("class_impact"), c.pairs[""].label[0]
    if min(c.n_baseline, c.n_compressed) < 2:
        why = np.array(["not_estimable: fewer than two members per side"], dtype=object)
        slots, nothing = slots_of(c, c.whole, "overall"), Estimate.alone(np.array([np.nan]))
        family = Family(entry, slots, sizes(c, c.whole), nothing, status=why)
        yield family, "model" if c.one_pair else "method"
        return
    slots = slots_of(c, c.whole, "class")
    everyone = range(len(c.cube.members))
    counts = Tally(c.cube, (c.whole,), everyone, positive=c.positive).observed()[0]
    recalls, accuracies = recall(counts)[:, 0], accuracy(counts)[:, 0]
    k, members = c.n_baseline, recalls - accuracies[:, None]
    impact = class_impact(recalls[:k], accuracies[:k], recalls[k:], accuracies[k:])
    family = Family(
        entry,
        slots,
        n,
        Estimate.alone(impact.difference, impact.p_value),
        status=status(c, n, slots.clusters),
        interval="welch",
        members=members,
        columns=context(c.retraining, difference(members)),
    )
    yield family, "method"  # the members are what Welch's test samples


# What could have been found: the least detectable shift of every confirmatory row.


def power_table(c: Comparison, confirmatory: Sequence[Built]) -> list[dict[str, Any]]:
    """Least detectable shift and examples needed, from sizes and the variant's pooled discordance.

    Never from a row's own result: power computed from what was observed only restates p.
    """
    pooled = [
        r.family.sums.discordance[0]
        for r in confirmatory
        if r.family.slots.by == "overall" and r.family.sums is not None
    ]
    if not pooled or not np.isfinite(pooled[0]):
        return []
    families = [
        (table.family, table.block, float(np.fmax.reduce(table.block["n_family"], initial=1.0)))
        for table in confirmatory
    ]
    n = np.concatenate([e.n for e, _, _ in families])
    effect = np.concatenate([e.sums.design_effect for e, _, _ in families if e.sums is not None])
    level = c.options.alpha / np.repeat(
        [m for _, _, m in families], [len(e.n) for e, _, _ in families]
    )
    least = iter(min_detectable_shift(n, pooled[0], level, design_effect=effect))
    needed = iter(examples_needed(c.margin, pooled[0], level, design_effect=effect))
    return [
        {
            "variant": c.variant,
            "task": c.task,
            "metric": e.metric.name,
            "by": e.slots.by,
            "group": e.slots.group[i],
            "class": e.slots.cls[i],
            "n": int(e.n[i]),
            "discordance": float(pooled[0]),
            "design_effect": float(own),
            "n_family": int(m),
            "min_detectable_shift": float(next(least)),
            "reference_shift": c.margin,
            "n_needed": float(next(needed)),
            "largest_loss": float(b["largest_loss"][i]),
            "status": str(b["status"][i]),
        }
        for e, b, m in families
        if e.sums is not None
        for i, own in enumerate(e.sums.design_effect)
    ]
