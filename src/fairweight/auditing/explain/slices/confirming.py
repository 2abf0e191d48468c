"""The excess of listed slices on examples that had no part in finding them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import MIN_CLUSTERS
from fairweight.auditing.explain.slices.contrasts import slice_contrast
from fairweight.auditing.explain.slices.testing import distance, p_values
from fairweight.auditing.explain.slices.totals import Half

_ALPHA = 0.05  # of the interval, and of the test that confirms


@dataclass(frozen=True)
class Confirmation:
    n: int
    excess: float
    low: float
    high: float
    p: float
    status: str


def confirmed(
    half: Half, inside: NDArray[np.bool_], *, discovered: float, clustered: bool
) -> Confirmation:
    """Effect, 95 % interval and p of one slice on the confirmation half.

    Parameters
    ----------
    half
        The confirmation half.
    inside
        Which of its examples belong to the slice.
    discovered
        The excess on the discovery half; confirmation needs its sign.

    Notes
    -----
    Examples (clusters) are sampled. Choosing the slice used other examples, so neither the effect
    nor the interval is flattered by the choice.
    """
    n = int(np.count_nonzero(inside))
    nothing = float("nan")
    if n in (0, inside.size):
        return Confirmation(n, nothing, nothing, nothing, nothing, "not_estimable: no examples")
    contrast = slice_contrast(half, inside)
    excess = float(contrast.excess[0])
    if contrast.error is None or contrast.degrees is None:
        from fairweight.auditing.intervals.excess import excess_interval

        p = p_values(contrast)
        one, other = contrast.inside, contrast.rest
        low, high = excess_interval(
            one.size, one.lost, one.gained, other.size, other.lost, other.gained, _ALPHA
        )
    else:
        from scipy.special import stdtrit

        units = int(contrast.degrees[0]) + 1
        least = MIN_CLUSTERS if clustered else 2
        if units < least:
            status = f"not_estimable: {units} {'clusters' if clustered else 'examples'}"
            return Confirmation(n, excess, nothing, nothing, nothing, status)
        p, z = p_values(contrast), distance(contrast)
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.where(z == 0, contrast.error, contrast.excess / z)
        reach = stdtrit(contrast.degrees, 1 - _ALPHA / 2) * error
        low, high = contrast.excess - reach, contrast.excess + reach
    held = p[0] <= _ALPHA and np.sign(excess) == np.sign(discovered)
    status = "confirmed" if held else "not confirmed"
    return Confirmation(n, excess, float(low[0]), float(high[0]), float(p[0]), status)
