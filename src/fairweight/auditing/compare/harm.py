"""Who pays differently: heterogeneity, standardised excess, worst shift, concentration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from fairweight.auditing.compare.comparison import (
    Comparison,
    Slots,
    groupings_of,
    join_slots,
    slots_of,
)
from fairweight.auditing.compare.estimands import Quantity, grouping_slots, sizes, too_few_levels
from fairweight.auditing.compare.estimate import LEVELS, Block, RateEstimate, block, corrected
from fairweight.auditing.compare.flips import concentration_statistic, pair_shares
from fairweight.auditing.compare.members import Both, PerMember
from fairweight.auditing.compare.retraining import Statistic, context, difference
from fairweight.auditing.compare.rows import RateRows
from fairweight.auditing.counts.counts import Tally, ratio, sums
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.intervals.excess import normal_z
from fairweight.auditing.metrics.rates import accuracy, recall
from fairweight.base.types import Floats, Limits

TOP_SHARES = (0.01, 0.05, 0.10)


def heterogeneity_rows(c: Comparison, tables: Sequence[RateRows]) -> Iterator[Block]:
    """Does the change differ by column? From the excesses of the groups, in every scope.

    `tables` are the rows of accuracy by group and by intersection.
    """
    found: dict[str, list[_Column]] = {"model": [], "method": []}
    for table in tables:
        for grouping, place in _places(c, table.estimate):
            found[table.scope].append(_Column(c, table, grouping, place))
    if not found["model"]:
        return
    yield _heterogeneity(c, found["model"], found["model"], "model")
    within = _within_classes(c, found["model"])
    yield within
    if found["method"]:
        yield _heterogeneity(c, found["model"], found["method"], "method")
        why = c.pairing.reason or "no test over members"
        yield _without_test(within, f"not_estimable: {why}")


def _without_test(rows: Block, why: str) -> Block:
    """The same rows about the method, which this test says nothing about."""
    nothing = np.full(len(rows["status"]), np.nan)
    state = rows["status"].copy()
    state[state == "ok"] = why
    nobody = np.full(len(state), None, dtype=object)
    return rows | {
        "scope": np.full(len(state), "method", dtype=object), "status": state, "family": nobody,
        "p_value": nothing, "p_adjusted": nothing, "n_family": nothing,
    }  # fmt: skip


class _Column:
    """One group column in the rows of accuracy."""

    def __init__(
        self, c: Comparison, table: RateRows, grouping: Grouping, place: NDArray[np.intp]
    ) -> None:
        self.grouping, self.kind = grouping, table.estimate.slots.kind
        self.usable = np.asarray(table.block["n_family"])[place] > 0
        self.n = float(table.estimate.n[place].sum())
        self.p = np.where(self.usable, table.estimate.excess_p[place], np.nan)
        self.adjusted = np.asarray(table.block["excess_p_adjusted"], float)[place]
        self.n_family = float(self.usable.sum() and np.nanmax(table.block["n_family"]))
        self.members = table.estimate.members[:, place]
        self.size = table.estimate.n[place]
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


def _places(c: Comparison, e: RateEstimate) -> Iterator[tuple[Grouping, NDArray[np.intp]]]:
    """Every grouping of a table with the places of its levels."""
    first = 0
    for grouping in groupings_of(c, e.slots.kind):
        yield grouping, np.arange(first, first + len(grouping.levels))
        first += len(grouping.levels)


def _heterogeneity(
    c: Comparison, models: Sequence[_Column], parts: Sequence[_Column], scope: str
) -> Block:
    """Rows of one scope: the value is that of these models in both, the test that of the scope."""
    state = np.array([part.why or "ok" for part in parts], dtype=object)
    if scope == "method" and not c.has_method:
        state[state == "ok"] = f"not_estimable: {c.pairing.reason}"
    ok = state == "ok"
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
    rows = block(
        c,
        "heterogeneity",
        join_slots([grouping_slots(c, part.grouping) for part in parts], "grouping"),
        scope=scope,
        aggregation="seeds_first",
        n=[part.n for part in parts],
        compressed=np.where(known, normal_z([part.least for part in models]), np.nan),
        interval=None,
        level=[_furthest(part.grouping, -part.p) for part in models],
        p_value=np.where(ok, p, np.nan),
        status=state,
        **_heterogeneity_context(c, models),
    )
    return rows | {
        "p_adjusted": np.where(ok, adjusted, np.nan),
        "family": _family_names("heterogeneity", parts, ok),
        "n_family": np.where(ok, [part.n_family for part in parts], np.nan),
    }


def _family_names(metric: str, parts: Sequence[_Column], ok: NDArray[np.bool_]) -> Any:
    names = [f"confirmatory: {metric} by {part.kind} (random signs)" for part in parts]
    return np.array([name if good else None for name, good in zip(names, ok, strict=True)], object)


def _furthest(grouping: Grouping, size: Floats) -> str | None:
    """The level where something is largest; None where it is nowhere defined."""
    return grouping.levels[int(np.nanargmax(size))] if np.isfinite(size).any() else None


def _within_classes(c: Comparison, parts: Sequence[_Column]) -> Block:
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
    state[(state == "ok") & np.isnan(p)] = "not_estimable: classes and groups coincide"
    rows = block(
        c,
        "heterogeneity_within_classes",
        join_slots([grouping_slots(c, part.grouping) for part in parts], "grouping"),
        aggregation="seeds_first",
        n=[part.n for part in parts],
        compressed=largest,
        interval=None,
        level=level,
        p_value=p,
        status=state,
    )
    ok = state == "ok"
    return rows | {
        "p_adjusted": adjusted,
        "family": _family_names("heterogeneity_within_classes", parts, ok),
        "n_family": np.where(ok, [part.n_family for part in parts], np.nan),
    }


def _heterogeneity_context(c: Comparison, parts: Sequence[_Column]) -> dict[str, Any]:
    """Context of the largest z: errors of the groups' excesses are held at those of the data."""
    if c.one_pair:
        return {}
    columns = [
        context(c.retraining, _largest_z(c, part), signed=False)
        if np.isfinite(part.p).any()
        else dict.fromkeys(("matched", "noise_floor", "p_retraining"), np.array([np.nan]))
        for part in parts
    ]
    return {name: np.concatenate([column[name] for column in columns]) for name in columns[0]}


