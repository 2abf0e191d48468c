"""Rates of one pair of models on independent, unweighted examples: Wilson, Tango, mid-p McNemar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

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


@dataclass(frozen=True)
class Paired:
    """A yes-or-no event of two models on the same examples: for each, and for one alone."""

    n: Floats
    baseline: Floats
    compressed: Floats
    baseline_only: Floats
    compressed_only: Floats

    def each(self, change: Callable[[Floats], Floats]) -> Paired:
        """The same change made to all five counts."""
        return Paired(*(np.asarray(change(part), dtype=float) for part in self.parts))

    @property
    def parts(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        return (
            self.n,
            self.baseline,
            self.compressed,
            self.baseline_only,
            self.compressed_only,
        )


def closed_rates(c: Comparison, metric: Metric, kind: str) -> Family | None:
    """Rates of the metric's event in all rows of a kind; None where it has no such rows."""
    event = metric.event
    assert event is not None
    slots: list[Slots] = []
    inside: list[Paired] = []
    for grouping in groupings_of(c, kind):
        p = c.pairs[grouping.name]
        table = _by_class(p, event) if _crossed(kind) else _by_slice(p, event, c.positive)
        if table is None:
            return None
        flat = table.each(lambda part: part.reshape(-1))
        names = slots_of(c, grouping, kind)
        keep = flat.n > 0 if kind == "group*class" else np.ones(len(flat.n), bool)
        slots.append(kept_slots(names, keep))
        inside.append(flat.each(lambda part, keep=keep: part[keep]))  # type: ignore[misc]
    # Rows share out the examples unless every class's row counts the examples of all the others.
    shared = not _crossed(kind) or event.happens in ("correct", "wrong")
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
        inside.append(Paired(*(sums(grouping.code, c.cube.count * e, size) for e in events)))
        slots.append(slots_of(c, grouping, kind))
    return _family(c, metric, slots, inside, kind, partition=kind != "overall")


def _crossed(kind: str) -> bool:
    return kind in ("class", "group*class")


def _by_class(p: Pairs, event: Event) -> Paired:
    """The event for every slice and class, (S, C)."""
    if event.happens == "correct":
        return Paired(p.label, *p.correct, p.lost, p.gained)
    if event.happens == "wrong":
        wrong = (p.label - p.correct[0], p.label - p.correct[1])
        return Paired(p.label, *wrong, p.gained, p.lost)
    if event.given == "not_label":
        false = (p.predicted[0] - p.correct[0], p.predicted[1] - p.correct[1])
        return Paired(p.n[:, None] - p.label, *false, p.fp_lost, p.fp_gained)
    everyone = np.broadcast_to(p.n[:, None], p.label.shape)
    return Paired(everyone, *p.predicted, p.lost + p.fp_lost, p.gained + p.fp_gained)


def _by_slice(p: Pairs, event: Event, positive: int | None) -> Paired | None:
    """The event per slice: of everyone, or of the positive class; None where it needs one."""
    if event.happens == "abstained":
        return Paired(p.n, *p.abstained, p.abstained_lost, p.abstained_gained)
    table = _by_class(p, event)
    if event.given == "all" and event.happens in ("correct", "wrong"):
        return table.each(lambda part: part.sum(axis=-1))
    if positive is None:
        return None
    return table.each(lambda part: part[:, positive])


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
    t = _concatenate(inside)
    nothing = np.full(len(t.n), np.nan)
    compared = partition and kind != "group*class"
    rest = _concatenate([part.each(lambda x: x.sum() - x) for part in inside])
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = (t.compressed_only - t.baseline_only) / t.n
        other = (rest.compressed_only - rest.baseline_only) / rest.n
        discordance = (t.compressed_only + t.baseline_only) / t.n
        rates = t.baseline / t.n, t.compressed / t.n
    sides = (
        *(t.n, t.baseline_only, t.compressed_only),
        *(rest.n, rest.baseline_only, rest.compressed_only),
    )
    p_value = mcnemar(t.baseline_only, t.compressed_only, exact=c.options.exact)
    baseline, compressed = (
        Estimate.closed(rate, partial(wilson, right, t.n, modified=True))
        for rate, right in zip(rates, (t.baseline, t.compressed), strict=True)
    )
    none = limits_where(np.zeros(len(t.n), dtype=bool), None)
    return Family(
        metric,
        join_slots(slots, kind),
        t.n,
        compressed,
        baseline,
        Estimate.closed(
            shift,
            lambda alpha: tango(t.n, t.baseline_only, t.compressed_only, alpha),
            np.where(t.n > 0, p_value, np.nan),
        ),
        Estimate.closed(
            shift - other, lambda alpha: excess_interval(*sides, alpha), excess_test(*sides)
        )
        if compared
        else Estimate.closed(nothing, none, nothing),
        n_clusters=nothing,
        interval="tango",
        members=np.stack(rates),
        sums=Sums(
            zero_p=2 * ndtr(-np.abs(tango_test(t.n, t.baseline_only, t.compressed_only, 0.0))),
            discordance=discordance,
            design_effect=np.ones(len(t.n)),
        ),
    )


def _concatenate(tables: Sequence[Paired]) -> Paired:
    columns = zip(*(table.parts for table in tables), strict=True)
    return Paired(*(np.concatenate(parts) for parts in columns))
