"""Rows of the bootstrapped quantities for scope `method`: members are sampled too.

Means over members of each member's own value get a two-way t: the spread of the members' values,
the bootstrap over examples of their mean, less what both contain. What is made of mean rates (CEV,
SDE, normalised changes) is drawn again with members and examples. Gaps get the wider of both: drawn
members alone cover too little where few members limit what is known, the t alone where noise makes
gaps out of equal groups. Tests of gaps and composites relabel members.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.drawn import (
    FEW_CHANGES,
    NO_WIDTH,
    UNSTABLE,
    cut,
    drawn_block,
    drawn_limits,
    few_changes,
    limits_known,
    sized_rows,
    state_of,
)
from fairweight.auditing.compare.estimate import Limits
from fairweight.auditing.compare.influence import Part
from fairweight.auditing.compare.member_spread import units_of
from fairweight.auditing.compare.method_rates import interval_name
from fairweight.auditing.compare.quantities import Quantity
from fairweight.auditing.compare.replicates import Replicated
from fairweight.auditing.compare.rows import Block, block
from fairweight.auditing.compare.sides import Values
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.intervals.two_way import NO_VARIANCE
from fairweight.auditing.metrics.registry import metric

if TYPE_CHECKING:
    from fairweight.auditing.intervals.two_way import Term, TwoWay


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
    from fairweight.auditing.intervals.two_way import two_way

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
