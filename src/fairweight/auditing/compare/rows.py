"""Rows of the rate metrics: both models, the paired shift, the excess over the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtr

from fairweight.auditing.compare.bootstrap import (
    about_method,
    drawn_block,
    limits_known,
    linear_p,
    method_block,
    method_limits,
    model_limits,
    undrawn_block,
)
from fairweight.auditing.compare.closed_form import closed_rates
from fairweight.auditing.compare.comparison import Comparison, EventRows, event_rows
from fairweight.auditing.compare.estimands import Quantity, kept_by_baseline
from fairweight.auditing.compare.estimate import (
    LEVELS,
    Block,
    RateEstimate,
    block,
    corrected,
    family_size,
    rate_bounds,
    status,
    without_limits,
)
from fairweight.auditing.compare.few_changes import FEW_CHANGED, harmful_bounds
from fairweight.auditing.compare.flips import churn
from fairweight.auditing.compare.influence import Part
from fairweight.auditing.compare.linear import linear_rates
from fairweight.auditing.compare.replicates import Replicated, replicate
from fairweight.auditing.compare.retraining import context, difference
from fairweight.auditing.compare.two_way import method_rates
from fairweight.auditing.metrics.registry import Metric, metric
from fairweight.auditing.result import TEXT_COLUMNS
from fairweight.base.types import Floats, Limits

KINDS = ("overall", "class", "group", "intersection", "group*class")
LEVEL_OF_KIND = {kind: kind for kind in KINDS} | {"intersection": "group"}
# Every rate by class within every group would multiply the tables; recall and FPR determine them.
CROSSED = frozenset({"recall", "fpr"})


@dataclass(frozen=True)
class RateRows:
    """The rows of one family in one scope, and the estimate behind them (for power, structure)."""

    metric: str
    scope: str
    block: Block
    estimate: RateEstimate


def rate_rows(c: Comparison, metrics: list[Metric]) -> Iterator[RateRows]:
    """Rows of every rate that is a share of single examples' events."""
    for rate in metrics:
        for kind in KINDS:
            if LEVEL_OF_KIND[kind] not in rate.by:
                continue
            if kind == "group*class" and rate.name not in CROSSED:
                continue
            estimate = rates(c, rate, kind)
            # With a single label there is nobody of another class: not one row of FPR.
            if estimate is not None and (kind != "group*class" or estimate.n.any()):
                assert rate.event is not None
                yield from scopes(c, rate, estimate, event_rows(c, rate.event, kind))


def scopes(
    c: Comparison, metric: Metric, estimate: RateEstimate, rows: Iterable[EventRows]
) -> Iterator[RateRows]:
    """The rows about these models and, for populations, about the method."""
    about: dict[str, Any] = (
        {} if c.one_pair else context(c.retraining, difference(estimate.members))
    )
    yield RateRows(metric.name, "model", rate_block(c, metric, estimate, about), estimate)
    if c.one_pair:
        return
    kind = estimate.slots.kind
    method = method_rates(c, rows, kind) if c.has_method else without_limits(estimate)
    if method is not None:
        made = rate_block(c, metric, method, about, scope="method")
        yield RateRows(metric.name, "method", made, method)


def rates(c: Comparison, metric: Metric, kind: str) -> RateEstimate | None:
    assert metric.event is not None
    if metric.event.happens in ("uncertain", "top5"):
        return None  # these need scores
    if c.closed_form:
        return closed_rates(c, metric.event, kind)
    return linear_rates(c, event_rows(c, metric.event, kind), kind)


