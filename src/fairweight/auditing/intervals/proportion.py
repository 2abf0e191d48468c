"""Wilson's score interval of a proportion."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, gammaincinv, ndtri

from fairweight.base.types import Floats

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


MODIFIED_WILSON = partial(wilson, modified=True)


# Tango's score interval and score test of the shift of a proportion in paired data.

_MOST_STEPS = 160  # about nine are taken; where these do not suffice there is no limit
_PRECISION = 1e-15


def tango(
    n: ArrayLike, base_only: ArrayLike, compressed_only: ArrayLike, alpha: ArrayLike = 0.05
) -> tuple[Floats, Floats]:
    """Limits of shift = (compressed_only − base_only) / n at confidence 1 − alpha.

    Parameters
    ----------
    n
        Pairs: examples that both models answered.
    base_only, compressed_only
        Pairs in which the event happened in the baseline only, and in the compressed model only.
    alpha
        One minus the confidence; an array gives every row its own.

    Notes
    -----
    Examples are sampled, both models are fixed. The limits are the shifts δ at which the score
    statistic of `tango_test` is ±z. It falls in δ, so a bracket that shrinks finds them for any n.
    Without a discordant pair they are ±z² / (n + z²). NaN where n = 0.

    Measured coverage: docs/interval-coverage.md.

    References
    ----------
    Tango, T. (1998), Statistics in Medicine 17, 891-908.

    Examples
    --------
    Identical predictions on 100 examples, z² = 3.84: 3.84 / 103.84 = 0.037.

    >>> low, high = tango(100, 0, 0)
    >>> float(low.round(3)), float(high.round(3))
    (-0.037, 0.037)
    """
    size, base, compressed, level = np.broadcast_arrays(
        np.asarray(n, dtype=np.float64),
        np.asarray(base_only, dtype=np.float64),
        np.asarray(compressed_only, dtype=np.float64),
        np.asarray(alpha, dtype=np.float64),
    )
    return tango_at(size, base, compressed, -ndtri(level / 2))


def tango_at(
    n: ArrayLike, base_only: ArrayLike, compressed_only: ArrayLike, quantile: ArrayLike
) -> tuple[Floats, Floats]:
    """Tango's limits where the statistic is ± a quantile, such as one of Student's t.

    Counts need not be whole: n may be how many independent examples a sample is worth.

    >>> low, high = tango_at(100, 0, 0, 2.0)  # 4 / 104
    >>> float(low.round(3)), float(high.round(3))
    (-0.038, 0.038)
    """
    number, first, second, level = np.broadcast_arrays(
        *(np.asarray(x, dtype=np.float64) for x in (n, base_only, compressed_only, quantile))
    )
    # Exchanging the models mirrors the problem, so both limits are upper limits (the shift at
    # which the statistic is −z), found together.
    size, z = np.stack([number, number]), np.stack([level, level])
    base, compressed = np.stack([second, first]), np.stack([first, second])
    size = np.where(size > 0, size, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = (compressed - base) / size
    upper = falling_root(
        lambda delta: tango_statistic(size, base, compressed, delta) + z,
        (shift, z),
        (np.ones_like(size), np.full_like(size, -np.inf)),
        _PRECISION,
        undefined=np.isnan(size + base + compressed + z),
    )
    return -upper[0], upper[1]


def tango_test(
    n: ArrayLike, base_only: ArrayLike, compressed_only: ArrayLike, delta: ArrayLike
) -> Floats:
    """Score statistic z of the hypothesis that the shift is delta; positive if it is larger.

    z = (observed shift − delta) / its standard error with the discordance estimated under the
    hypothesis. Where nothing can vary (no discordant pair at delta = 0, delta = ±1) it is 0 if
    the observed shift is delta and infinite else.

    Examples
    --------
    At delta = 0 it is McNemar's (c − b) / sqrt(b + c), here (2 − 7) / 3.

    >>> float(tango_test(50, 7, 2, 0.0).round(4))
    -1.6667
    """
    size, base, compressed, shift = np.broadcast_arrays(
        np.asarray(n, dtype=np.float64),
        np.asarray(base_only, dtype=np.float64),
        np.asarray(compressed_only, dtype=np.float64),
        np.asarray(delta, dtype=np.float64),
    )
    size = np.where(size > 0, size, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        return tango_statistic(size, base, compressed, shift)


def tango_statistic(n: Floats, base_only: Floats, compressed_only: Floats, delta: Floats) -> Floats:
    """`tango_test` of arrays of one shape, NaN where n is; for searches, which call it often.

    Division by 0 is the caller's to silence.
    """
    # A negative delta is mirrored: of others every term of the discriminant and of the variance is
    # positive, and nothing cancels.
    mirrored = delta < 0
    base = np.where(mirrored, compressed_only, base_only)
    compressed = np.where(mirrored, base_only, compressed_only)
    delta = np.abs(delta)
    # q = probability of a base-only pair under the hypothesis, root of 2n q² + B q + C = 0.
    linear = (2 * n - compressed + base) * delta - (base + compressed)
    free = delta * (1 - delta)
    constant = base * delta * (1 - delta)  # −C
    root = np.sqrt(linear**2 + 8 * n * constant)
    q = np.where(linear > 0, 2 * constant / (linear + root), (root - linear) / (4 * n))
    distance = compressed - base - n * delta
    z = np.where(distance == 0, 0.0 * n, distance / np.sqrt(n * (2 * q + free)))
    return np.where(mirrored, -z, z)


def falling_root(
    function: Callable[[Floats], Floats],
    start: tuple[Floats, Floats],
    end: tuple[Floats, Floats],
    precision: float,
    *,
    undefined: NDArray[np.bool_],
) -> Floats:
    """Where a falling function is 0, for many rows at once, by Chandrupatla's method.

    Parameters
    ----------
    function
        Of an array of points, one for each row.
    start, end
        A point and the function there: not negative at the start, not positive at the end.
    precision
        How far the points around the root may lie apart.
    undefined
        Rows without a root; they are NaN.

    Notes
    -----
    The root stays between `point` and `other`. The next point is interpolated through the last
    three where they lie so that this is safe, and the middle elsewhere. About nine steps are taken.

    References
    ----------
    Chandrupatla, T. R. (1997), Advances in Engineering Software 28, 145-149.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        (point, at_point), (other, at_other) = start, end
        step: Floats = np.full_like(point, 0.5)
        found = np.full_like(point, np.nan)
        is_open = np.ones(point.shape, dtype=np.bool_)
        for _ in range(_MOST_STEPS):
            new = point + step * (other - point)
            at_new = function(new)
            replaces = (at_new > 0) == (at_point > 0)
            last, at_last = np.where(replaces, point, other), np.where(replaces, at_point, at_other)
            other = np.where(replaces, other, point)
            at_other = np.where(replaces, at_other, at_point)
            point, at_point = new, at_new
            width = np.abs(other - point)
            # A root is taken where its own bracket closes: other rows do not move its last digits.
            closes = is_open & (width <= precision)
            if closes.any():
                found[closes] = (point[closes] + other[closes]) / 2
            is_open &= width > precision
            if not is_open.any():
                break
            step = _next_step(point, other, last, at_point, at_other, at_last)
            # At least half the precision from either end, so that the bracket closes from both.
            least = np.minimum(precision / (4 * width), 0.5)
            step = np.minimum(np.maximum(step, least), 1 - least)
    return np.where(undefined, np.nan, found)


