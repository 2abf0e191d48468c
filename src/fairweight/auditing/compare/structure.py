"""Who pays differently: heterogeneity, standardised excess, worst shift, concentration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.bounds import LEVELS
from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.estimate import Limits, RateEstimate
from fairweight.auditing.compare.families import corrected
from fairweight.auditing.compare.flip_pairs import concentration_statistic, pair_shares
from fairweight.auditing.compare.quantities import Quantity, grouping_slots, sizes, too_few_levels
from fairweight.auditing.compare.retrained import Statistic, context, difference, least_p
from fairweight.auditing.compare.rows import Block, block
from fairweight.auditing.compare.sides import Both, PerMember
from fairweight.auditing.compare.slots import Slots, groupings_of, join_slots, slots_of
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.counts.sums import sums
from fairweight.auditing.counts.tally import Tally
from fairweight.auditing.metrics.rates import accuracy, recall
from fairweight.auditing.metrics.ratio import ratio

if TYPE_CHECKING:
    from fairweight.auditing.intervals.heterogeneity import Heterogeneity

TOP_SHARES = (0.01, 0.05, 0.10)


def differences(c: Comparison) -> Floats:
    """Per cell, compressed right − baseline right: the mean over members of each side."""
    right = c.cube.prediction == c.cube.label[:, None]
    after: Floats = right[:, c.n_baseline :].mean(axis=1)
    before: Floats = right[:, : c.n_baseline].mean(axis=1)
    return after - before


def heterogeneities(c: Comparison) -> list[tuple[Grouping, Heterogeneity]]:
    """The permutation test of every column."""
    return [(g, _heterogeneity(c, g)) for g in c.groupings]


def heterogeneity_rows(
    c: Comparison, found: Sequence[tuple[Grouping, Heterogeneity]]
) -> Iterator[Block]:
    """`heterogeneity` of every column: do its levels pay differently?"""
    if not found:
        return
    state = np.array([_testable(c, g, h) for g, h in found], dtype=object)
    shared: dict[str, Any] = {
        "aggregation": "seeds_first",
        "n": [sizes(c, g).sum() for g, _ in found],
        "compressed": [h.statistic for _, h in found],
        "interval": None,
        "level": [_hardest_hit(c, g, h) for g, h in found],
    }
    shared |= _heterogeneity_context(c, found)
    slots = join_slots([grouping_slots(c, g) for g, _ in found], "grouping")
    p_value = np.where(state == "ok", [h.p_value for _, h in found], np.nan)
    yield corrected(
        block(c, "heterogeneity", slots, p_value=p_value, status=state, **shared), c.options
    )
    if c.one_pair:
        return
    state = state.copy()
    tested = int((state == "ok").sum())
    if not c.has_method:
        state[state == "ok"] = f"not_estimable: {c.pairing.reason}"
    elif least_p(c.retraining, c.pairing) * max(tested, 1) > c.options.alpha:
        # Such a test finds nothing whatever happened: it must not read as "no evidence".
        state[state == "ok"] = "not_estimable: too few members for a test by relabelling"
    relabelled = np.where(state == "ok", shared["p_retraining"], np.nan)
    rows = block(
        c, "heterogeneity", slots, scope="method", p_value=relabelled, status=state, **shared
    )
    yield corrected(rows, c.options)


def _heterogeneity_context(
    c: Comparison, found: Sequence[tuple[Grouping, Heterogeneity]]
) -> dict[str, Floats]:
    """Context of the largest |t|: errors of the levels' excesses are held at those of the data."""
    if c.one_pair:
        return {}
    columns = [
        context(c.retraining, _largest_t(c, g, h), signed=False)
        if np.isfinite(h.t).any()
        else dict.fromkeys(("matched", "noise_floor", "p_retraining"), np.array([np.nan]))
        for g, h in found
    ]
    return {name: np.concatenate([part[name] for part in columns]) for name in columns[0]}


def _largest_t(c: Comparison, grouping: Grouping, h: Heterogeneity) -> Statistic:
    """max |excess / error| over levels, the excess beyond what the level's labels explain."""
    tested = np.isfinite(h.t)
    keep = tested[grouping.code]
    cube = c.cube
    amount = np.where(keep, cube.count * (1.0 if cube.weight is None else cube.weight), 0.0)
    size = len(grouping.levels)
    right = (cube.prediction == cube.label[:, None]) * amount[:, None]
    n_classes = len(c.classes)
    cells = grouping.code.astype(np.int64) * n_classes + cube.label

    def table(values: Floats) -> Floats:
        return sums(cells, values, size * n_classes).reshape(size, n_classes)

    total = table(amount)
    hits = np.stack([table(column) for column in right.T])  # (members, levels, classes)
    expected = total * ratio(hits.sum(axis=1), total.sum(axis=0))[:, None, :]
    beyond = ratio(np.where(total > 0, hits - expected, 0.0).sum(axis=2), total.sum(axis=1))
    excess = difference(beyond[:, tested])
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.abs(excess(*c.retraining.observed)[0])
        error = own / np.abs(h.t[tested])
    usable = np.isfinite(error) & (error > 0)

    def statistic(first: Floats, second: Floats) -> Floats:
        moved = np.abs(excess(first, second))[:, usable] / error[usable]
        largest: Floats = moved.max(axis=1, initial=0.0)[:, None]
        return largest if usable.any() else np.full((len(first), 1), np.nan)

    return statistic