def rate_block(
    c: Comparison,
    metric: Metric,
    e: RateEstimate,
    about: Mapping[str, Any],
    *,
    scope: str = "model",
) -> Block:
    """The rows of one family; limits of families that random signs were drawn for use them."""
    alpha, kind = c.options.alpha, e.slots.kind
    baseline_low, baseline_high = e.baseline_limits(alpha)
    compressed_low, compressed_high = e.compressed_limits(alpha)
    excess_low, excess_high = e.excess_limits(alpha)
    state = status(c, e.n, e.n_clusters)
    state[(state == "ok") & np.isnan(e.baseline)] = "not_estimable: no weight"
    sized = state == "ok"  # who is in a family does not depend on how many members there are
    if scope == "method" and not c.has_method:
        state[sized] = f"not_estimable: {c.pairing.reason}"
    unlimited = block(
        c, metric.name, e.slots, n=e.n, n_clusters=e.n_clusters, status=state, sized=sized
    )
    # Signs are drawn for right and wrong predictions, whose rows share out the examples.
    drawn = metric.event is not None and metric.event.happens in ("correct", "wrong")
    drawn = drawn and (metric.event.given == "all" or kind == "class")  # type: ignore[union-attr]
    draws = c.draws(kind) if drawn and scope == "model" else None
    level = alpha if c.options.correction == "none" else alpha / family_size(unlimited)
    if draws is None:
        levels = {"shift": level, "excess": level, "harm": 2 * level}
    else:
        levels = {
            "shift": 2 * ndtr(-draws.shift_z_star(alpha)),
            "excess": 2 * ndtr(-draws.z_star(alpha)),
            "harm": 2 * ndtr(-draws.harm_z_star(alpha)),
        }
    both = np.array([[alpha], [levels["shift"]], [levels["harm"]]])
    (low, sim_low, harm_low), (high, sim_high, harm_high) = e.limits(both)
    excess_sim_low, excess_sim_high = e.excess_limits(float(levels["excess"]))
    margin = c.options.margin
    equivalent = np.where(
        np.isnan(sim_low + sim_high), np.nan, (sim_low >= -margin) & (sim_high <= margin)
    )
    worst = harm_low if metric.better == "higher" else -harm_high
    ruled_out = np.where(np.isnan(worst), np.nan, worst >= -margin)
    if metric.better not in ("higher", "lower"):
        ruled_out = np.full(len(e.n), np.nan)
    rows = block(
        c,
        metric.name,
        e.slots,
        scope=scope,
        sized=sized,
        aggregation="seeds_first",
        n=e.n,
        n_clusters=e.n_clusters,
        baseline=e.baseline,
        baseline_low=baseline_low,
        baseline_high=baseline_high,
        compressed=e.compressed,
        compressed_low=compressed_low,
        compressed_high=compressed_high,
        shift=e.shift,
        ci_low=low,
        ci_high=high,
        interval=e.intervals,
        p_value=e.p_value,
        excess_shift=e.excess,
        excess_low=excess_low,
        excess_high=excess_high,
        excess_p=e.excess_p,
        sim_low=sim_low,
        sim_high=sim_high,
        excess_sim_low=excess_sim_low,
        excess_sim_high=excess_sim_high,
        equivalent=equivalent,
        loss_ruled_out=ruled_out,
        churn=np.nan if kind == "group*class" else churn(c, metric.event, kind),
        status=state,
        **about,
    )
    rows["largest_loss"] = -worst
    if scope == "model" and kind != "group*class":
        rows |= rate_bounds(e)
        rows["members"] = e.members.T
    present = np.asarray(rows["n"]) > 0
    if kind == "group*class":
        rows = {name: values[present] for name, values in rows.items()}
    return corrected(rows, c.options, draws)


# Rows of the bootstrapped quantities: percentile (or basic) intervals, swap tests, corrections.
#
# For populations every family has rows of scope `method` too: made in `method_values`.

Found: TypeAlias = tuple[Quantity, Replicated | None]

RowsOf: TypeAlias = Callable[[Comparison, Quantity, Replicated], Block]
LimitsOf: TypeAlias = Callable[[Comparison, Quantity, Replicated, Floats, Part], Limits]


def value_rows(c: Comparison, wanted: Sequence[Quantity]) -> Iterator[Block]:
    """Blocks of rows, one per family and scope: all quantities of one metric and kind together."""
    made = iter(replicate(c, [q for q in wanted if q.evaluate is not None]))
    families: dict[tuple[str, str], list[Found]] = {}
    for quantity in wanted:
        found = next(made) if quantity.evaluate is not None else None
        families.setdefault((quantity.metric, quantity.slots.kind), []).append((quantity, found))
    for members in families.values():
        yield from family_blocks(c, members)


