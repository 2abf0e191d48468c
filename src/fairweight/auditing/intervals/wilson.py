"""Wilson's score interval of a proportion."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv, ndtri

from fairweight.auditing.counts.stats import Floats

# Up to this many successes (or failures) a Poisson limit replaces Wilson's in `modified`.
_FEW = 3


def wilson(
    successes: ArrayLike, n: ArrayLike, alpha: ArrayLike = 0.05, *, modified: bool = False
) -> tuple[Floats, Floats]:
    """Limits of the proportion successes / n at confidence 1 − alpha.

    Examples are sampled, the model is fixed. The limits are the two proportions p at which
    |successes − n p| = z sqrt(n p (1 − p)); both are NaN where n = 0. `successes` and `n` need
    not be whole numbers (an effective size may stand for n).

    Where fewer than about two successes (or failures) are expected, the limits cover less than 93 %
    at a nominal 95 %, because the limit for one success lies too high. `modified` widens it: for
    1 to 3 successes the lower limit is at most the Poisson limit χ²(2k; alpha) / 2n, and likewise
    for failures. Measured coverage of both: docs/interval-coverage.md.

    References
    ----------
    Wilson, E. B. (1927), JASA 22, 209-212. Brown, Cai & DasGupta (2001), Statistical Science 16,
    101-133 (section 4.1.1, the modified interval).

    Examples
    --------
    No success in 4 trials, z² = 3.84: the upper limit is z² / (n + z²) = 3.84 / 7.84 = 0.49.

    >>> low, high = wilson([0, 2], [4, 4])
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.0, 0.15], [0.49, 0.85])

    One success in 100: Wilson's lower limit 0.0018, the Poisson one −log(0.95) / 100 = 0.0005.

    >>> [float(wilson(1, 100, modified=m)[0].round(4)) for m in (False, True)]
    [0.0018, 0.0005]
    """
    k = np.asarray(successes, dtype=np.float64)
    size = np.asarray(n, dtype=np.float64)
    level = np.asarray(alpha, dtype=np.float64)
    z2 = ndtri(level / 2) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.where(size > 0, size, np.nan)
        centre = k + z2 / 2
        spread = np.sqrt(z2 * (k * (size - k) / size + z2 / 4))
        # At 0 and n successes the limit is the boundary itself, not a rounding error beside it.
        low = np.where(k <= 0, 0.0, np.clip((centre - spread) / (size + z2), 0.0, 1.0))
        high = np.where(k >= size, 1.0, np.clip((centre + spread) / (size + z2), 0.0, 1.0))
        if modified:
            low = np.minimum(low, _poisson_low(k, level) / size)
            high = np.maximum(high, 1 - _poisson_low(size - k, level) / size)
    undefined = np.isnan(k + size + z2)
    return np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)


def _poisson_low(k: Floats, alpha: Floats) -> Floats:
    """One-sided lower limit of a Poisson mean for 1 to 3 events; infinite, no limit, elsewhere."""
    few = (k > 0) & (k <= _FEW)
    return np.where(few, gammaincinv(np.where(few, k, 1.0), alpha), np.inf)
