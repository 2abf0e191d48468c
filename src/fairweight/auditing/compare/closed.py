"""Rates of one pair of models on independent, unweighted examples: Wilson, Tango, mid-p McNemar."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.estimate import Limits, RateEstimate
from fairweight.auditing.compare.slots import Slots, groupings_of, join_slots, slots_of
from fairweight.auditing.counts.pairs import Pairs
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.metrics.registry import Event

Five = tuple[Floats, Floats, Floats, Floats, Floats]  # n, baseline, compressed, only_b, only_c


def closed_rates(c: Comparison, event: Event, kind: str) -> RateEstimate | None:
    """The event's rates in all rows of a kind; None where the event has no such rows."""
    slots: list[Slots] = []
    inside: list[Five] = []
    outside: list[Five] = []
    for grouping in groupings_of(c, kind):
        p = c.pairs[grouping.name]
        if kind in ("class", "group*class"):
            table = _by_class(p, event)
            partition = event.given == "label" or event.happens in ("correct", "wrong")
        else:
            found = _by_slice(p, event, c.positive)
            if found is None:
                return None
            table, partition = found, True
        names = slots_of(c, grouping, kind)
        flat = tuple(np.asarray(part, dtype=float).reshape(-1) for part in table)
        keep = flat[0] > 0 if kind == "group*class" else np.ones(len(flat[0]), bool)
        slots.append(Slots(names.by, kind, names.group[keep], names.cls[keep]))
        inside.append(tuple(part[keep] for part in flat))  # type: ignore[arg-type]
        rest = tuple(
            (part.sum() - part)[keep]
            if partition and kind in ("class", "group", "intersection")
            else np.full(int(keep.sum()), np.nan)
            for part in flat
        )
        outside.append(rest)  # type: ignore[arg-type]
    if not slots:
        return None
    return _estimate(
        join_slots(slots, kind),
        tuple(np.concatenate(parts) for parts in zip(*inside, strict=True)),  # type: ignore[arg-type]
        tuple(np.concatenate(parts) for parts in zip(*outside, strict=True)),  # type: ignore[arg-type]
        exact=c.options.exact,
    )


def closed_flags(c: Comparison, flags: NDArray[np.bool_], kind: str) -> RateEstimate | None:
    """Rates of a flag per cell and member (such as: the prediction is uncertain)."""
    chosen = groupings_of(c, kind)
    if not chosen:
        return None
    first, second = flags[:, 0], flags[:, 1]
    inside: list[Five] = []
    outside: list[Five] = []
    for grouping in chosen:
        events = (np.ones(len(first), bool), first, second, first & ~second, second & ~first)
        table = tuple(
            np.bincount(
                grouping.code, weights=c.cube.count * event, minlength=len(grouping.levels)
            )
            for event in events
        )
        inside.append(table)  # type: ignore[arg-type]
        outside.append(tuple(part.sum() - part for part in table))  # type: ignore[arg-type]
    return _estimate(
        join_slots([slots_of(c, g, kind) for g in chosen], kind),
        tuple(np.concatenate(parts) for parts in zip(*inside, strict=True)),  # type: ignore[arg-type]
        tuple(np.concatenate(parts) for parts in zip(*outside, strict=True)),  # type: ignore[arg-type]
        exact=c.options.exact,
    )


def _by_class(p: Pairs, event: Event) -> Five:
    """n, baseline, compressed, baseline alone, compressed alone: each (S, C)."""
    if event.happens == "correct":
        return p.label, *p.correct, p.lost, p.gained
    if event.happens == "wrong":
        return p.label, p.label - p.correct[0], p.label - p.correct[1], p.gained, p.lost
    if event.given == "not_label":
        others = p.n[:, None] - p.label
        false = (p.predicted[0] - p.correct[0], p.predicted[1] - p.correct[1])
        return others, *false, p.fp_lost, p.fp_gained
    everyone = np.broadcast_to(p.n[:, None], p.label.shape)
    return everyone, *p.predicted, p.lost + p.fp_lost, p.gained + p.fp_gained


def _by_slice(p: Pairs, event: Event, positive: int | None) -> Five | None:
    """The same per slice: of everyone, or of the positive class; None where it needs one."""
    if event.happens == "abstained":
        return p.n, *p.abstained, p.abstained_lost, p.abstained_gained
    table = _by_class(p, event)
    if event.given == "all" and event.happens in ("correct", "wrong"):
        return tuple(part.sum(axis=-1) for part in table)  # type: ignore[return-value]
    if positive is None:
        return None
    return tuple(part[:, positive] for part in table)  # type: ignore[return-value]


def _estimate(slots: Slots, inside: Five, outside: Five, *, exact: bool) -> RateEstimate:
    from fairweight.auditing.intervals.excess import excess_interval, excess_test
    from fairweight.auditing.intervals.mcnemar import mcnemar
    from fairweight.auditing.intervals.tango import tango
    from fairweight.auditing.intervals.wilson import wilson

    n, base, compressed, only_b, only_c = inside
    rest_n, _, _, rest_b, rest_c = outside
    nothing = np.full(len(n), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = (only_c - only_b) / n
        excess = shift - (rest_c - rest_b) / rest_n
        discordance = (only_c + only_b) / n
    defined = np.isfinite(excess)
    excess_p = nothing.copy()
    if defined.any():
        parts = (n, only_b, only_c, rest_n, rest_b, rest_c)
        excess_p[defined] = excess_test(*(part[defined] for part in parts))

    def excess_limits(alpha: float) -> Limits:
        low, high = nothing.copy(), nothing.copy()
        if defined.any():
            parts = (n, only_b, only_c, rest_n, rest_b, rest_c)
            low[defined], high[defined] = excess_interval(
                *(part[defined] for part in parts), alpha=alpha
            )
        return low, high

    with np.errstate(invalid="ignore", divide="ignore"):
        rates = base / n, compressed / n
    p_value = np.where(n > 0, mcnemar(only_b, only_c, exact=exact), np.nan)
    return RateEstimate(
        slots=slots,
        n=n,
        n_clusters=nothing,
        baseline=rates[0],
        compressed=rates[1],
        shift=shift,
        p_value=p_value,
        excess=excess,
        excess_p=excess_p,
        discordance=discordance,
        design_effect=np.ones(len(n)),
        baseline_limits=lambda alpha: wilson(base, n, alpha),
        compressed_limits=lambda alpha: wilson(compressed, n, alpha),
        limits=lambda alpha: tango(n, only_b, only_c, alpha),
        excess_limits=excess_limits,
        interval="tango",
    )