def _largest_z(c: Comparison, part: _Column) -> Statistic:
    """max |excess / error| over the groups of a column."""
    tested = np.isfinite(part.p)
    weight = sums(
        part.grouping.code,
        c.cube.count * (1.0 if c.cube.weight is None else c.cube.weight),
        len(part.grouping.levels),
    )
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


def standardised_quantities(c: Comparison) -> Iterator[Quantity]:
    """`excess_shift_standardised` by group: every label weighted equally in level and rest.

    Its p comes from scores within classes. The swap null does not fit: a loss that is the same
    for everyone is no evidence of an excess.
    """
    from fairweight.auditing.intervals.excess import standardised_excess

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

            yield Quantity(
                "excess_shift_standardised",
                slots_of(c, grouping, kind),
                sizes(c, grouping),
                evaluate,
                p_value=p,
            )


def worst_shift_rows(
    c: Comparison, by_group: Sequence[RateEstimate], scope: str = "model"
) -> Iterator[Block]:
    """`worst_group_shift` of every column: the least shift, limits simultaneous over its levels."""
    parts = [
        _worst_shift(c, estimate, grouping, first, scope)
        for estimate, grouping, first in _with_offsets(c, by_group)
    ]
    if not parts:
        return
    names = dict.fromkeys(name for _, made in parts for name in made)
    columns: dict[str, Any] = {
        name: [made.get(name, np.nan) for _, made in parts] for name in names
    }
    rows = block(
        c,
        "worst_group_shift",
        join_slots([slots for slots, _ in parts], "grouping"),
        scope=scope,
        aggregation="rates_first",  # the least of the levels' mean shifts
        **columns,
    )
    if scope == "model":
        rows["bounds_value"] = np.stack(
            [_worst_bounds(c, *part) for part in _with_offsets(c, by_group)]
        )
        rows["members"] = np.stack([_worst_alone(c, *part) for part in _with_offsets(c, by_group)])
    yield corrected(rows, c.options)


