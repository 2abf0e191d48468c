"""Limits and rows of what has no closed form: percentile, basic for CEV and SDE, t where a value is
the mean of what examples add, none where a value is biased.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.estimands import Quantity
from fairweight.auditing.compare.estimate import Block, block, status
from fairweight.auditing.compare.influence import Part
from fairweight.auditing.compare.members import Values, units_of
from fairweight.auditing.compare.replicates import Replicated
from fairweight.auditing.compare.two_way import interval_name
from fairweight.auditing.intervals.units import NO_VARIANCE
from fairweight.auditing.metrics.registry import metric
from fairweight.base.types import Floats, Limits

if TYPE_CHECKING:
    from fairweight.auditing.intervals.units import Term, TwoWay

UNSTABLE = 0.05  # share of undefined replicates above which a row is called unstable
NO_WIDTH = "none: every draw is alike"
FEW_CHANGES = "none: too few changes"
ENOUGH_PER_CLASS = 1_000  # below this the basic interval of CEV and SDE does not cover
FEW_CLUSTERS = 50  # below this percentile limits are widened by t / z
# Deviations above SDE that its upper end reaches at least. Where little changed, the reflected end
# lies far too low once members are drawn too: one deviation covered 85 to 88 %.
REACH_UP = {"model": 1.0, "method": 2.0}


def drawn_limits(
    c: Comparison,
    quantity: Quantity,
    found: Replicated,
    observed: Floats,
    draws: Floats,
    levels: Floats,
    *,
    scope: str,
) -> Limits:
    """Limits at several levels, (levels, rows), of a value as observed, (rows,), and its draws."""
    from fairweight.auditing.intervals.bootstrap import simultaneous

    if quantity.never_negative:
        low, high = _inflated(c, quantity, observed, draws, found.swapped, levels, scope)
    else:
        low, high = simultaneous(observed, draws, levels[:, None], 1)
        low, high = widened(quantity, observed, (low, high), levels[:, None])
    still = never_moves(draws)
    return np.where(still, np.nan, low), np.where(still, np.nan, high)


def model_limits(
    c: Comparison, quantity: Quantity, found: Replicated, levels: Floats, part: Part
) -> Limits:
    """Limits about these models at several levels: of the change, or of the compressed value."""
    from fairweight.auditing.intervals.bootstrap import share_undefined

    entry = metric(quantity.metric)
    observed: Floats = getattr(found.observed, part)[0]
    if entry.no_limits is not None:
        nothing = np.full((len(levels), len(observed)), np.nan)
        return nothing, nothing
    if entry.linear:
        reach = -_t(_degrees(quantity), levels[:, None] / 2) * _error(c, found, part)
        return cut(quantity, (observed - reach, observed + reach), part)
    assert found.bootstrap is not None
    draws: Floats = getattr(found.bootstrap, part)
    low, high = drawn_limits(c, quantity, found, observed, draws, levels, scope="model")
    stable = share_undefined(draws) <= UNSTABLE
    return np.where(stable, low, np.nan), np.where(stable, high, np.nan)


def linear_p(c: Comparison, quantity: Quantity, found: Replicated) -> Floats:
    """Two-sided p of no change, from the limits' own error; 1 where nothing changed at all."""
    from scipy.special import stdtr

    shift = found.observed.change[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.abs(shift) / _error(c, found, "change")
        p: Floats = 2 * stdtr(_degrees(quantity), -t)
    if found.changed is None:
        return p
    p = np.where(found.changed.enough("change"), p, np.nan)
    return np.where(found.changed.examples() == 0, 1.0, p)


def _error(c: Comparison, found: Replicated, part: Part) -> Floats:
    """Standard error over examples (clusters); NaN where nothing varies."""
    if found.influence is None:  # a mean over tasks: drawn with all its tasks
        assert found.bootstrap is not None
        variance: Floats = getattr(found.bootstrap, part).var(axis=0, ddof=1)
    else:
        first, second = np.full(c.n_baseline, 1.0), np.full(c.n_compressed, 1.0)
        weights = {"baseline": (1.0, 0.0), "compressed": (0.0, 1.0), "change": (-1.0, 1.0)}[part]
        one, other = first * weights[0] / len(first), second * weights[1] / len(second)
        variance = found.influence.variance(np.concatenate([one, other]))
    return np.sqrt(np.where(variance > 0, variance, np.nan))


def _degrees(quantity: Quantity) -> Floats:
    """Examples, or clusters, less one."""
    clusters = quantity.slots.clusters
    made: Floats = np.maximum(np.where(np.isnan(clusters), quantity.n, clusters) - 1, 1)
    return made


def _t(degrees: Floats, tail: Floats) -> Floats:
    from scipy.special import stdtrit

    quantile: Floats = stdtrit(degrees, tail)
    return quantile


def cut(quantity: Quantity, limits: Limits, part: Part) -> Limits:
    """Limits within the metric's range; a change may span it in either direction."""
    entry = metric(quantity.metric)
    low, high = entry.low, entry.high
    if part in ("change", "excess"):
        reach = (high - low) * (2 if part == "excess" else 1)
        low, high = -reach, reach
    return np.clip(limits[0], low, high), np.clip(limits[1], low, high)


def widened(quantity: Quantity, value: Floats, limits: Limits, level: float | Floats) -> Limits:
    """Under 50 clusters, limits moved away from the value by t(G − 1) / z; else as they are.

    The middle 95 % of draws of few clusters are too close: draws vary less than new clusters do.
    """
    from scipy.special import ndtri

    few = quantity.slots.clusters < FEW_CLUSTERS
    if not few.any():
        return limits
    tail = np.asarray(level) / 2
    factor = np.where(few, _t(np.where(few, _degrees(quantity), 1.0), tail) / ndtri(tail), 1.0)
    low, high = (value + (side - value) * factor for side in limits)
    return np.fmin(limits[0], low), np.fmax(limits[1], high)


def never_moves(draws: Floats) -> NDArray[np.bool_]:
    """Rows whose draws are all alike: they say nothing about the next example.

    A group on which two models agree everywhere would else get an interval of no width.
    """
    still: NDArray[np.bool_] = (draws == draws[:1]).all(axis=0)
    return still


def _inflated(
    c: Comparison,
    quantity: Quantity,
    estimate: Floats,
    replicates: Floats,
    swapped: Values | None,
    levels: Floats,
    scope: str,
) -> Limits:
    """Limits of CEV and SDE; none where classes are too small for them to cover."""
    from fairweight.auditing.intervals.bootstrap import inflated_limits

    if c.pairs[""].label[0].min() < ENOUGH_PER_CLASS:
        nothing = np.full((len(levels), len(estimate)), np.nan)
        return nothing, nothing
    null = None if swapped is None else swapped.compressed
    absolute = quantity.metric.startswith("sde")
    made = [
        inflated_limits(
            estimate, replicates, null, float(level), absolute=absolute, reach_up=REACH_UP[scope]
        )
        for level in levels
    ]
    return np.stack([low for low, _ in made]), np.stack([high for _, high in made])


def undrawn_block(c: Comparison, quantity: Quantity, found: Replicated, p_value: Floats) -> Block:
    """Rows about these models whose limits need no draws: t, or none at all."""
    entry, observed = metric(quantity.metric), found.observed
    estimate = observed.change[0]
    state = state_of(c, quantity, estimate, np.zeros(len(estimate), dtype=bool), found)
    columns: dict[str, Any] = {**found.context, "shift": estimate}
    if observed.baseline is not None:
        columns["baseline"] = observed.baseline[0]
    interval: Any = f"none: {entry.no_limits}"
    if entry.linear:
        interval = np.full(len(estimate), f"t over {units_name(c)}", dtype=object)
        interval[few_changes(state)] = FEW_CHANGES
    at = np.array([c.options.alpha])
    parts: tuple[Part, ...] = ("change", "baseline", "compressed")
    names = {"change": "ci", "baseline": "baseline", "compressed": "compressed"}
    for part in parts:
        low, high = model_limits(c, quantity, found, at, part)
        shown = limits_known(state, found, part)
        columns[f"{names[part]}_low"] = np.where(shown, low[0], np.nan)
        columns[f"{names[part]}_high"] = np.where(shown, high[0], np.nan)
    return block(
        c,
        quantity.metric,
        quantity.slots,
        aggregation=quantity.aggregation,
        n=quantity.n,
        compressed=observed.compressed[0],
        interval=interval,
        p_value=p_value,
        status=state,
        sized=sized_rows(c, quantity),
        n_clusters=quantity.slots.clusters,
        **columns,
    )


def units_name(c: Comparison) -> str:
    """What is sampled."""
    return "clusters" if c.cube.unit_is_cluster else "examples"


def drawn_block(
    c: Comparison,
    quantity: Quantity,
    found: Replicated,
    observed: Values,
    draws: Values,
    p_value: Floats,
    *,
    scope: str,
    drawn: str,
) -> Block:
    """Rows whose limits come from draws: percentile, or basic for CEV and SDE."""
    from fairweight.auditing.intervals.bootstrap import bias_corrected, percentile, share_undefined

    alpha = c.options.alpha
    estimate, replicates = observed.change[0], draws.change
    debiased = np.full(len(quantity.slots), np.nan)
    interval = f"percentile bootstrap ({len(replicates)} replicates{drawn})"
    withheld = False

    def of(value: Floats, replicates: Floats) -> Limits:
        return widened(quantity, value, percentile(replicates, alpha), alpha)

    if quantity.never_negative:
        levels = np.array([alpha])
        made = _inflated(c, quantity, estimate, replicates, found.swapped, levels, scope)
        low, high = made[0][0], made[1][0]
        debiased = bias_corrected(estimate, replicates, drop_negative=True)
        interval = f"basic bootstrap ({len(replicates)} replicates{drawn})"
        if quantity.metric.startswith("sde") and found.swapped is not None:
            interval += ", ends moved to what noise allows"
        if c.pairs[""].label[0].min() < ENOUGH_PER_CLASS:
            withheld = True
            interval = f"none below {ENOUGH_PER_CLASS:,} examples per class"
        # Whether nothing changed is what the test is for; the interval must not contradict it.
        low = np.where(p_value <= alpha, low, 0.0)
    else:
        low, high = of(estimate, replicates)
    unstable = share_undefined(replicates) > UNSTABLE
    state = state_of(c, quantity, estimate, unstable, found)
    still, few = never_moves(replicates), few_changes(state)
    limits_shown = limits_known(state, found, "change") & ~still & (not withheld)
    how = np.full(len(quantity.slots), interval, dtype=object)
    if not quantity.never_negative:
        how[quantity.slots.clusters < FEW_CLUSTERS] += ", widened by t / z for few clusters"
    how[still] = NO_WIDTH
    how[few] = FEW_CHANGES
    columns: dict[str, Any] = dict(found.context)
    if observed.baseline is not None and draws.baseline is not None:
        columns |= {"baseline": observed.baseline[0], "shift": estimate}
        sides: tuple[tuple[Part, Floats, Floats], ...] = (
            ("baseline", observed.baseline[0], draws.baseline),
            ("compressed", observed.compressed[0], draws.compressed),
        )
        for name, value, side in sides:
            side_low, side_high = of(value, side)
            moves = limits_known(state, found, name) & ~never_moves(side)
            moves &= share_undefined(side) <= UNSTABLE
            columns[f"{name}_low"] = np.where(moves, side_low, np.nan)
            columns[f"{name}_high"] = np.where(moves, side_high, np.nan)
    if observed.excess is not None and draws.excess is not None:
        excess_low, excess_high = of(observed.excess[0], draws.excess)
        shown = limits_known(state, found, "excess")
        columns |= {
            "excess_shift": observed.excess[0],
            "excess_low": np.where(shown, excess_low, np.nan),
            "excess_high": np.where(shown, excess_high, np.nan),
        }
    # Exchanging predictions is a test of few changes too; relabelling members is none.
    tested = limits_known(state, found, "change") | (few & ~unstable & (scope == "model"))
    return block(
        c,
        quantity.metric,
        quantity.slots,
        scope=scope,
        aggregation=quantity.aggregation,
        n=quantity.n,
        compressed=observed.compressed[0],
        ci_low=np.where(limits_shown, low, np.nan),
        ci_high=np.where(limits_shown, high, np.nan),
        interval=how,
        p_value=np.where(tested, p_value, np.nan),
        debiased=debiased,
        status=state,
        sized=sized_rows(c, quantity),
        n_clusters=quantity.slots.clusters,
        level=found.level,
        **columns,
    )


def sized_rows(c: Comparison, quantity: Quantity) -> NDArray[np.bool_]:
    """Rows that could be tested, by their size and by what the metric needs."""
    sized: NDArray[np.bool_] = status(c, quantity.n, quantity.slots.clusters) == "ok"
    return sized if quantity.status is None else sized & (quantity.status == "ok")


def state_of(
    c: Comparison,
    quantity: Quantity,
    estimate: Floats,
    unstable: NDArray[np.bool_],
    found: Replicated,
) -> NDArray[np.object_]:
    state = status(c, quantity.n, quantity.slots.clusters).copy()
    if quantity.status is not None:
        state = np.where(quantity.status == "ok", state, quantity.status)
    open_rows = state == "ok"
    state[open_rows & np.isnan(estimate)] = "not_estimable: undefined in the data"
    if found.changed is not None and metric(quantity.metric).no_limits is None:
        for i, why in enumerate(found.changed.reasons()):
            if state[i] == "ok" and why is not None:
                state[i] = f"not_estimable: {why}"
    state[(state == "ok") & unstable] = "not_estimable: unstable"
    return state


def few_changes(state: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Rows whose change has no limits because too little changed; their sides may have some."""
    return np.array(["changed predictions" in text for text in state], dtype=bool)


def limits_known(state: NDArray[np.object_], found: Replicated, part: Part) -> NDArray[np.bool_]:
    """Rows that may have limits of this part."""
    known = ~np.char.startswith(state.astype(str), "not_estimable")
    if part in ("baseline", "compressed"):
        known |= few_changes(state)
    return known if found.changed is None else known & found.changed.enough(part)


# Rows of the bootstrapped quantities for scope `method`: members are sampled too.
#
# Means over members of each member's own value get a two-way t: the spread of the members' values,
# the bootstrap over examples of their mean, less what both contain. What is made of mean rates
# (CEV,
# SDE, normalised changes) is drawn again with members and examples. Gaps get the wider of both:
# drawn
# members alone cover too little where few members limit what is known, the t alone where noise
# makes
# gaps out of equal groups. Tests of gaps and composites relabel members.


def about_method(c: Comparison, found: Replicated) -> Replicated:
    """The same as scope `method` has it: strangers change each other's predictions anyway.

    Where members are not paired, the two sides' means may agree on an example on which no two
    members do; how few examples changed is then no sign of anything.
    """
    return found if c.pairing.paired else replace(found, changed=None)


def method_block(c: Comparison, quantity: Quantity, found: Replicated) -> Block:
    """Rows about the method, or the estimates alone where members are too few."""
    if not c.has_method:
        return _estimates_only(c, quantity, found, str(c.pairing.reason))
    if not _has_members(found):
        return _estimates_only(c, quantity, found, "no interval over members")
    observed = by_unit(c, found)
    why = metric(quantity.metric).no_limits
    if why is not None:
        return _estimates_only(c, quantity, replace(found, observed=observed), None, f"none: {why}")
    if quantity.rates_first and found.resampled is not None:
        p_value = _relabelled_p(quantity, found)
        return drawn_block(
            c, quantity, found, observed, found.resampled, p_value,
            scope="method", drawn=", members drawn too",
        )  # fmt: skip
    return _two_way_block(c, quantity, found, observed)


def method_limits(
    c: Comparison, quantity: Quantity, found: Replicated, levels: Floats, part: Part
) -> Limits:
    """Limits about the method at several levels, (levels, rows)."""
    unlimited = metric(quantity.metric).no_limits is not None
    if unlimited or not c.has_method or not _has_members(found):
        nothing = np.full((len(levels), len(quantity.slots)), np.nan)
        return nothing, nothing
    limits = drawn_with_members(c, quantity, found, levels, part)
    if quantity.rates_first and limits is not None:
        return limits
    estimate = two_way_values(c, quantity, found, part)
    low, high = estimate.limits(levels[:, None])
    still = estimate.variance <= NO_VARIANCE
    low, high = np.where(still, np.nan, low), np.where(still, np.nan, high)
    if limits is not None:
        low, high = np.fmin(low, limits[0]), np.fmax(high, limits[1])
    return cut(quantity, (low, high), part)


def drawn_with_members(
    c: Comparison, quantity: Quantity, found: Replicated, levels: Floats, part: Part
) -> Limits | None:
    """Limits from draws of members and examples; None where members were not drawn."""
    if found.resampled is None:
        return None
    observed, draws = getattr(by_unit(c, found), part)[0], getattr(found.resampled, part)
    return drawn_limits(c, quantity, found, observed, draws, levels, scope="method")


def _relabelled_p(quantity: Quantity, found: Replicated) -> Floats:
    return found.context.get("p_retraining", np.full(len(quantity.slots), np.nan))


def by_unit(c: Comparison, found: Replicated) -> Values:
    """The data with every unit counted alike (a parent with all its children is one unit)."""
    if c.all_alike or found.members is None or found.members.baseline is None:
        return found.observed
    return found.members.mean(c.unit_weights)


def two_way_values(c: Comparison, quantity: Quantity, found: Replicated, part: Part) -> TwoWay:
    """The two-way t of the change, the excess, or one side's value."""
    from fairweight.auditing.intervals.units import two_way

    assert found.members is not None
    units = units_of(found.members, c.pairing).parts
    value = getattr(by_unit(c, found), part)
    names: tuple[str, ...] = (part,)
    if part == "change" and "change" not in units:
        names = ("baseline", "compressed")
    elif part == "excess" and "excess" not in units:
        names = ("baseline_excess", "compressed_excess")
    items = np.where(np.isnan(quantity.slots.clusters), quantity.n, quantity.slots.clusters)
    others = np.maximum(items - 1, 1)
    members: list[Term] = []
    interactions: list[Term] = []
    for name in names:
        k = units[name].shape[1]
        members.append((units[name][0].var(axis=0, ddof=1) / k, k - 1))
        own = found.spread.get(name, np.zeros(value.shape[1]))
        interactions.append((own / (k * (k - 1)), (k - 1) * others))
    return two_way(value[0], members, (_over_examples(c, found, part), others), interactions)


def _over_examples(c: Comparison, found: Replicated, part: Part) -> Floats:
    """Variance over examples (clusters) of a mean over units, from draws or in closed form."""
    if found.influence is not None:
        signs = {"baseline": (1.0, 0.0), "compressed": (0.0, 1.0), "change": (-1.0, 1.0)}[part]
        weights = [w * sign for w, sign in zip(c.unit_weights, signs, strict=True)]
        return found.influence.variance(np.concatenate(weights))
    drawn: Floats = getattr(found.by_unit or found.bootstrap, part)
    several = np.isfinite(drawn).sum(axis=0) > 1
    spread = np.full(drawn.shape[1], np.nan)
    spread[several] = np.nanvar(drawn[:, several], axis=0, ddof=1)
    return spread


def _two_way_block(c: Comparison, quantity: Quantity, found: Replicated, observed: Values) -> Block:
    from fairweight.auditing.intervals.bootstrap import share_undefined

    alpha = c.options.alpha
    draws = found.by_unit or found.bootstrap
    unstable = np.zeros(len(quantity.slots), dtype=bool)
    if draws is not None:
        unstable = share_undefined(draws.change) > UNSTABLE
    state = state_of(c, quantity, observed.change[0], unstable, found)
    shown = ~np.char.startswith(state.astype(str), "not_estimable")

    def limits(part: Part) -> Limits:
        low, high = method_limits(c, quantity, found, np.array([alpha]), part)
        known = limits_known(state, found, part)
        return np.where(known, low[0], np.nan), np.where(known, high[0], np.nan)

    low, high = limits("change")
    p_value, interval = two_way_values(c, quantity, found, "change").p_value, interval_name(c)
    if found.resampled is not None:
        p_value = _relabelled_p(quantity, found)
        interval = f"wider of {interval} and percentile bootstrap with members drawn"
    columns: dict[str, Any] = dict(found.context)
    if observed.baseline is not None:
        columns |= {"baseline": observed.baseline[0], "shift": observed.change[0]}
        columns["baseline_low"], columns["baseline_high"] = limits("baseline")
        columns["compressed_low"], columns["compressed_high"] = limits("compressed")
    if observed.excess is not None:
        columns["excess_shift"] = observed.excess[0]
        columns["excess_low"], columns["excess_high"] = limits("excess")
        excess = two_way_values(c, quantity, found, "excess")
        columns["excess_p"] = np.where(shown, excess.p_value, np.nan)
    how = np.full(len(quantity.slots), interval, dtype=object)
    how[np.isnan(low) & shown] = NO_WIDTH
    how[few_changes(state)] = FEW_CHANGES
    return block(
        c,
        quantity.metric,
        quantity.slots,
        scope="method",
        aggregation=quantity.aggregation,
        n=quantity.n,
        compressed=observed.compressed[0],
        ci_low=low,
        ci_high=high,
        interval=how,
        p_value=np.where(shown, p_value, np.nan),
        status=state,
        sized=sized_rows(c, quantity),
        n_clusters=quantity.slots.clusters,
        level=found.level,
        **columns,
    )


def _has_members(found: Replicated) -> bool:
    """Whether members were drawn again, or their own values are known."""
    own = found.members is not None and found.members.baseline is not None
    return own or found.resampled is not None


def _estimates_only(
    c: Comparison,
    quantity: Quantity,
    found: Replicated,
    reason: str | None,
    interval: str | None = None,
) -> Block:
    """Rows without limits: `reason` makes them not estimable, `interval` says why none are."""
    observed = found.observed
    columns: dict[str, Any] = dict(found.context)
    if observed.baseline is not None:
        columns |= {"baseline": observed.baseline[0], "shift": observed.change[0]}
    if observed.excess is not None:
        columns["excess_shift"] = observed.excess[0]
    never = np.zeros(len(quantity.slots), dtype=bool)
    state = state_of(c, quantity, observed.change[0], never, found)
    if reason is not None:
        state[(state == "ok") | few_changes(state)] = f"not_estimable: {reason}"
    return block(
        c,
        quantity.metric,
        quantity.slots,
        scope="method",
        aggregation=quantity.aggregation,
        n=quantity.n,
        compressed=observed.compressed[0],
        interval=interval,
        status=state,
        n_clusters=quantity.slots.clusters,
        level=found.level,
        **columns,
    )
