"""A straight line over a few variants, with everything a reader needs to distrust it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairweight.auditing.counts.stats import Floats
from fairweight.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FEWEST = 4  # Fisher's z has n − 3 in its variance
_NAN = float("nan")
_EQUAL = 1e-12  # means of equal values over members differ by rounding


@dataclass(frozen=True)
class Regression:
    """Least squares of a bias metric on a distance; NaN with a reason in `status` if undefined.

    `residual_sd`, `mean_distance` and `spread` (the sum of squares of distances about their mean)
    are what `band` needs.
    """

    n: int
    slope: float = _NAN
    slope_low: float = _NAN
    slope_high: float = _NAN
    intercept: float = _NAN
    correlation: float = _NAN
    correlation_low: float = _NAN
    correlation_high: float = _NAN
    p_value: float = _NAN
    status: str = "ok"
    alpha: float = 0.05
    residual_sd: float = _NAN
    mean_distance: float = _NAN
    spread: float = _NAN


def regress(distance: ArrayLike, bias: ArrayLike, *, alpha: float = 0.05) -> Regression:
    """The line of `bias` on `distance`, one value of each per variant.

    Parameters
    ----------
    distance, bias
        Of the same variants in the same order; a variant that lacks either is left out.
    alpha
        One minus the confidence of the intervals.

    Notes
    -----
    The slope has a t interval with n − 2 degrees of freedom, Pearson's correlation Fisher's
    interval; the p-value is that of both (t test of slope = 0, two-sided). Variants are taken as
    independent draws, which they are not where they share dense models: the intervals may then
    be too narrow. Undefined with fewer than 4 variants, and where either side is constant.

    Examples
    --------
    >>> line = regress([1, 2, 3, 4], [2, 4, 5, 9])
    >>> round(line.slope, 6), round(line.intercept, 6), round(line.correlation, 4)
    (2.2, -0.5, 0.9648)
    >>> regress([1, 2, 3], [2, 4, 5]).status
    'not_estimable: 3 variants, 4 are needed'
    """
    from scipy.special import stdtr, stdtrit

    if not 0 < alpha < 1:
        raise InputError(f"alpha cannot be {alpha!r}; give a level between 0 and 1, such as 0.05.")
    x, y = _pairs(distance, bias)
    n = len(x)
    if n < FEWEST:
        counted = "1 variant" if n == 1 else f"{n} variants"
        return Regression(n, status=f"not_estimable: {counted}, {FEWEST} are needed", alpha=alpha)
    for values, words in ((x, "the distances"), (y, "the values")):
        if np.ptp(values) <= _EQUAL * np.abs(values).max():
            return Regression(n, status=f"not_estimable: {words} are all equal", alpha=alpha)
    away, up = x - x.mean(), y - y.mean()
    spread, height = float(away @ away), float(up @ up)
    slope = float(away @ up) / spread
    r = float(np.clip(away @ up / np.sqrt(spread * height), -1, 1))
    residual_sd = float(np.sqrt(((up - slope * away) ** 2).sum() / (n - 2)))
    error = residual_sd / np.sqrt(spread)
    reach = float(-stdtrit(n - 2, alpha / 2) * error)
    low, high = _fisher(r, n, alpha)
    return Regression(
        n=n,
        slope=slope,
        slope_low=slope - reach,
        slope_high=slope + reach,
        intercept=float(y.mean() - slope * x.mean()),
        correlation=r,
        correlation_low=low,
        correlation_high=high,
        p_value=float(2 * stdtr(n - 2, -abs(slope) / error)) if error > 0 else 0.0,
        alpha=alpha,
        residual_sd=residual_sd,
        mean_distance=float(x.mean()),
        spread=spread,
    )


def band(line: Regression, at: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """The line at these distances, and the limits of its mean there (not of a new variant).

    >>> line = regress([1, 2, 3, 4], [2, 4, 5, 9])
    >>> middle, low, high = band(line, [2.5])
    >>> round(float(middle[0]), 6), bool(low[0] < middle[0] < high[0])
    (5.0, True)
    """
    from scipy.special import stdtrit

    x = np.asarray(at, dtype=np.float64)
    middle = line.intercept + line.slope * x
    error = line.residual_sd * np.sqrt(1 / line.n + (x - line.mean_distance) ** 2 / line.spread)
    reach = -stdtrit(line.n - 2, line.alpha / 2) * error
    return middle, middle - reach, middle + reach


def _pairs(distance: ArrayLike, bias: ArrayLike) -> tuple[Floats, Floats]:
    sides = []
    for name, given in (("distance", distance), ("bias", bias)):
        try:
            values = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{name} must hold numbers, one per variant; got {given!r}.") from None
        if values.ndim != 1:
            raise InputError(
                f"{name} has the shape {values.shape}; give one number per variant, shape (n,)."
            )
        sides.append(values)
    x, y = sides
    if len(x) != len(y):
        raise InputError(
            f"distance has {len(x):,} values and bias {len(y):,}; give both for the same variants."
        )
    known = np.isfinite(x) & np.isfinite(y)
    return x[known], y[known]


def _fisher(r: float, n: int, alpha: float) -> tuple[float, float]:
    from scipy.special import ndtri

    if abs(r) >= 1:
        return r, r
    reach = -ndtri(alpha / 2) / np.sqrt(n - 3)
    return float(np.tanh(np.arctanh(r) - reach)), float(np.tanh(np.arctanh(r) + reach))
