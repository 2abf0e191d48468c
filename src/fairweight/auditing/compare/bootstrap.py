"""Limits and rows of what has no closed form: percentile, basic for CEV and SDE, t where a value is
the mean of what examples add, none where a value is biased.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.estimands import Estimand
from fairweight.auditing.compare.estimate import (
    Estimate,
    Family,
    Formula,
    LimitsAt,
    few_changes,
    limits_where,
    repeated,
    status,
)
from fairweight.auditing.compare.influence import Part
from fairweight.auditing.compare.members import Values, units_of
from fairweight.auditing.compare.replicates import Replicated
from fairweight.auditing.compare.two_way import interval_name
from fairweight.auditing.intervals.bootstrap import (
    Replicates,
    bias_corrected,
    inflated_limits,
    percentile,
    simultaneous,
)
from fairweight.auditing.intervals.units import NO_VARIANCE, Term, TwoWay, two_way
from fairweight.auditing.schema import NOT_ESTIMABLE, SMALL_GROUP, of_kind
from fairweight.base.types import Floats, Limits

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
    estimand: Estimand,
    found: Replicated,
    observed: Floats,
    draws: Replicates,
    levels: Floats,
    *,
    scope: str,
) -> Limits:
    """Limits at several levels, (levels, rows), of a value as observed, (rows,), and its draws."""
    if estimand.metric.inflation is not None:
        low, high = _inflated(c, estimand, observed, draws, found.swapped, levels, scope)
    else:
        ends = draws.simultaneous(observed, levels[:, None])
        low, high = widened(observed, ends, few_clusters(estimand), levels[:, None])
    return np.where(draws.still, np.nan, low), np.where(draws.still, np.nan, high)


def model_limits(
    c: Comparison, estimand: Estimand, found: Replicated, levels: Floats, part: Part
) -> Limits:
    """Limits about these models at several levels: of the change, or of the compressed value."""
    entry = estimand.metric
    observed: Floats = getattr(found.observed, part)[0]
    if estimand.no_limits is not None:
        nothing = np.full((len(levels), len(observed)), np.nan)
        return nothing, nothing
    if entry.linear:
        reach = -stdtrit(_degrees(estimand), levels[:, None] / 2) * _error(c, found, part)
        return cut(estimand, (observed - reach, observed + reach), part)
    assert found.bootstrap is not None
    draws = found.bootstrap.drawn(part)
    low, high = drawn_limits(c, estimand, found, observed, draws, levels, scope="model")
    stable = draws.undefined <= UNSTABLE
    return np.where(stable, low, np.nan), np.where(stable, high, np.nan)


def linear_p(c: Comparison, estimand: Estimand, found: Replicated) -> Floats:
    """Two-sided p of no change, from the limits' own error; 1 where nothing changed at all."""
    shift = found.observed.change[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.abs(shift) / _error(c, found, "change")
        p: Floats = 2 * stdtr(_degrees(estimand), -t)
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


def _degrees(estimand: Estimand) -> Floats:
    """Examples, or clusters, less one."""
    clusters = estimand.slots.clusters
    made: Floats = np.maximum(np.where(np.isnan(clusters), estimand.n, clusters) - 1, 1)
    return made


def cut(estimand: Estimand, limits: Limits, part: Part) -> Limits:
    """Limits within the metric's range; a change may span it in either direction."""
    entry = estimand.metric
    low, high = entry.low, entry.high
    if part in ("change", "excess"):
        reach = (high - low) * (2 if part == "excess" else 1)
        low, high = -reach, reach
    return np.clip(limits[0], low, high), np.clip(limits[1], low, high)


def few_clusters(estimand: Estimand) -> Floats:
    """Degrees of freedom of rows with under 50 clusters, by which limits are widened; else NaN."""
    few = estimand.slots.clusters < FEW_CLUSTERS
    return np.where(few, _degrees(estimand), np.nan)


def widened(value: Floats, limits: Limits, degrees: Floats, level: float | Floats) -> Limits:
    """Under 50 clusters, limits moved away from the value by t(G − 1) / z; else as they are.

    The middle 95 % of draws of few clusters are too close: draws vary less than new clusters do.
    """
    few = ~np.isnan(degrees)
    if not few.any():
        return limits
    tail = np.asarray(level) / 2
    factor = stdtrit(np.where(few, degrees, 1.0), tail) / ndtri(tail)
    low, high = (value + (side - value) * factor for side in limits)
    low, high = np.fmin(limits[0], low), np.fmax(limits[1], high)
    return np.where(few, low, limits[0]), np.where(few, high, limits[1])


def percentile_limits(
    value: Floats,
    ordered: Floats,
    defined: NDArray[np.intp],
    degrees: Floats,
    rows: NDArray[np.bool_],
    level: float | Floats,
) -> Limits:
    """Percentiles of draws in order, widened for few clusters; NaN but of some rows."""
    ends = percentile(ordered, defined, level)
    low, high = widened(value, ends, degrees, level)
    return np.where(rows, low, np.nan), np.where(rows, high, np.nan)


def simultaneous_limits(
    value: Floats,
    ordered: Floats,
    defined: NDArray[np.intp],
    error: Floats,
    degrees: Floats,
    rows: NDArray[np.bool_],
    level: float | Floats,
) -> Limits:
    """The same at levels that draws may not resolve."""
    ends = simultaneous(value, ordered, defined, error, level)
    low, high = widened(value, ends, degrees, level)
    return np.where(rows, low, np.nan), np.where(rows, high, np.nan)


def _inflated(
    c: Comparison,
    estimand: Estimand,
    estimate: Floats,
    replicates: Replicates,
    swapped: Values | None,
    levels: Floats,
    scope: str,
) -> Limits:
    """Limits of CEV and SDE; none where classes are too small for them to cover."""
    if c.pairs[""].label[0].min() < ENOUGH_PER_CLASS:
        nothing = np.full((len(levels), len(estimate)), np.nan)
        return nothing, nothing
    null = None if swapped is None else swapped.drawn("compressed")
    absolute = estimand.metric.inflation == "absolute"
    made = [
        inflated_limits(
            estimate, replicates, null, float(level), absolute=absolute, reach_up=REACH_UP[scope]
        )
        for level in levels
    ]
    return np.stack([low for low, _ in made]), np.stack([high for _, high in made])


def _state(
    c: Comparison,
    estimand: Estimand,
    observed: Values,
    found: Replicated,
    unstable: NDArray[np.bool_] | None = None,
) -> NDArray[np.object_]:
    """The status of every row: of its size, of its value, of what its limits rest on."""
    state = status(c, estimand.n, estimand.slots.clusters)
    if estimand.status is not None:
        state = np.where(estimand.status == "ok", state, estimand.status)
    state[(state == "ok") & np.isnan(observed.change[0])] = "not_estimable: undefined in the data"
    if found.changed is not None and estimand.no_limits is None:
        for i, why in enumerate(found.changed.reasons()):
            if state[i] == "ok" and why is not None:
                state[i] = f"not_estimable: {why}"
    if unstable is not None:
        state[(state == "ok") & unstable] = "not_estimable: unstable"
    return state


def limits_known(
    estimable: NDArray[np.bool_], few: NDArray[np.bool_], found: Replicated, part: Part
) -> NDArray[np.bool_]:
    """Rows that may have limits of this part; `few`: those whose change is too little for some."""
    known = estimable | few if part in ("baseline", "compressed") else estimable
    return known if found.changed is None else known & found.changed.enough(part)


# Rows of the bootstrapped estimands for scope `method`: members are sampled too.
#
# Means over members of each member's own value get a two-way t: the spread of the members'
# values, the bootstrap over examples of their mean, less what both contain. What is made of mean
# rates (CEV, SDE, normalised changes) is drawn again with members and examples. Gaps get the
# wider of both: drawn members alone cover too little where few members limit what is known, the t
# alone where noise makes gaps out of equal groups. Tests of gaps and composites relabel members.


def method_limits(
    c: Comparison, estimand: Estimand, found: Replicated, levels: Floats, part: Part
) -> Limits:
    """Limits about the method at several levels, (levels, rows)."""
    unlimited = estimand.no_limits is not None
    if unlimited or not c.has_method or not _has_members(found):
        nothing = np.full((len(levels), len(estimand.slots)), np.nan)
        return nothing, nothing
    limits = drawn_with_members(c, estimand, found, levels, part)
    if estimand.rates_first and limits is not None:
        return limits
    estimate = two_way_values(c, estimand, found, part)
    low, high = estimate.limits(levels[:, None])
    still = estimate.variance <= NO_VARIANCE
    low, high = np.where(still, np.nan, low), np.where(still, np.nan, high)
    if limits is not None:
        low, high = np.fmin(low, limits[0]), np.fmax(high, limits[1])
    return cut(estimand, (low, high), part)


def drawn_with_members(
    c: Comparison, estimand: Estimand, found: Replicated, levels: Floats, part: Part
) -> Limits | None:
    """Limits from draws of members and examples; None where members were not drawn."""
    if found.resampled is None:
        return None
    observed, draws = getattr(by_unit(c, found), part)[0], found.resampled.drawn(part)
    return drawn_limits(c, estimand, found, observed, draws, levels, scope="method")


def _relabelled_p(estimand: Estimand, found: Replicated) -> Floats:
    return found.context.get("p_retraining", np.full(len(estimand.slots), np.nan))


def by_unit(c: Comparison, found: Replicated) -> Values:
    """The data with every unit counted alike (a parent with all its children is one unit)."""
    if c.all_alike or found.members is None or found.members.baseline is None:
        return found.observed
    return found.members.mean(c.unit_weights)


def two_way_values(c: Comparison, estimand: Estimand, found: Replicated, part: Part) -> TwoWay:
    """The two-way t of the change, the excess, or one side's value."""
    assert found.members is not None
    units = units_of(found.members, c.pairing)
    value = getattr(by_unit(c, found), part)
    names: tuple[str, ...] = (part,)
    if part == "change" and "change" not in units:
        names = ("baseline", "compressed")
    elif part == "excess" and "excess" not in units:
        names = ("baseline_excess", "compressed_excess")
    items = np.where(np.isnan(estimand.slots.clusters), estimand.n, estimand.slots.clusters)
    others = np.maximum(items - 1, 1)
    members: list[Term] = []
    interactions: list[Term] = []
    for name in names:
        k = units[name].shape[1]
        members.append((units[name][0].var(axis=0, ddof=1) / k, k - 1))
        own = found.spread.get(name, np.zeros(value.shape[1]))
        interactions.append((own / (k * (k - 1)), (k - 1) * others))
    # The variance over examples (clusters) of a mean over units, in closed form or from draws.
    if found.influence is not None:
        signs = {"baseline": (1.0, 0.0), "compressed": (0.0, 1.0), "change": (-1.0, 1.0)}[part]
        weights = [w * sign for w, sign in zip(c.unit_weights, signs, strict=True)]
        over_examples = found.influence.variance(np.concatenate(weights))
    else:
        drawn: Floats = getattr(found.by_unit or found.bootstrap, part)
        several = np.isfinite(drawn).sum(axis=0) > 1
        over_examples = np.full(drawn.shape[1], np.nan)
        over_examples[several] = np.nanvar(drawn[:, several], axis=0, ddof=1)
    return two_way(value[0], members, (over_examples, others), interactions)


def _has_members(found: Replicated) -> bool:
    """Whether members were drawn again, or their own values are known."""
    own = found.members is not None and found.members.baseline is not None
    return own or found.resampled is not None


# Families: the values of an estimand with the limits, the test and the words of one rule.

LimitsOf: TypeAlias = Callable[[Part, NDArray[np.bool_]], LimitsAt]  # of some rows of a part


def limits_of(limits: Callable[[Floats, Part], Limits]) -> LimitsOf:
    """Of a function of levels, (L,), and a part that returns (L, rows) each."""

    def at(part: Part, level: float | Floats) -> Limits:
        low, high = limits(np.reshape(level, -1), part)
        return (low[0], high[0]) if np.ndim(level) == 0 else (low, high)

    return lambda part, rows: limits_where(rows, partial(at, part))


def drawn_family(c: Comparison, estimand: Estimand, found: Replicated | None, scope: str) -> Family:
    """A family of what has no closed form, about these models or about the method."""
    entry = estimand.metric
    nothing = np.full(len(estimand.slots), np.nan)
    if found is None:  # the status says why there is no value
        none = limits_where(np.zeros(len(nothing), dtype=bool), None)
        return Family(
            entry,
            estimand.slots,
            estimand.n,
            Estimate.closed(nothing, none, nothing),
            status=estimand.status,
            sized=np.asarray(estimand.status == "ok"),
            members=np.full((len(c.cube.members), len(nothing)), np.nan)
            if scope == "model"
            else None,
        )
    if scope == "method":
        # Strangers change each other's predictions anyway: where members are not paired, the two
        # sides' means may agree on an example on which no two members do, and how few examples
        # changed is no sign of anything.
        return _of_method(c, estimand, found if c.pairing.paired else replace(found, changed=None))
    p = nothing
    if found.bootstrap is None or entry.linear:  # limits that need no draws: t, or none at all
        state = _state(c, estimand, found.observed, found)
        how = repeated(f"none: {estimand.no_limits}", len(state)).copy()
        if estimand.p_value is not None:
            p = estimand.p_value
        if entry.linear:
            p = linear_p(c, estimand, found)
            how[:] = f"t over {'clusters' if c.cube.unit_is_cluster else 'examples'}"
            how[few_changes(state)] = FEW_CHANGES
        limits = limits_of(partial(model_limits, c, estimand, found))
        return _family(
            c, estimand, found, found.observed, state, how, limits=limits, corrected=limits, p=p,
            members=True,
        )  # fmt: skip
    if estimand.p_value is not None:
        p = estimand.p_value
    elif (tested := found.tested(two_sided=entry.inflation is None)).swap_p is not None:
        p = tested.swap_p
    return _percentiles(c, estimand, found, found.observed, found.bootstrap, p, scope)


def _of_method(c: Comparison, estimand: Estimand, found: Replicated) -> Family:
    """Members drawn too, a two-way t, the wider of both, or the values alone."""
    why, observed = estimand.no_limits, by_unit(c, found)
    if not c.has_method or not _has_members(found):
        reason = "no interval over members" if c.has_method else str(c.no_method)
        state = _state(c, estimand, found.observed, found)
        state[(state == "ok") | few_changes(state)] = f"not_estimable: {reason}"
        return _family(c, estimand, found, found.observed, state, None)
    if why is not None:
        state = _state(c, estimand, observed, found)
        return _family(c, estimand, found, observed, state, f"none: {why}")
    if estimand.rates_first and found.resampled is not None:
        p = _relabelled_p(estimand, found)
        return _percentiles(c, estimand, found, observed, found.resampled, p, "method")
    return _two_way(c, estimand, found, observed)


def _percentiles(
    c: Comparison,
    estimand: Estimand,
    found: Replicated,
    observed: Values,
    draws: Values,
    p: Floats,
    scope: str,
) -> Family:
    """Limits that come from draws: percentile, or basic for what noise can only inflate."""
    inflated, method = estimand.metric.inflation is not None, scope == "method"
    withheld = inflated and c.pairs[""].label[0].min() < ENOUGH_PER_CLASS
    change = draws.drawn("change")
    unstable, still = change.undefined > UNSTABLE, change.still
    state = _state(c, estimand, observed, found, unstable)

    degrees = few_clusters(estimand)

    def pointwise(part: Part, rows: NDArray[np.bool_]) -> LimitsAt:
        value, own = getattr(observed, part)[0], draws.drawn(part)
        return Formula(percentile_limits, (value, own.ordered, own.defined, degrees, rows))

    def corrected(part: Part, rows: NDArray[np.bool_]) -> LimitsAt:
        value, own = getattr(observed, part)[0], draws.drawn(part)
        stable = rows & ~own.still & (own.undefined <= UNSTABLE)
        columns = value, own.ordered, own.defined, own.deviation(), degrees, stable
        return Formula(simultaneous_limits, columns)

    def basic(levels: Floats, part: Part) -> Limits:
        value, own = getattr(observed, part)[0], draws.drawn(part)
        low, high = _inflated(c, estimand, value, own, found.swapped, levels, scope)
        # Whether nothing changed is what the test is for; the interval must not contradict it.
        return np.where(p <= levels[:, None], low, 0.0), high

    def moves(part: Part) -> NDArray[np.bool_]:
        if part == "change":
            return ~still & (not withheld)
        if part == "excess":
            return np.ones(len(state), dtype=bool)
        own = draws.drawn(part)
        return ~own.still & (own.undefined <= UNSTABLE)

    drawn = f"({len(draws.compressed)} replicates{', members drawn too' if method else ''})"
    how = repeated(f"percentile bootstrap {drawn}", len(state)).copy()
    if inflated:
        how[:] = f"basic bootstrap {drawn}"
        if estimand.metric.inflation == "absolute" and found.swapped is not None:
            how += ", ends moved to what noise allows"
        if withheld:
            how[:] = f"none below {ENOUGH_PER_CLASS:,} examples per class"
    else:
        how[estimand.slots.clusters < FEW_CLUSTERS] += ", widened by t / z for few clusters"
    how[still] = NO_WIDTH
    few = few_changes(state)
    how[few] = FEW_CHANGES
    # Exchanging predictions is a test of few changes too; relabelling members is none.
    tested = limits_known(~of_kind(state, NOT_ESTIMABLE), few, found, "change")
    tested |= few & ~unstable & (not method)
    columns = {}
    if inflated:
        debiased = bias_corrected(observed.change[0], change, drop_negative=True)
        columns["debiased"] = debiased
    return _family(
        c,
        estimand,
        found,
        observed,
        state,
        how,
        limits=limits_of(basic) if inflated else pointwise,
        corrected=limits_of(partial(method_limits if method else model_limits, c, estimand, found))
        if inflated
        else corrected,
        p=np.where(tested, p, np.nan),
        moves=moves,
        members=not method,
        columns=columns,
    )


def _two_way(c: Comparison, estimand: Estimand, found: Replicated, observed: Values) -> Family:
    """Limits of a mean over members of each member's own value."""
    draws = found.by_unit or found.bootstrap
    unstable = None if draws is None else draws.drawn("change").undefined > UNSTABLE
    state = _state(c, estimand, observed, found, unstable)
    shown = ~of_kind(state, NOT_ESTIMABLE)
    limits = partial(method_limits, c, estimand, found)
    p, interval = two_way_values(c, estimand, found, "change").p_value, interval_name(c)
    if found.resampled is not None:
        p = _relabelled_p(estimand, found)
        interval = f"wider of {interval} and percentile bootstrap with members drawn"
    low = limits(np.array([c.options.alpha]), "change")[0][0]
    how = repeated(interval, len(state)).copy()
    few = few_changes(state)
    how[(np.isnan(low) | ~limits_known(shown, few, found, "change")) & shown] = NO_WIDTH
    how[few] = FEW_CHANGES
    excess_p = None
    if observed.excess is not None:
        found_p = two_way_values(c, estimand, found, "excess").p_value
        excess_p = np.where(shown, found_p, np.nan)
    return _family(
        c, estimand, found, observed, state, how, limits=limits_of(limits),
        corrected=limits_of(limits), p=np.where(shown, p, np.nan), excess_p=excess_p,
    )  # fmt: skip


def _family(
    c: Comparison,
    estimand: Estimand,
    found: Replicated,
    observed: Values,
    state: NDArray[np.object_],
    interval: NDArray[np.object_] | str | None,
    *,
    limits: LimitsOf | None = None,
    corrected: LimitsOf | None = None,
    p: Floats | None = None,
    excess_p: Floats | None = None,
    moves: Callable[[Part], NDArray[np.bool_]] | None = None,
    members: bool = False,
    columns: Mapping[str, Floats] | None = None,
) -> Family:
    """The parts that an estimand has as estimates; limits of the rows that may have some.

    `moves` says which rows of a part have limits at the audit's level; groups that are too small
    have none at smaller levels.
    """
    small, few = of_kind(state, SMALL_GROUP), few_changes(state)
    estimable = ~of_kind(state, NOT_ESTIMABLE)

    def estimate(part: Part, p: Floats | None = None) -> Estimate:
        value: Floats = getattr(observed, part)[0]
        if limits is None or corrected is None:
            return Estimate.alone(value, p)
        known = limits_known(estimable, few, found, part)
        shown = known if moves is None else known & moves(part)
        # Nobody asks for the baseline, or the excess of what is drawn, at further levels.
        further = corrected(part, known & ~small) if part in ("change", "compressed") else None
        return Estimate(value, limits(part, shown), p, further)

    compared = observed.baseline is None
    own = None
    if members:
        own = np.full((len(c.cube.members), len(state)), np.nan) if found.own is None else found.own
    sized: NDArray[np.bool_] = status(c, estimand.n, estimand.slots.clusters) == "ok"
    return Family(
        estimand.metric,
        estimand.slots,
        estimand.n,
        estimate("change", p) if compared else estimate("compressed"),
        None if compared else estimate("baseline"),
        None if compared else estimate("change", p),
        None if observed.excess is None else estimate("excess", excess_p),
        status=state,
        sized=sized if estimand.status is None else sized & (estimand.status == "ok"),
        interval=interval,
        members=own,
        columns={"level": found.level, **(columns or {}), **found.context},
    )