def _testable(c: Comparison, grouping: Grouping, h: Heterogeneity) -> str:
    """`ok`, or why the levels of a column cannot be compared."""
    why = too_few_levels(c, grouping)
    if why is None and not np.isfinite(h.p_value):
        why = "not_estimable: labels and levels coincide"
    return why or "ok"


def _hardest_hit(c: Comparison, grouping: Grouping, h: Heterogeneity) -> str | None:
    """The level, of those that are large enough, whose excess stands out most."""
    size = np.where(c.usable(grouping), np.abs(h.t), np.nan)
    return grouping.levels[int(np.nanargmax(size))] if np.isfinite(size).any() else None


def _heterogeneity(c: Comparison, grouping: Grouping) -> Heterogeneity:
    from fairweight.auditing.intervals.heterogeneity import heterogeneity

    if not c.closed_form:
        return clustered_test(c, grouping, c.cube.label)
    usable = c.usable(grouping)
    p = c.pairs[grouping.name]
    found = heterogeneity(
        p.label[usable],
        p.lost[usable],
        p.gained[usable],
        n_draws=c.options.n_boot,
        rng=c.rng(f"heterogeneity {grouping.name}"),
    )
    return _of_all_levels(found, usable)


def clustered_test(c: Comparison, grouping: Grouping, strata: NDArray[np.int32]) -> Heterogeneity:
    """The test by examples, or by whole clusters; differences are centred within `strata`."""
    from fairweight.auditing.intervals.heterogeneity import heterogeneity_clusters

    cube, usable = c.cube, c.usable(grouping)
    # Every example is an item of its own, or of its cluster. Levels that are too small, and
    # missing values, are nobody's group here, as in gaps.
    cells = np.flatnonzero(usable[grouping.code])
    if usable.sum() < 2 or not len(cells):
        return _of_all_levels(None, usable)
    examples = np.repeat(cells, cube.count[cells])
    place = np.cumsum(usable) - 1
    found = heterogeneity_clusters(
        np.arange(len(examples)) if cube.unit is None else cube.unit[examples],
        place[grouping.code[examples]],
        np.unique(strata[examples], return_inverse=True)[1].reshape(-1),
        differences(c)[examples],
        weight=None if cube.weight is None else cube.weight[examples],
        n_draws=c.options.n_boot,
        rng=c.rng(f"heterogeneity {grouping.name}"),
    )
    return _of_all_levels(found, usable)


def _of_all_levels(found: Heterogeneity | None, usable: NDArray[np.bool_]) -> Heterogeneity:
    """The test of the usable levels with a place for every level."""
    from fairweight.auditing.intervals.heterogeneity import Heterogeneity

    def placed(values: Floats | None) -> Floats:
        everyone = np.full(len(usable), np.nan)
        if values is not None:
            everyone[usable] = values
        return everyone

    if found is None:
        nothing = placed(None)
        return Heterogeneity(np.nan, np.nan, nothing, nothing, nothing, 0)
    return Heterogeneity(
        found.statistic,
        found.p_value,
        placed(found.t),
        placed(found.excess),
        placed(found.excess_p),
        found.n_draws,
    )


def standardised_quantities(
    c: Comparison, found: Sequence[tuple[Grouping, Heterogeneity]]
) -> Iterator[Quantity]:
    """`excess_shift_standardised` by group: every label weighted equally in level and rest.

    Its p comes from permuted group labels. The swap null does not fit: a loss that is the same
    for everyone is no evidence of an excess.
    """
    from fairweight.auditing.intervals.excess import standardised_excess

    for grouping, test in found:
        kind = "group" if grouping.single else "intersection"

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
            p_value=test.excess_p,
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
    low, high = _least(estimate.limits(c.options.alpha / len(usable)), place)
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
    from fairweight.auditing.intervals.wilson import wilson

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
    from fairweight.auditing.intervals.group_error import corrected_excess

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
    from fairweight.auditing.metrics.structure import class_impact

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