def family_blocks(c: Comparison, members: Sequence[Found]) -> Iterator[Block]:
    """The rows of one family, in the order of its quantities, for every scope there is."""
    alpha = c.options.alpha
    model = _joined(c, members, _model_block, "model")
    if not len(model["metric"]):  # a column in which no example has a value has no levels
        return
    levels = np.append(LEVELS, alpha / family_size(model))
    change = _limits(c, members, levels, model_limits, "change", model)
    _simultaneous(model, members, change)
    if np.isfinite(model.get("shift", np.nan)).any():
        model["bounds_shift"] = _columns(change)
        _bound_by_harm(c, members, model)
        value = _limits(c, members, levels, model_limits, "compressed", model)
        model["bounds_value"] = _columns(value)
        # The shift may have no limits where few predictions changed; the value has its own.
        model["value_known"] = np.isfinite(value[0][0])
    else:
        model["bounds_value"] = _columns(change)
    model["members"] = _of_members(c, members)
    yield corrected(model, c.options)
    if not c.one_pair:
        members = [
            (quantity, None if found is None else about_method(c, found))
            for quantity, found in members
        ]
        method = _joined(c, members, method_block, "method")
        level = np.array([alpha / family_size(method)])
        change = _limits(c, members, level, method_limits, "change", method)
        _simultaneous(method, members, change)
        yield corrected(method, c.options)


def _of_members(c: Comparison, members: Sequence[Found]) -> Floats:
    """Every member's own value, (rows, members); NaN where a member has none."""
    parts = [
        np.full((len(quantity.slots), len(c.cube.members)), np.nan)
        if found is None or found.own is None
        else found.own.T
        for quantity, found in members
    ]
    return np.concatenate(parts)


def _joined(c: Comparison, members: Sequence[Found], rows_of: RowsOf, scope: str) -> Block:
    """The quantities of a family as one block; columns that some lack are empty there."""
    blocks = [
        block(
            c,
            quantity.metric,
            quantity.slots,
            scope=scope,
            aggregation=quantity.aggregation,
            n=quantity.n,
            status=quantity.status,
        )
        if found is None
        else rows_of(c, quantity, found)
        for quantity, found in members
    ]
    joined: Block = {}
    for name in dict.fromkeys(name for b in blocks for name in b):
        empty: object = None if name in TEXT_COLUMNS else np.nan
        parts = [b[name] if name in b else np.full(len(b["metric"]), empty) for b in blocks]
        joined[name] = np.concatenate(parts)
    return joined


def _limits(
    c: Comparison,
    members: Sequence[Found],
    levels: Floats,
    limits_of: LimitsOf,
    part: Part,
    rows: Block,
) -> Limits:
    """Limits of all rows of a family at several levels, (levels, rows); NaN where not to be had."""
    shape = (len(levels), len(rows["metric"]))
    low, high = np.full(shape, np.nan), np.full(shape, np.nan)
    at = 0
    for quantity, found in members:
        here = slice(at, at + len(quantity.slots))
        if found is not None:
            made = limits_of(c, quantity, found, levels, part)
            state = rows["status"][here]
            known = limits_known(state, found, part) & ~np.char.startswith(
                state.astype(str), "small_group"
            )
            low[:, here], high[:, here] = (np.where(known, side, np.nan) for side in made)
        at = here.stop
    return low, high


def _bound_by_harm(c: Comparison, members: Sequence[Found], rows: Block) -> None:
    """Put one-sided bounds in the place of the gate's limits where too few predictions changed."""
    state = rows["status"].astype(str)
    open_rows = np.char.find(state, FEW_CHANGED) >= 0
    few = np.zeros(len(state), dtype=bool)
    told = np.full(len(state), None, dtype=object)
    at = 0
    for quantity, found in members:
        here = slice(at, at + len(quantity.slots))
        at = here.stop
        asked = open_rows[here] & np.isfinite(rows["shift"][here])
        bounds = None if found is None else harmful_bounds(c, quantity, asked)
        if bounds is None:
            continue
        few[here] = bounds.few
        told[here][bounds.few] = bounds.status[bounds.few]
        lower = metric(quantity.metric).better == "lower"
        limits = np.full((len(quantity.slots), len(LEVELS), 2), np.nan)
        limits[..., int(lower)] = bounds.loss if lower else -bounds.loss
        rows["bounds_shift"][here][few[here]] = limits[few[here]]
    rows["bound_status"] = told


