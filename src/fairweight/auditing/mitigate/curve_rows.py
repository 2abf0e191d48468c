"""Rows of a curve: value, change and interval at every step, for each metric and column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.intervals.bootstrap import percentile, share_undefined, simultaneous
from fairweight.auditing.mitigate.replacing import Curve

UNSTABLE = 0.05  # undefined draws beyond which a number is not told


@dataclass(frozen=True)
class Measured:
    """A metric at every step: of the data, and of draws, (1 + draws, steps)."""

    metric: str
    group: str | None  # the column
    values: Floats


@dataclass(frozen=True)
class Series(Measured):
    """The same with its limits at every step, (steps,)."""

    low: Floats
    high: Floats


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean over members (or tasks) draw by draw.

    Of bias amplification over those in which it can be estimated, see `n_having`: attributes that
    lean to neither side of a column have none.
    """
    first = curves[0]
    amplified = [curve.amplification for curve in curves]
    return Curve(
        np.mean([c.accuracy for c in curves], axis=0),
        {
            name: np.mean([held[name] for held in amplified if name in held], axis=0)
            for name in dict.fromkeys(name for held in amplified for name in held)
        },
        {
            name: np.mean([c.shifts[name] for c in curves], axis=0)
            for name in first.shifts
            if all(c.shifts.get(name, first.shifts[name][:0]).shape == first.shifts[name].shape
                   for c in curves)
        },
    )  # fmt: skip


def n_having(curves: Sequence[Curve], metric: str, group: str | None) -> int:
    """Over how many of these curves their mean of a metric is."""
    if metric != "bias_amplification":
        return len(curves)
    return sum(group in curve.amplification for curve in curves)


def measured(curve: Curve) -> Iterator[Measured]:
    """Accuracy, and bias amplification and worst-group shift by column."""
    yield Measured("accuracy", None, curve.accuracy)
    for name, values in curve.amplification.items():
        yield Measured("bias_amplification", name, values)
    for name, values in curve.shifts.items():
        if values.shape[-1]:
            yield Measured("worst_group_shift", name, values.min(axis=-1))


def series(curve: Curve, alpha: float) -> Iterator[Series]:
    """The same with limits; of the worst group, the least of all groups' simultaneous limits."""
    found = list(measured(curve))
    plain = [own.values for own in found if own.metric != "worst_group_shift"]
    ends = iter([*limits_of_each(plain, alpha), *_of_worst_groups(curve, alpha)])
    for own in found:
        yield Series(own.metric, own.group, own.values, *next(ends))


def limits_of_each(values: Sequence[Floats], alpha: float) -> list[tuple[Floats, Floats]]:
    """Limits of several metrics at every step, all sorted at once."""
    low, high = limits(np.stack(values, axis=1), alpha)
    return list(zip(low, high, strict=True))


def _of_worst_groups(curve: Curve, alpha: float) -> list[tuple[Floats, Floats]]:
    """Column by column, each group's limits being those of as many as the column has."""
    shifts = [values for values in curve.shifts.values() if values.shape[-1]]
    if not shifts:
        return []
    groups = np.array([values.shape[-1] for values in shifts])
    together = np.concatenate(shifts, axis=-1)
    low, high = simultaneous(together[0], together[1:], alpha, np.repeat(groups, groups))
    starts = np.cumsum(groups)[:-1]
    return [
        (lows.min(axis=-1), highs.min(axis=-1))
        for lows, highs in zip(
            np.split(low, starts, axis=-1), np.split(high, starts, axis=-1), strict=True
        )
    ]


def limits(values: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Percentile limits of every step; NaN where the draws say too little."""
    low, high = percentile(values[1:], alpha)
    untold = share_undefined(values[1:]) > UNSTABLE
    return np.where(untold, np.nan, low), np.where(untold, np.nan, high)
