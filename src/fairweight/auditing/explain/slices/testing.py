"""Is the shift of a slice that of the others? Thousands of slices at once."""

from __future__ import annotations

import numpy as np

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.explain.slices.contrasts import Contrast
from fairweight.auditing.explain.slices.totals import Totals

# Below this distance in standard deviations p is never under 0.05 (a test walks through small and
# skewed tables), so that Benjamini–Hochberg needs no exact value.
SCREEN = 1.5


def pooled_error(inside: Totals, rest: Totals) -> Floats:
    """Standard error of the excess if slice and rest were drawn from one pot of examples."""
    size, change = inside.size + rest.size, inside.change + rest.change
    effective = size**2 / (inside.squared_size + rest.squared_size)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.maximum((inside.moved + rest.moved) / size - (change / size) ** 2, 0.0)
        spread = spread * effective / (effective - 1)
        portions = inside.squared_size / inside.size**2 + rest.squared_size / rest.size**2
        error: Floats = np.sqrt(spread * portions)
    return error


def own_error(inside: Totals, rest: Totals) -> Floats:
    """Standard error of the excess of a single pair where both sides keep their own churn."""
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = sum(
            np.maximum(side.moved / side.size - side.shift**2, 0.0) / side.size
            for side in (inside, rest)
        )
        error: Floats = np.sqrt(squares)
    return error


def distance(c: Contrast) -> Floats:
    """The excess in standard errors, signed; 0 where nothing changed, NaN without a rest.

    With several members or clusters the larger of two errors counts: that of the slice's own
    examples, which is too small where by chance nothing changed in it, and the pooled one. Of a
    single pair the smaller one: it only says for which slices p is worth the time.
    """
    error = pooled_error(c.inside, c.rest)
    if c.error is not None:
        error = np.maximum(error, c.error)
    else:
        error = np.minimum(error, own_error(c.inside, c.rest))
    excess = c.excess
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((excess == 0) & ~np.isnan(error), 0.0, excess / error)


def p_values(c: Contrast) -> Floats:
    """Two-sided p of every contrast: MOVER for single pairs, else linearised t."""
    if c.error is None or c.degrees is None:
        from fairweight.auditing.intervals.excess import excess_test

        return excess_test(
            c.inside.size, c.inside.lost, c.inside.gained,
            c.rest.size, c.rest.lost, c.rest.gained,
        )  # fmt: skip
    from scipy.special import stdtr

    p: Floats = 2 * stdtr(c.degrees, -np.abs(distance(c)))
    return p


def screened_p_values(c: Contrast, worth: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Floats:
    """`p_values` where it is worth the time, the normal approximation elsewhere."""
    from scipy.special import ndtr

    p: Floats = 2 * ndtr(-np.abs(distance(c)))
    if worth.any():
        p[worth] = p_values(c.at(worth))
    return p