def _worst_shift(
    c: Comparison, estimate: RateEstimate, grouping: Grouping, first: int, scope: str
) -> tuple[Slots, dict[str, Any]]:
    usable = np.flatnonzero(c.usable(grouping))
    place = first + usable
    columns: dict[str, Any] = {
        "n": sizes(c, grouping).sum(),
        "compressed": np.nan,
        "ci_low": np.nan,
        "ci_high": np.nan,
        "level": None,
        "interval": None,
        "status": f"not_estimable: no level with {c.options.min_group} examples",
    }
    shift = estimate.shift[place]
    if not np.isfinite(shift).any():
        return grouping_slots(c, grouping), columns
    worst = int(np.nanargmin(shift))
    draws = c.draws(estimate.slots.kind) if scope == "model" else None
    level = c.options.alpha / len(usable)
    if draws is not None:
        level = float(2 * ndtr(-draws.shift_z_star(c.options.alpha)))
    low, high = _least(estimate.limits(level), place)
    columns |= {
        "compressed": shift[worst],
        "ci_low": low,
        "ci_high": high,
        "level": grouping.levels[usable[worst]],
        "interval": f"minimum of simultaneous {estimate.interval} limits",
        "status": "ok" if np.isfinite(low) else "not_estimable: too few clusters",
    }
    if scope == "method" and not c.has_method:
        columns |= {"interval": None, "status": f"not_estimable: {c.pairing.reason}"}
    if not c.one_pair:
        every = difference(estimate.members[:, place])
        least = context(
            c.retraining, lambda one, other: every(one, other).min(axis=1, keepdims=True)
        )
        columns |= {name: value[0] for name, value in least.items()}
    return grouping_slots(c, grouping), columns


def _least(limits: Limits, place: NDArray[np.intp]) -> tuple[float, float]:
    """The least of the lower and of the upper limits; NaN where there are none."""
    low, high = (side[place] for side in limits)
    if not np.isfinite(low).any():
        return np.nan, np.nan
    return float(np.nanmin(low)), float(np.nanmin(high))


def _worst_alone(c: Comparison, estimate: RateEstimate, grouping: Grouping, first: int) -> Floats:
    """The least shift of every compressed member against the baseline's mean, (members,)."""
    each = estimate.members[:, first + np.flatnonzero(c.usable(grouping))]
    shift = each - each[: c.n_baseline].mean(axis=0)
    least = np.full(len(each), np.nan)
    some = np.isfinite(shift).any(axis=1) & (np.arange(len(each)) >= c.n_baseline)
    if some.any():
        least[some] = np.nanmin(shift[some], axis=1)
    return least


def _worst_bounds(c: Comparison, estimate: RateEstimate, grouping: Grouping, first: int) -> Floats:
    """The gate's limits of the least shift, (levels, 2)."""
    usable = np.flatnonzero(c.usable(grouping))
    low, high = estimate.limits(LEVELS[:, None] / max(len(usable), 1))
    return np.array([_least((low[i], high[i]), first + usable) for i in range(len(LEVELS))])


def _with_offsets(
    c: Comparison, by_group: Sequence[RateEstimate]
) -> Iterator[tuple[RateEstimate, Grouping, int]]:
    """Each grouping with the table that holds its levels and the place of the first of them."""
    for estimate in by_group:
        first = 0
        for grouping in groupings_of(c, estimate.slots.kind):
            yield estimate, grouping, first
            first += len(grouping.levels)


def concentration_table(c: Comparison) -> list[dict[str, Any]]:
    """Who bears the lost answers: each level, and the top 1, 5 and 10 % of clusters."""
    from fairweight.auditing.intervals.concentration import share_of_top

    lost, gained = _lost_and_gained(c)
    count = c.cube.count.astype(float)
    totals = float(lost.sum()), float(gained.sum()), float(count.sum())
    rows: list[dict[str, Any]] = []

    def row(column: str, part: str, n: float, here: tuple[float, float], expected: float) -> None:
        rows.append(
            {
                "variant": c.variant,
                "task": c.task,
                "column": column,
                "part": part,
                "n": int(n),
                "share_examples": n / totals[2],
                "lost": here[0],
                "gained": here[1],
                "share_lost": here[0] / totals[0] if totals[0] else np.nan,
                "share_gained": here[1] / totals[1] if totals[1] else np.nan,
                "share_lost_poisson": expected,
            }
        )

    for grouping in c.groupings:
        size = len(grouping.levels)
        n, down, up = (sums(grouping.code, w, size) for w in (count, lost, gained))
        for i, level in enumerate(grouping.levels):
            row(grouping.name, level, n[i], (down[i], up[i]), n[i] / totals[2])
    if c.cube.unit_is_cluster and c.cube.unit is not None:
        unit = c.cube.unit
        n, down, up = (sums(unit, w, len(c.cube.unit_names)) for w in (count, lost, gained))
        rng = c.rng("concentration")
        share_lost, reference = share_of_top(down, TOP_SHARES, exposure=n, rng=rng)
        share_gained, _ = share_of_top(up, TOP_SHARES, exposure=n, rng=rng)
        order = np.argsort(-down, kind="stable")
        for i, share in enumerate(TOP_SHARES):
            top = order[: max(1, int(np.ceil(round(share * len(n), 9))))]
            row(
                "(clusters)",
                f"top {share:.0%}",
                n[top].sum(),
                (share_lost[i] * totals[0], share_gained[i] * totals[1]),
                reference[i],
            )
    return rows


