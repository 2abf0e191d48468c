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
    """The mean over members (or tasks) of what all of them have, draw by draw."""
    first = curves[0]
    return Curve(
        np.mean([c.accuracy for c in curves], axis=0),
        {
            name: np.mean([c.amplification[name] for c in curves], axis=0)
            for name in first.amplification
            if all(name in c.amplification for c in curves)
        },
        {
            name: np.mean([c.shifts[name] for c in curves], axis=0)
            for name in first.shifts
            if all(c.shifts.get(name, first.shifts[name][:0]).shape == first.shifts[name].shape
                   for c in curves)
        },
    )  # fmt: skip


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
    for own in measured(curve):
        if own.metric == "worst_group_shift":
            shifts = curve.shifts[str(own.group)]
            low, high = simultaneous(shifts[0], shifts[1:], alpha, shifts.shape[-1])
            low, high = low.min(axis=-1), high.min(axis=-1)
        else:
            low, high = limits(own.values, alpha)
        yield Series(own.metric, own.group, own.values, low, high)


def limits(values: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Percentile limits of every step; NaN where the draws say too little."""
    low, high = percentile(values[1:], alpha)
    untold = share_undefined(values[1:]) > UNSTABLE
    return np.where(untold, np.nan, low), np.where(untold, np.nan, high)
