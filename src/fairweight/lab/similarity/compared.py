"""The outcome of comparing two representations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan

from torch import Tensor

DEFINED = "ok"
NOT_FINITE = "activations hold NaN or infinite numbers"


@dataclass(frozen=True)
class Compared:
    """How far apart two representations of the same samples are.

    Parameters
    ----------
    distance
        From 0 (alike up to what the measure ignores) to 1; NaN where undefined. Of several
        locations the mean over those where it is defined.
    samples
        Rows that were compared.
    features
        Columns of the two sides.
    directions
        Of SVCCA, how many directions of each side were compared (mean over locations).
    dropped
        Of the directions that the rule asked for, how many could not be told from rounding or do
        not vary (both sides, all locations).
    locations
        Of a convolutional map; 1 otherwise.
    status
        `ok`, or why it is undefined (at some locations).
    """

    distance: float
    samples: int
    features: tuple[int, int]
    directions: tuple[float, float] = (nan, nan)
    dropped: int = 0
    locations: int = 1
    status: str = DEFINED

    @property
    def similarity(self) -> float:
        return 1 - self.distance


def undefined(samples: int, features: tuple[int, int], locations: int, reason: str) -> Compared:
    """No distance, and why."""
    return Compared(nan, samples, features, locations=locations, status=reason)


def mean_and_status(distances: Tensor, reasons: Sequence[str | None]) -> tuple[float, str]:
    """The mean over locations that have no reason to be undefined, and what to say of the rest."""
    told = [reason for reason in reasons if reason is not None]
    values = [
        float(value)
        for value, reason in zip(distances.tolist(), reasons, strict=True)
        if reason is None
    ]
    mean = min(1.0, max(0.0, sum(values) / len(values))) if values else nan
    if not told:
        return mean, DEFINED
    if isnan(mean):
        return nan, told[0]
    return mean, f"{len(told)} of {len(reasons)} locations are left out: {told[0]}"
