"""Interval of a ratio of totals over sampled units: clusters, weighted rows, people."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, stdtrit

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.intervals.tango import tango
from fairweight.auditing.intervals.wilson import wilson

# Residual sums of squares below this share of their terms are rounding errors of a zero.
_ROUNDING = 1e-12


def linearised(
    a: ArrayLike,
    d: ArrayLike,
    aa: ArrayLike,
    ad: ArrayLike,
    dd: ArrayLike,
    units: ArrayLike,
    alpha: ArrayLike = 0.05,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> tuple[Floats, Floats, Floats]:
    """Limits and standard error of R = a / d, totals over independent units.

    Parameters
    ----------
    a, d
        Totals of numerator and denominator over the units.
    aa, ad, dd
        Σ a_u², Σ a_u d_u and Σ d_u² over the units.
    units
        Units with a part in the row: G.
    alpha
        One minus the confidence.
    bounds
        Range of the ratio; (0, 1) for a rate, (−1, 1) for a shift. Limits are cut at it.

    Returns
    -------
    low, high, standard_error

    Notes
    -----
    Units are sampled whole. V = G / (G − 1) · Σ (a_u − R d_u)² / d², t with G − 1 degrees of
    freedom. Where all units have the same ratio V is 0, which says nothing about the next unit:
    then the score interval of G examples is given (Wilson's for a rate, Tango's for a shift, with
    t in place of z), as if every unit were a single example: the widest honest reading. The
    standard error stays 0 there. NaN where d = 0 or G < 2.

    Under 20 units these limits are too narrow: callers report `not_estimable`.
    Measured coverage: docs/interval-coverage.md.

    Examples
    --------
    Three clusters of two examples with 0, 1 and 2 right answers: R = 3/6, residuals −1, 0, 1,
    V = 3/2 · 2/36 = 1/12, t(2) = 4.303, so ±1.24 cut at the bounds.

    >>> low, high, error = linearised(3, 6, 5, 6, 12, 3)
    >>> float(low), float(high), float(error.round(4))
    (0.0, 1.0, 0.2887)
    """
    a, d, aa, ad, dd, g, level = np.broadcast_arrays(
        *(np.asarray(x, dtype=np.float64) for x in (a, d, aa, ad, dd, units, alpha))
    )
    error = np.sqrt(linearised_variance(a, d, aa, ad, dd, g))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = a / np.where(d > 0, d, np.nan)
        t = -stdtrit(np.where(g >= 2, g - 1, np.nan), level / 2)
        low, high = ratio - t * error, ratio + t * error
    low, high = (np.array(np.clip(side, *bounds)) for side in (low, high))
    equal = error == 0
    if equal.any():
        low[equal], high[equal] = equal_units_limits(
            ratio[equal], g[equal], 2 * ndtr(-t[equal]), bounds
        )
    undefined = np.isnan(ratio + error + t)
    low, high, error = (np.where(undefined, np.nan, x) for x in (low, high, error))
    return low, high, error


def linearised_variance(
    a: Floats, d: Floats, aa: Floats, ad: Floats, dd: Floats, units: Floats
) -> Floats:
    """V = G / (G − 1) · Σ (a_u − R d_u)² / d² of R = a / d, from the sums of `linearised`.

    Exactly 0 where all units have the same ratio; NaN where d = 0 or G < 2.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        d = np.where(d > 0, d, np.nan)
        g = np.where(units >= 2, units, np.nan)
        ratio = a / d
        residual = aa - 2 * ratio * ad + ratio**2 * dd
        scale = aa + 2 * np.abs(ratio * ad) + ratio**2 * dd
        residual = np.where(residual <= _ROUNDING * scale, 0.0, residual)
        variance: Floats = g / (g - 1) * residual / d**2
    return variance


def equal_units_limits(
    ratio: Floats, units: Floats, alpha: Floats, bounds: tuple[float, float]
) -> tuple[Floats, Floats]:
    if bounds[0] >= 0:
        return wilson(np.clip(ratio, 0, 1) * units, units, alpha)
    shift = np.clip(ratio, -1, 1)
    return tango(units, np.maximum(-shift, 0) * units, np.maximum(shift, 0) * units, alpha)
