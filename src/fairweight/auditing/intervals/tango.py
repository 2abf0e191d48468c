"""Tango's score interval and score test of the shift of a proportion in paired data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from fairweight.auditing.counts.stats import Floats

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
    size, base, compressed, z = np.broadcast_arrays(
        *(np.asarray(x, dtype=np.float64) for x in (n, base_only, compressed_only, quantile))
    )
    # Exchanging the models mirrors the problem, so both limits are upper limits, found together.
    upper = _upper(
        np.stack([size, size]),
        np.stack([compressed, base]),
        np.stack([base, compressed]),
        np.stack([z, z]),
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
    mirrored = shift < 0
    z = _score(
        size,
        np.where(mirrored, compressed, base),
        np.where(mirrored, base, compressed),
        np.abs(shift),
    )
    return np.where(mirrored, -z, z)


def _score(n: Floats, base: Floats, compressed: Floats, delta: Floats) -> Floats:
    """The score statistic for delta >= 0.

    There every term of the discriminant and of the variance is positive: nothing cancels.
    """
    # q = probability of a base-only pair under the hypothesis, root of 2n q² + B q + C = 0.
    linear = (2 * n - compressed + base) * delta - (base + compressed)
    constant = base * delta * (1 - delta)  # −C
    root = np.sqrt(linear**2 + 8 * n * constant)
    with np.errstate(invalid="ignore", divide="ignore"):
        q = np.where(linear > 0, 2 * constant / (linear + root), (root - linear) / (4 * n))
        distance = compressed - base - n * delta
        z: Floats = distance / np.sqrt(n * (2 * q + delta * (1 - delta)))
        return np.where(distance == 0, 0.0 * n, z)


def _upper(n: Floats, base: Floats, compressed: Floats, z: Floats) -> Floats:
    """The shift at which the statistic is −z."""
    size = np.where(n > 0, n, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = (compressed - base) / size
    return falling_root(
        lambda delta: tango_test(size, base, compressed, delta) + z,
        (shift, z),
        (np.ones_like(size), np.full_like(size, -np.inf)),
        _PRECISION,
        undefined=np.isnan(size + base + compressed + z),
    )


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
            last, at_last = np.where(replaces, (point, at_point), (other, at_other))
            other, at_other = np.where(replaces, (other, at_other), (point, at_point))
            point, at_point = new, at_new
            width = np.abs(other - point)
            # A root is taken where its own bracket closes: other rows do not move its last digits.
            closes = is_open & (width <= precision)
            found = np.where(closes, (point + other) / 2, found)
            is_open &= width > precision
            if not is_open.any():
                break
            step = _next_step(point, other, last, at_point, at_other, at_last)
            # At least half the precision from either end, so that the bracket closes from both.
            least = np.minimum(precision / (4 * width), 0.5)
            step = np.clip(step, least, 1 - least)
    return np.where(undefined, np.nan, found)


def _next_step(a: Floats, b: Floats, c: Floats, at_a: Floats, at_b: Floats, at_c: Floats) -> Floats:
    """Where the inverse parabola through three points is 0, as a share of the way from a to b."""
    where, value = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
    monotone = (value**2 < where) & ((1 - value) ** 2 < 1 - where)
    root = at_a / (at_b - at_a) * at_c / (at_b - at_c)
    root += (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
    return np.where(monotone & np.isfinite(root), root, 0.5)
