"""Rows of the bootstrapped quantities: percentile (or basic) intervals, swap tests, corrections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.families import corrected, family_size
from fairweight.auditing.compare.quantities import Quantity
from fairweight.auditing.compare.replicates import Replicated, Values, replicate
from fairweight.auditing.compare.rows import Block, block, status
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.result import TEXT_COLUMNS

UNSTABLE = 0.05  # share of undefined replicates above which a row is called unstable
ENOUGH_PER_CLASS = 1_000  # below this the basic interval of CEV and SDE does not cover


def value_rows(c: Comparison, wanted: Sequence[Quantity]) -> Iterator[Block]:
    """Blocks of rows, one per family: all quantities of one metric and kind together."""
    alive = [q for q in wanted if q.evaluate is not None]
    evaluations = [q.evaluate for q in alive if q.evaluate is not None]
    made = iter(replicate(c, evaluations, [q.level for q in alive]) if evaluations else [])
    families: dict[tuple[str, str], list[tuple[Quantity, Replicated | None]]] = {}
    for quantity in wanted:
        found = next(made) if quantity.evaluate is not None else None
        families.setdefault((quantity.metric, quantity.slots.kind), []).append((quantity, found))
    for members in families.values():
        yield family_block(c, members)


def family_block(c: Comparison, members: Sequence[tuple[Quantity, Replicated | None]]) -> Block:
    """The rows of one family, in the order of its quantities."""
    blocks = [
        _without_value(c, quantity) if found is None else _block(c, quantity, found)
        for quantity, found in members
    ]
    joined: Block = {}
    names = dict.fromkeys(name for b in blocks for name in b)
    for name in names:
        empty: object = None if name in TEXT_COLUMNS else np.nan
        parts = [b[name] if name in b else np.full(len(b["metric"]), empty) for b in blocks]
        joined[name] = np.concatenate(parts)
    m = family_size(joined)
    from fairweight.auditing.intervals.bootstrap import simultaneous

    low, high = np.full(len(joined["metric"]), np.nan), np.full(len(joined["metric"]), np.nan)
    at = 0
    for quantity, found in members:
        size = len(quantity.slots)
        if found is not None and not quantity.never_negative:
            estimate, replicates = shift_or_value(found.observed, found.bootstrap)
            low[at : at + size], high[at : at + size] = simultaneous(
                estimate, replicates, c.options.alpha, m
            )
        at += size
    ok = joined["status"] == "ok"
    joined["sim_low"], joined["sim_high"] = np.where(ok, low, np.nan), np.where(ok, high, np.nan)
    return corrected(joined, correction=c.options.correction)


def shift_or_value(observed: Values, replicates: Values) -> tuple[Floats, Floats]:
    """What the interval is about: the shift, or the value of a comparison."""
    if observed.baseline is None or replicates.baseline is None:
        return observed.compressed[0], replicates.compressed
    return (
        observed.compressed[0] - observed.baseline[0],
        replicates.compressed - replicates.baseline,
    )


def _without_value(c: Comparison, quantity: Quantity) -> Block:
    return block(
        c,
        quantity.metric,
        quantity.slots,
        aggregation=quantity.aggregation,
        n=quantity.n,
        status=quantity.status,
    )


def _block(c: Comparison, quantity: Quantity, found: Replicated) -> Block:
    from fairweight.auditing.intervals.bootstrap import (
        bias_corrected,
        exceedance_p,
        percentile,
        share_undefined,
    )
    from fairweight.auditing.intervals.composite import inflated_limits

    alpha = c.options.alpha
    observed, boot = found.observed, found.bootstrap
    estimate, replicates = shift_or_value(observed, boot)
    size = len(quantity.slots)
    nothing = np.full(size, np.nan)
    debiased = nothing
    interval = f"percentile bootstrap ({len(replicates)} replicates)"
    withheld = False
    if quantity.never_negative:
        null = None if found.swapped is None else found.swapped.compressed
        absolute = quantity.metric.startswith("sde")
        low, high = inflated_limits(estimate, replicates, null, alpha, absolute=absolute)
        debiased = bias_corrected(estimate, replicates, drop_negative=True)
        interval = f"basic bootstrap ({len(replicates)} replicates)"
        interval += ", ends moved to what noise allows" if absolute else ""
        if c.pairs[""].label[0].min() < ENOUGH_PER_CLASS:
            withheld = True
            interval = f"none below {ENOUGH_PER_CLASS:,} examples per class"
    else:
        low, high = percentile(replicates, alpha)
    p_value = nothing
    if quantity.p_value is not None:
        p_value = quantity.p_value
    elif found.swapped is not None:
        _, null = shift_or_value(observed, found.swapped)
        p_value = exceedance_p(estimate, null, two_sided=not quantity.never_negative)
    if quantity.never_negative:
        # Whether nothing changed is what the test is for; the interval must not contradict it.
        low = np.where(p_value > alpha, 0.0, low)
    unstable = share_undefined(replicates) > UNSTABLE
    state = _state(c, quantity, estimate, unstable)
    shown = ~unstable & ~np.char.startswith(state.astype(str), "not_estimable")
    limits_shown = shown & (not withheld)
    columns: dict[str, Floats] = {}
    if observed.baseline is not None and boot.baseline is not None:
        base_low, base_high = percentile(boot.baseline, alpha)
        comp_low, comp_high = percentile(boot.compressed, alpha)
        columns = {
            "baseline": observed.baseline[0],
            "baseline_low": np.where(shown, base_low, np.nan),
            "baseline_high": np.where(shown, base_high, np.nan),
            "compressed_low": np.where(shown, comp_low, np.nan),
            "compressed_high": np.where(shown, comp_high, np.nan),
            "shift": estimate,
        }
    if observed.excess is not None and boot.excess is not None:
        excess_low, excess_high = percentile(boot.excess, alpha)
        columns |= {
            "excess_shift": observed.excess[0],
            "excess_low": np.where(shown, excess_low, np.nan),
            "excess_high": np.where(shown, excess_high, np.nan),
        }
    return block(
        c,
        quantity.metric,
        quantity.slots,
        aggregation=quantity.aggregation,
        n=quantity.n,
        compressed=observed.compressed[0],
        ci_low=np.where(limits_shown, low, np.nan),
        ci_high=np.where(limits_shown, high, np.nan),
        interval=interval,
        p_value=np.where(shown, p_value, np.nan),
        debiased=debiased,
        status=state,
        sized=_sized(c, quantity),
        n_clusters=quantity.slots.clusters,
        level=found.level,
        **columns,
    )


def _sized(c: Comparison, quantity: Quantity) -> NDArray[np.bool_]:
    """Rows that could be tested, by their size and by what the metric needs."""
    sized: NDArray[np.bool_] = status(c, quantity.n, quantity.slots.clusters) == "ok"
    return sized if quantity.status is None else sized & (quantity.status == "ok")


def _state(
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
