"""Where a metric is asked for, everywhere, in a group, a class or a column, and how it is computed.

The values are those of the audit: its own estimands are asked, of all variants at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fairweight.auditing.choose.objectives import Term
from fairweight.auditing.compare.comparison import Comparison, Slots, TrainingCounts, slots_of
from fairweight.auditing.compare.estimands import (
    Estimand,
    estimands,
    grouping_slots,
    sizes,
    too_few_levels,
)
from fairweight.auditing.compare.members import Both, Evaluate, PerMember
from fairweight.auditing.counts.counts import Counts
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.metrics.harm import WORST_GROUP_SHIFT, worst_group_shift
from fairweight.auditing.metrics.rates import summary_of
from fairweight.auditing.metrics.registry import Metric, metric
from fairweight.auditing.schema import Status
from fairweight.base.types import Floats
from fairweight.errors import UnknownNameError

CLASS = "class="


@dataclass(frozen=True)
class TermRow:
    """One row of one estimand: a metric in one group, class or column."""

    evaluate: Evaluate
    row: int
    rates_first: bool


@dataclass(frozen=True)
class Measure:
    """A term in one task; of several rows (columns of groups) the worst counts."""

    parts: tuple[TermRow, ...]
    better: str
    reason: str | None = None  # why there is no value


def measures(
    c: Comparison, training: TrainingCounts | None, terms: Sequence[Term]
) -> list[Measure]:
    """How each term is computed in one task."""
    wanted = [metric(name) for name in sorted({t.metric for t in terms if t.metric is not None})]
    found: list[Estimand] = []
    for entry in wanted:
        if entry.kind == "rate":
            found += _rates(c, entry)
        elif entry.name == WORST_GROUP_SHIFT:
            found += [_worst_shift(c, grouping) for grouping in c.groupings]
    others = {entry.name for entry in wanted if entry.kind != "rate"} - {WORST_GROUP_SHIFT}
    found += [e for e in estimands(c, training, only=others) if e.metric.name in others]
    return [_measure(found, term) for term in terms]


def _rates(c: Comparison, entry: Metric) -> Iterator[Estimand]:
    for grouping in (c.whole, *c.groupings):
        kind = "overall" if grouping is c.whole else "group"

        def evaluate(both: Both, name: str = grouping.name) -> PerMember:
            counts = both[name][1]
            return PerMember(None, summary_of(entry, entry.function(counts), counts))

        yield Estimand(entry, slots_of(c, grouping, kind), sizes(c, grouping), evaluate)
    within = entry if entry.per_class else metric(entry.in_class) if entry.in_class else None
    if within is not None:

        def by_class(both: Both) -> PerMember:
            return PerMember(None, within.function(both[""][1])[..., 0, :])

        yield Estimand(entry, slots_of(c, c.whole, "class"), sizes(c, c.whole), by_class)


def _worst_shift(c: Comparison, grouping: Grouping) -> Estimand:
    usable, slots = c.usable(grouping), grouping_slots(c, grouping)
    n = np.array([sizes(c, grouping).sum()])
    reason = None if usable.any() else too_few_levels(c, grouping)
    if reason is not None:
        return Estimand(metric(WORST_GROUP_SHIFT), slots, n, None, np.array([reason], dtype=object))

    def evaluate(both: Both) -> PerMember:
        one, other = both.levels(grouping.name, usable)
        return PerMember(None, worst_group_shift(one, other)[..., None])

    return Estimand(metric(WORST_GROUP_SHIFT), slots, n, evaluate)


def _measure(found: Sequence[Estimand], term: Term) -> Measure:
    assert term.metric is not None
    entry = metric(term.metric)
    own = [estimand for estimand in found if estimand.metric is entry]
    everywhere = [(q, row) for q in own for row in range(len(q.slots))]
    if term.place:
        rows = [(q, row) for q, row in everywhere if _place(q.slots, row) == term.place]
    else:
        rows = [(q, row) for q, row in everywhere if q.slots.by in ("overall", "grouping")]
    if not rows and term.place:
        known = [_place(q.slots, row) for q, row in everywhere]
        raise UnknownNameError(
            f"The place of '{entry.name}@{term.place}',", term.place, [k for k in known if k]
        )
    if not rows:
        told = "it has no value for everyone; name a group, a class or a column behind an @"
        if "grouping" in entry.by:
            told = "there are no groups; name group columns (--groups)"
        return Measure((), entry.better, told)
    parts = tuple(
        TermRow(q.evaluate, row, q.rates_first) for q, row in rows if q.evaluate is not None
    )
    statuses = [Status.of(q.status[row]) for q, row in rows if q.status is not None]
    reason = next((status.reason for status in statuses if not status.ok), "")
    return Measure(parts, entry.better, None if parts else reason or "it has no value here")


def _place(slots: Slots, row: int) -> str:
    if slots.by == "class":
        return f"{CLASS}{slots.cls[row]}"
    return "" if slots.by == "overall" or slots.cls[row] is not None else str(slots.group[row])


def worst(values: Floats, better: str) -> Floats:
    """The worst along the last axis; undefined where one of them is."""
    if values.shape[-1] == 1:
        return values[..., 0]
    bad = {"higher": -values, "zero": np.abs(values), "one": np.abs(values - 1)}
    at = bad.get(better, values).argmax(axis=-1)
    found: Floats = np.take_along_axis(values, at[..., None], axis=-1)[..., 0]
    return np.where(np.isnan(values).any(axis=-1), np.nan, found)


def by_variant(counts: Counts, share: Floats) -> Counts:
    """Members' counts (R, M, S, C) as mean counts of variants, weighed by `share` (V, M)."""
    predicted, correct, abstained = (
        np.einsum("vm,rm...->rv...", share, values)
        for values in (counts.predicted, counts.correct, counts.abstained)
    )
    return Counts(
        label=np.broadcast_to(counts.label[:, :1], correct.shape),
        predicted=predicted,
        correct=correct,
        abstained=abstained,
        classes=counts.classes,
        positive=counts.positive,
    )