def concentration_rows(c: Comparison) -> Iterator[Block]:
    """Rows of `concentration`: the share of all lost answers that each group bears."""
    from fairweight.auditing.intervals.proportion import wilson

    lost, _ = _lost_and_gained(c)
    total = float(lost.sum())
    for kind, single in (("group", True), ("intersection", False)):
        chosen = [g for g in c.groupings if g.single is single]
        if not chosen:
            continue
        borne = np.concatenate([sums(g.code, lost, len(g.levels)) for g in chosen])
        n = np.concatenate([sizes(c, g) for g in chosen])
        nothing = np.full(len(borne), np.nan)
        low, high = (
            wilson(borne, np.full(len(borne), total), c.options.alpha)
            if c.closed_form and total
            else (nothing, nothing)
        )
        about = [_concentration_context(c, g) for g in chosen]
        context_columns: dict[str, Any] = {
            name: np.concatenate([part[name] for part in about]) for name in about[0]
        }
        rows = block(
            c,
            "concentration",
            join_slots([slots_of(c, g, kind) for g in chosen], kind),
            aggregation="pairs",
            n=n,
            compressed=borne / total if total else nothing,
            ci_low=low,
            ci_high=high,
            interval="wilson, given the number of lost answers" if c.closed_form else None,
            **context_columns,
        )
        if not total:
            rows["status"] = np.full(len(n), "not_estimable: no answer was lost", dtype=object)
        rows["members"] = np.concatenate([_borne_by_member(c, g) for g in chosen])
        yield corrected(rows, c.options)
        if not c.one_pair:
            yield corrected(_about_method(c, rows), c.options)


def _borne_by_member(c: Comparison, grouping: Grouping) -> Floats:
    """Share of each compressed member's lost answers that a level bears, (levels, members)."""
    each = [np.full(len(grouping.levels), np.nan)] * c.n_baseline
    for member in range(c.n_baseline, len(c.cube.members)):
        pairs = [pair for pair in c.pairing.pairs if pair[1] == member]
        lost, _ = _lost_and_gained(c, pairs)
        here = sums(grouping.code, lost, len(grouping.levels))
        each.append(ratio(here, lost.sum()))
    return np.stack(each, axis=1)


def _about_method(c: Comparison, rows: Block) -> Block:
    """The same shares for scope `method`: whether another run repeats them is not estimated."""
    rows = {name: values for name, values in rows.items() if name != "members"}
    state = rows["status"].copy()
    state[state == "ok"] = "not_estimable: no interval over members"
    if not c.has_method:
        state[state.astype(str) == "not_estimable: no interval over members"] = (
            f"not_estimable: {c.pairing.reason}"
        )
    scope = np.full(len(state), "method", dtype=object)
    nothing = np.full(len(state), np.nan)
    return {**rows, "scope": scope, "status": state, "ci_low": nothing, "ci_high": nothing}


def _concentration_context(c: Comparison, grouping: Grouping) -> dict[str, Any]:
    """Where retraining alone puts the lost answers."""
    if c.one_pair or c.retraining.splits is None:
        return {}
    shares = pair_shares(c, grouping)
    if shares is None:
        return dict.fromkeys(("matched", "noise_floor"), np.full(len(grouping.levels), np.nan))
    lost = shares["harmful_flips"]
    made = context(
        replace(c.retraining, relabelled=None),
        concentration_statistic(lost, lost.sum(axis=0, keepdims=True)),
        signed=False,
    )
    return {name: made[name] for name in ("matched", "noise_floor")}


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


