"""Rows of the rate metrics: both models, the paired shift, the excess over the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from fairweight.auditing.compare.bounds import rate_bounds
from fairweight.auditing.compare.closed import closed_rates
from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.estimate import RateEstimate, without_limits
from fairweight.auditing.compare.events import EventRows, event_rows
from fairweight.auditing.compare.families import corrected, family_size
from fairweight.auditing.compare.flips import churn
from fairweight.auditing.compare.linear import linear_rates
from fairweight.auditing.compare.method_rates import method_rates
from fairweight.auditing.compare.retrained import context, difference
from fairweight.auditing.compare.rows import Block, block, status
from fairweight.auditing.metrics.registry import Metric

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
    for metric in metrics:
        for kind in KINDS:
            if LEVEL_OF_KIND[kind] not in metric.by:
                continue
            if kind == "group*class" and metric.name not in CROSSED:
                continue
            estimate = rates(c, metric, kind)
            # With a single label there is nobody of another class: not one row of FPR.
            if estimate is not None and (kind != "group*class" or estimate.n.any()):
                assert metric.event is not None
                yield from scopes(c, metric, estimate, event_rows(c, metric.event, kind))


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
