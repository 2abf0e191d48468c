"""Rates of one pair of models on independent, unweighted examples: Wilson, Tango, mid-p McNemar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from fairweight.auditing.compare.estimate import Estimate, Family, Formula, Sums, limits_where
from fairweight.auditing.counts.counts import sums
from fairweight.auditing.intervals.excess import excess_interval, excess_test
from fairweight.auditing.intervals.proportion import (
    MODIFIED_WILSON,
    mcnemar,
    tango,
    tango_test,
)
from fairweight.auditing.metrics.registry import Event, Metric
from fairweight.base.types import Floats

# A yes-or-no event of two models on the same examples, (5, …): examples, on how many of them it
# happened in the baseline and in the compressed model, and in one of the two alone.
Paired: TypeAlias = Floats


@dataclass(frozen=True)
class _Table:
    """The counts of one family, grouping by grouping."""

    metric: Metric
    kind: str
    slots: Sequence[Slots]
    inside: Sequence[Paired]
    partition: bool  # the rows share out the examples


def closed_rates(c: Comparison, wanted: Sequence[tuple[Metric, str]]) -> list[Family | None]:
    """Rates of each metric's event in all rows of a kind; None where it has no such rows."""
    tables = [_rate_table(c, metric, kind) for metric, kind in wanted]
    made = iter(_families(c, [table for table in tables if table is not None]))
    return [None if table is None else next(made) for table in tables]


def _rate_table(c: Comparison, metric: Metric, kind: str) -> _Table | None:
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
    partition = shared and kind != "overall"
    return _Table(metric, kind, slots, inside, partition) if slots else None


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
    if not slots:
        return None
    return _families(c, [_Table(metric, kind, slots, inside, kind != "overall")])[0]


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


def _families(c: Comparison, tables: Sequence[_Table]) -> list[Family]:
    """The families of some tables; what is tested is tested for all of them together."""
    if not tables:
        return []
    sizes = [sum(part.shape[1] for part in table.inside) for table in tables]
    places = [slice(stop - size, stop) for size, stop in zip(sizes, np.cumsum(sizes), strict=True)]
    parts = [part for table in tables for part in table.inside]
    n, baseline_n, compressed_n, lost, gained = np.concatenate(parts, axis=1)
    rest = np.concatenate([part.sum(axis=1, keepdims=True) - part for part in parts], axis=1)
    sides = n, lost, gained, rest[0], rest[3], rest[4]
    with np.errstate(invalid="ignore", divide="ignore"):
        shift, other = (gained - lost) / n, (rest[4] - rest[3]) / rest[0]
        discordance = (gained + lost) / n
        rates = np.stack([baseline_n / n, compressed_n / n])
    p_value = np.where(n > 0, mcnemar(lost, gained, exact=c.options.exact), np.nan)
    zero_p = 2 * ndtr(-np.abs(tango_test(n, lost, gained, 0.0)))
    compared = [table.partition and table.kind != "group*class" for table in tables]
    beside = np.repeat(compared, sizes)
    excess_p = np.full(len(n), np.nan)
    excess_p[beside] = excess_test(*(side[beside] for side in sides))
    made = []
    for table, here, has_excess in zip(tables, places, compared, strict=True):
        number = n[here]
        nothing = np.full(len(number), np.nan)
        none = limits_where(np.zeros(len(number), dtype=bool), None)
        baseline, compressed = (
            Estimate.closed(rate[here], Formula(MODIFIED_WILSON, (right[here], number)))
            for rate, right in zip(rates, (baseline_n, compressed_n), strict=True)
        )
        made.append(
            Family(
                table.metric,
                join_slots(table.slots, table.kind),
                number,
                compressed,
                baseline,
                Estimate.closed(
                    shift[here], Formula(tango, (number, lost[here], gained[here])), p_value[here]
                ),
                Estimate.closed(
                    (shift - other)[here],
                    Formula(excess_interval, tuple(side[here] for side in sides)),
                    excess_p[here],
                )
                if has_excess
                else Estimate.closed(nothing, none, nothing),
                n_clusters=nothing,
                interval="tango",
                members=rates[:, here],
                sums=Sums(
                    zero_p=zero_p[here],
                    discordance=discordance[here],
                    design_effect=np.ones(len(number)),
                ),
            )
        )
    return made