def _simultaneous(rows: Block, members: Sequence[Found], limits: Limits) -> None:
    """The last level's limits as simultaneous ones; there is no worst of composites."""
    nothing = np.full(len(rows["metric"]), np.nan)
    composite = members[0][0].never_negative
    rows["sim_low"] = nothing if composite else limits[0][-1]
    rows["sim_high"] = nothing if composite else limits[1][-1]


def _columns(limits: Limits) -> Floats:
    """The gate's limits as (rows, levels, 2)."""
    made: Floats = np.stack([side[: len(LEVELS)].T for side in limits], axis=-1)
    return made


def _model_block(c: Comparison, quantity: Quantity, found: Replicated) -> Block:
    """Rows about these models: examples drawn again, answers exchanged."""
    from fairweight.auditing.intervals.bootstrap import exceedance_p

    if found.bootstrap is None or metric(quantity.metric).linear:
        linear = metric(quantity.metric).linear
        nothing = np.full(len(quantity.slots), np.nan)
        return undrawn_block(
            c, quantity, found, linear_p(c, quantity, found) if linear else nothing
        )
    p_value = np.full(len(quantity.slots), np.nan)
    if quantity.p_value is not None:
        p_value = quantity.p_value
    elif found.swapped is not None:
        p_value = exceedance_p(
            found.observed.change[0], found.swapped.change, two_sided=not quantity.never_negative
        )
    return drawn_block(
        c, quantity, found, found.observed, found.bootstrap, p_value, scope="model", drawn=""
    )


# Classes in which the baseline makes no errors: CEV and SDE cannot use them, and must say so.
#
# A class that goes from 0 errors to many must never vanish from the sum.

RELATIVE = ("cev", "sde")
SHOWN = 10


@dataclass(frozen=True)
class LeftOut:
    """A class that relative changes leave out, with how its rates changed."""

    name: str
    fnr: float
    fpr: float
    harmed: bool  # a rate rose, significantly


def without_baseline_errors(c: Comparison) -> list[LeftOut]:
    """Classes whose baseline FPR or FNR is 0, with shifts and tests as everywhere else."""
    if c.options.zero_baseline != "drop":
        return []
    missed = rates(c, metric("fnr"), "class")
    false = rates(c, metric("fpr"), "class")
    if missed is None or false is None:
        return []
    dropped = (missed.n > 0) & (false.n > 0) & ~kept_by_baseline(c)
    alpha = c.options.alpha
    return [
        LeftOut(
            c.classes[k],
            float(missed.shift[k]),
            float(false.shift[k]),
            any(bool(e.shift[k] > 0 and e.p_value[k] < alpha) for e in (missed, false)),
        )
        for k in np.flatnonzero(dropped)
    ]


def left_out_notes(c: Comparison, found: Sequence[LeftOut]) -> list[str]:
    """What was left out, in one sentence."""
    if not found:
        return []
    changes = ", ".join(
        f"'{k.name}' (FNR {100 * k.fnr:+.2f}, FPR {100 * k.fpr:+.2f} points)" for k in found[:SHOWN]
    )
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return [
        f"CEV and SDE of {c.variant} leave out classes in which the baseline makes no false "
        f"positives or no false negatives: {changes}{more}."
    ]


def refused_if_harmed(rows: Block, found: Sequence[LeftOut]) -> Block:
    """CEV and SDE without a number where a class that they leave out was harmed."""
    harmed = [k.name for k in found if k.harmed]
    if rows["metric"][0] not in RELATIVE or not harmed:
        return rows
    shown = ", ".join(harmed[:5]) + (f" and {len(harmed) - 5} more" if len(harmed) > 5 else "")
    size = len(rows["status"])
    refused = {**rows, "status": np.full(size, f"not_estimable: zero baseline in {shown}", object)}
    for name in ("ci_low", "ci_high", "p_value", "p_adjusted", "debiased"):
        refused[name] = np.full(size, np.nan)
    return refused
