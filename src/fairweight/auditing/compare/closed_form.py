"""Rates of one pair of models on independent, unweighted examples: Wilson, Tango, mid-p McNemar."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from fairweight.auditing.compare.comparison import (
    Comparison,
    Pairs,
    Slots,
    groupings_of,
    join_slots,
    kept_slots,
    slots_of,
)
from fairweight.auditing.compare.estimate import Estimate, Family, Sums, limits_where
from fairweight.auditing.counts.counts import sums
from fairweight.auditing.intervals.excess import excess_interval, excess_test
from fairweight.auditing.intervals.proportion import mcnemar, tango, tango_test, wilson
from fairweight.auditing.metrics.registry import Event, Metric
from fairweight.base.types import Floats

# A yes-or-no event of two models on the same examples, (5, …): examples, on how many of them it
# happened in the baseline and in the compressed model, and in one of the two alone.
Paired: TypeAlias = Floats


def closed_rates(c: Comparison, metric: Metric, kind: str) -> Family | None:
    """Rates of the metric's event in all rows of a kind; None where it has no such rows."""
    event = metric.event
    assert event is not None
    crossed = kind in ("class", "group*class")
    slots: list[Slots] = []
    inside: list[Paired] = []
    for grouping in groupings_of(c, kind):
        p = c.pairs[grouping.name]
        table = _by_class(p, event) if crossed else _by_slice(p, event, c.positive)
        if table is None:
            return None
        flat = table.reshape(5, -1)
        keep = flat[0] > 0 if kind == "group*class" else np.ones(flat.shape[1], bool)
        slots.append(kept_slots(slots_of(c, grouping, kind), keep))
        inside.append(flat[:, keep])
    # Rows share out the examples unless every class's row counts the examples of all the others.
    shared = not crossed or event.happens in ("correct", "wrong")
    return _family(c, metric, slots, inside, kind, partition=shared and kind != "overall")


def closed_flags(
    c: Comparison, metric: Metric, flags: NDArray[np.bool_], kind: str
) -> Family | None:
    """Rates of a flag per cell and member (such as: the prediction is uncertain)."""
    slots: list[Slots] = []
    inside: list[Paired] = []
    first, second = flags[:, 0], flags[:, 1]
    events = (np.ones(len(first), bool), first, second, first & ~second, second & ~first)
    for grouping in groupings_of(c, kind):
        size = len(grouping.levels)
        inside.append(np.stack([sums(grouping.code, c.cube.count * e, size) for e in events]))
        slots.append(slots_of(c, grouping, kind))
    return _family(c, metric, slots, inside, kind, partition=kind != "overall")


def _by_class(p: Pairs, event: Event) -> Paired:
    """The event for every slice and class, (5, S, C)."""
    everyone = np.broadcast_to(p.n[:, None], p.label.shape)
    if event.happens == "correct":
        counts = p.label, *p.correct, p.lost, p.gained
    elif event.happens == "wrong":
        counts = p.label, p.label - p.correct[0], p.label - p.correct[1], p.gained, p.lost
    elif event.given == "not_label":
        false = p.predicted[0] - p.correct[0], p.predicted[1] - p.correct[1]
        counts = everyone - p.label, *false, p.fp_lost, p.fp_gained
    else:
        counts = everyone, *p.predicted, p.lost + p.fp_lost, p.gained + p.fp_gained
    return np.stack(counts)


def _by_slice(p: Pairs, event: Event, positive: int | None) -> Paired | None:
    """The event per slice: of everyone, or of the positive class; None where it needs one."""
    if event.happens == "abstained":
        return np.stack([p.n, *p.abstained, p.abstained_lost, p.abstained_gained])
    table = _by_class(p, event)
    if event.given == "all" and event.happens in ("correct", "wrong"):
        everyone: Paired = table.sum(axis=-1)
        return everyone
    return None if positive is None else table[..., positive]


def _family(
    c: Comparison,
    metric: Metric,
    slots: Sequence[Slots],
    inside: Sequence[Paired],
    kind: str,
    *,
    partition: bool,
) -> Family | None:
    if not slots:
        return None
    n, baseline_n, compressed_n, lost, gained = np.concatenate(inside, axis=1)
    rest = np.concatenate([part.sum(axis=1, keepdims=True) - part for part in inside], axis=1)
    sides = n, lost, gained, rest[0], rest[3], rest[4]
    nothing = np.full(len(n), np.nan)
    compared = partition and kind != "group*class"
    with np.errstate(invalid="ignore", divide="ignore"):
        shift, other = (gained - lost) / n, (rest[4] - rest[3]) / rest[0]
        discordance = (gained + lost) / n
        rates = baseline_n / n, compressed_n / n
    p_value = mcnemar(lost, gained, exact=c.options.exact)
    baseline, compressed = (
        Estimate.closed(rate, partial(wilson, right, n, modified=True))
        for rate, right in zip(rates, (baseline_n, compressed_n), strict=True)
    )
    none = limits_where(np.zeros(len(n), dtype=bool), None)
    return Family(
        metric,
        join_slots(slots, kind),
        n,
        compressed,
        baseline,
        Estimate.closed(
            shift,
            partial(tango, n, lost, gained),
            np.where(n > 0, p_value, np.nan),
        ),
        Estimate.closed(shift - other, partial(excess_interval, *sides), excess_test(*sides))
        if compared
        else Estimate.closed(nothing, none, nothing),
        n_clusters=nothing,
        interval="tango",
        members=np.stack(rates),
        sums=Sums(
            zero_p=2 * ndtr(-np.abs(tango_test(n, lost, gained, 0.0))),
            discordance=discordance,
            design_effect=np.ones(len(n)),
        ),
    )
