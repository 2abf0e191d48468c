"""Rows whose limits come from draws: percentile intervals, basic ones for CEV and SDE."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.estimate import Limits
from fairweight.auditing.compare.quantities import Quantity
from fairweight.auditing.compare.replicates import Replicated
from fairweight.auditing.compare.rows import Block, block, status
from fairweight.auditing.compare.sides import Values
from fairweight.auditing.counts.stats import Floats

UNSTABLE = 0.05  # share of undefined replicates above which a row is called unstable
NO_WIDTH = "none: every draw is alike"
ENOUGH_PER_CLASS = 1_000  # below this the basic interval of CEV and SDE does not cover
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
    still = never_moves(draws)
    return np.where(still, np.nan, low), np.where(still, np.nan, high)


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
    from fairweight.auditing.intervals.composite import inflated_limits

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
        low, high = percentile(replicates, alpha)
    unstable = share_undefined(replicates) > UNSTABLE
    state = state_of(c, quantity, estimate, unstable)
    shown = ~unstable & ~np.char.startswith(state.astype(str), "not_estimable")
    still = never_moves(replicates)
    limits_shown = shown & ~still & (not withheld)
    how = np.full(len(quantity.slots), interval, dtype=object)
    how[still] = NO_WIDTH
    columns: dict[str, Any] = dict(found.context)
    if observed.baseline is not None and draws.baseline is not None:
        columns |= {"baseline": observed.baseline[0], "shift": estimate}
        for name, side in (("baseline", draws.baseline), ("compressed", draws.compressed)):
            side_low, side_high = percentile(side, alpha)
            moves = shown & ~never_moves(side)
            columns[f"{name}_low"] = np.where(moves, side_low, np.nan)
            columns[f"{name}_high"] = np.where(moves, side_high, np.nan)
    if observed.excess is not None and draws.excess is not None:
        excess_low, excess_high = percentile(draws.excess, alpha)
        columns |= {
            "excess_shift": observed.excess[0],
            "excess_low": np.where(shown, excess_low, np.nan),
            "excess_high": np.where(shown, excess_high, np.nan),
        }
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
        p_value=np.where(shown, p_value, np.nan),
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
) -> NDArray[np.object_]:
    state = status(c, quantity.n, quantity.slots.clusters).copy()
    if quantity.status is not None:
        state = np.where(quantity.status == "ok", state, quantity.status)
    open_rows = state == "ok"
    state[open_rows & np.isnan(estimate)] = "not_estimable: undefined in the data"
    state[(state == "ok") & unstable] = "not_estimable: unstable"
    return state
