"""How much a slice had to pay in excess to be found."""

from __future__ import annotations

import numpy as np

from fairweight.auditing.explain.slices.contrasts import Contrast
from fairweight.auditing.explain.slices.testing import p_values
from fairweight.auditing.explain.slices.totals import Half, Totals

_POWER = 0.8
_GRID = np.arange(1, 2001) / 2000  # half a tenth of a point


def detectable_excess(n: float, half: Half, n_tests: int, alpha: float) -> float:
    """Least excess (positive) with which a slice is found with a power of 80 %.

    Parameters
    ----------
    n
        Examples of the slice in the discovery half.
    half
        The discovery half.
    n_tests, alpha
        Something that stands out alone is found at alpha / n_tests.

    Notes
    -----
    Of the design alone: what was seen in the slice plays no part. An excess δ is that share of
    further answers lost by all members. The excess at which the conditional test just rejects is
    found by halving; that δ exceeds it with a chance of 80 % is a normal approximation, and so is
    all of it where the linearised test decides (clusters are then taken for independent examples).
    NaN where not even losing every answer would be found.
    """
    from scipy.special import ndtri

    everyone = half.table(np.zeros(half.n, dtype=np.intp), (1, 1)).at(([0], [0]))
    shift, moved = everyone.shift, everyone.moved / everyone.size
    usual = moved - shift**2
    inside = np.maximum(np.minimum(moved + _GRID, 1.0) - (shift - _GRID) ** 2, 0.0)
    error = np.sqrt(inside / n + usual / max(half.n - n, 1.0))
    level = alpha / n_tests
    needed = _least_rejected(round(n), everyone, level) if half.exact else -ndtri(level / 2) * error
    reached = needed + ndtri(_POWER) * error <= _GRID
    return float(_GRID[np.argmax(reached)]) if reached.any() else float("nan")


def _least_rejected(n: int, everyone: Totals, level: float) -> float:
    """The observed excess at which the conditional p of a slice comes down to the level."""
    size, lost, gained = (
        round(float(part[0])) for part in (everyone.size, everyone.lost, everyone.gained)
    )
    usual_lost, usual_gained = round(n * lost / size), round(n * gained / size)

    def rejects(further: int) -> bool:
        inside = _totals(n, usual_lost + further, usual_gained)
        rest = _totals(size - n, lost - usual_lost, gained - usual_gained)
        return bool(p_values(Contrast(inside, rest))[0] <= level)

    low, high = 0, n - usual_lost - usual_gained
    if high < 1 or not rejects(high):
        return float("inf")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rejects(middle) else (middle, high)
    return high / n


def _totals(n: int, lost: int, gained: int) -> Totals:
    one = np.ones(1)
    return Totals(n * one, n * one, (gained - lost) * one, (gained + lost) * one)