def _next_step(a: Floats, b: Floats, c: Floats, at_a: Floats, at_b: Floats, at_c: Floats) -> Floats:
    """Where the inverse parabola through three points is 0, as a share of the way from a to b."""
    where, value = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
    monotone = (value**2 < where) & ((1 - value) ** 2 < 1 - where)
    root = at_a / (at_b - at_a) * at_c / (at_b - at_c)
    root += (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
    return np.where(monotone & np.isfinite(root), root, 0.5)


# McNemar's test: did one of two models win more of the examples on which they disagree?


def mcnemar(base_only: ArrayLike, compressed_only: ArrayLike, *, exact: bool = False) -> Floats:
    """Two-sided p-value that both kinds of discordant pair are equally likely.

    With m discordant pairs and X ~ Binomial(m, 1/2), k the rarer kind: mid-p is
    2 P(X < k) + P(X = k); with `exact` it is 2 P(X <= k), at most 1. Identical predictions
    (m = 0) give 1. The mid-p keeps its level in all but contrived cases and is less wasteful.

    References
    ----------
    Fagerland, Lydersen & Laake (2013), BMC Medical Research Methodology 13:91.

    Examples
    --------
    Four losses, no gain: mid-p (1/2)⁴ = 0.0625, exact 2 (1/2)⁴ = 0.125.

    >>> mcnemar([4, 0, 3], [0, 0, 3]).tolist()
    [0.0625, 1.0, 1.0]
    >>> float(mcnemar(4, 0, exact=True))
    0.125
    """
    base = np.asarray(base_only, dtype=np.float64)
    compressed = np.asarray(compressed_only, dtype=np.float64)
    total = base + compressed
    rarer = np.minimum(base, compressed)
    below = _at_most(rarer - 1, total)
    up_to = _at_most(rarer, total)
    p = np.minimum(2 * up_to, 1.0) if exact else np.minimum(up_to + below, 1.0)
    return np.where(np.isnan(total), np.nan, np.where(total == 0, 1.0, p))


def _at_most(k: Floats, m: Floats) -> Floats:
    """P(X <= k) for X ~ Binomial(m, 1/2); 0 below 0 and 1 from m on."""
    inner = (k >= 0) & (k < m)
    tail = betainc(np.where(inner, m - k, 1.0), np.where(inner, k + 1, 1.0), 0.5)
    return np.where(inner, tail, np.where(k < 0, 0.0, 1.0))