def group_error_table(c: Comparison, by_group: Sequence[RateEstimate]) -> list[dict[str, Any]]:
    """Range of each level's excess if the declared share of group labels is wrong."""
    from fairweight.auditing.intervals.excess import corrected_excess

    error = c.options.group_error
    rows: list[dict[str, Any]] = []
    if not error:
        return rows
    total = float(c.cube.count.sum())
    for e in by_group:
        low, high = corrected_excess(e.excess, e.n / total, error)
        for i, group in enumerate(e.slots.group):
            rows.append(
                {
                    "variant": c.variant,
                    "task": c.task,
                    "group": group,
                    "error": error,
                    "excess_shift": float(e.excess[i]),
                    "corrected_low": float(low[i]),
                    "corrected_high": float(high[i]),
                }
            )
    return rows


def class_impact_rows(c: Comparison) -> Iterator[Block]:
    """`class_impact`: Welch's test of recall − accuracy over the members of both populations."""
    from fairweight.auditing.metrics.harm import class_impact

    slots = slots_of(c, c.whole, "class")
    n = c.pairs[""].label[0]
    if min(c.n_baseline, c.n_compressed) < 2:
        why = "not_estimable: fewer than two members per side"
        rows = block(
            c,
            "class_impact",
            slots_of(c, c.whole, "overall"),
            scope="model" if c.one_pair else "method",
            aggregation="seeds_first",
            n=sizes(c, c.whole),
            status=np.array([why], dtype=object),
        )
        yield corrected(rows, c.options)
        return
    counts = Tally(c.cube, (c.whole,), range(len(c.cube.members)), positive=c.positive).observed()[
        0
    ]
    recalls, accuracies = recall(counts)[:, 0], accuracy(counts)[:, 0]
    k = c.n_baseline
    impact = class_impact(recalls[:k], accuracies[:k], recalls[k:], accuracies[k:])
    about: dict[str, Any] = context(c.retraining, difference(recalls - accuracies[:, None]))
    rows = block(
        c,
        "class_impact",
        slots,
        scope="method",  # the members are what Welch's test samples
        aggregation="seeds_first",
        n=n,
        compressed=impact.difference,
        p_value=impact.p_value,
        interval="welch",
        **about,
    )
    rows["members"] = (recalls - accuracies[:, None]).T
    yield corrected(rows, c.options)


# What could have been found: the least detectable shift of every confirmatory row.


def power_table(c: Comparison, confirmatory: Sequence[RateRows]) -> list[dict[str, Any]]:
    """Least detectable shift and examples needed, from sizes and the variant's pooled discordance.

    Never from a row's own result: power computed from what was observed only restates p.
    """
    from fairweight.auditing.intervals.power import examples_needed, min_detectable_shift

    pooled = [r.estimate.discordance[0] for r in confirmatory if r.estimate.slots.by == "overall"]
    rows: list[dict[str, Any]] = []
    if not pooled or not np.isfinite(pooled[0]):
        return rows
    for table in confirmatory:
        e, b = table.estimate, table.block
        m = np.nanmax(b["n_family"]) if np.isfinite(b["n_family"]).any() else 1.0
        level = c.options.alpha / m
        least = min_detectable_shift(e.n, pooled[0], level, design_effect=e.design_effect)
        needed = examples_needed(c.options.margin, pooled[0], level, design_effect=e.design_effect)
        needed = np.broadcast_to(needed, e.n.shape)
        for i in range(len(e.n)):
            rows.append(
                {
                    "variant": c.variant,
                    "task": c.task,
                    "metric": table.metric,
                    "by": e.slots.by,
                    "group": e.slots.group[i],
                    "class": e.slots.cls[i],
                    "n": int(e.n[i]),
                    "discordance": float(pooled[0]),
                    "n_family": int(m),
                    "min_detectable_shift": float(least[i]),
                    "reference_shift": c.options.margin,
                    "n_needed": float(needed[i]),
                    "largest_loss": float(b["largest_loss"][i]),
                    "status": str(b["status"][i]),
                }
            )
    return rows
