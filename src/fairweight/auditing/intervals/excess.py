"""Who pays is the excess: the shift of a group minus the shift of all others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from fairweight.auditing.intervals.proportion import falling_root, tango_at, tango_statistic
from fairweight.base.types import Floats

_LARGEST_Z = 37.0  # beyond this p is no normal floating-point number
_LARGEST_QUANTILE = 1e6
_PRECISION = 1e-14  # of an angle
_ROUNDING = 1e-12  # differences of shifts below this are rounding errors of 0


def excess_test(
    n_group: ArrayLike,
    lost_group: ArrayLike,
    gained_group: ArrayLike,
    n_rest: ArrayLike,
    lost_rest: ArrayLike,
    gained_rest: ArrayLike,
) -> Floats:
    """Two-sided p of an excess of 0: the smallest level at which `excess_interval` excludes 0.

    Parameters
    ----------
    n_group, lost_group, gained_group
        Examples of the group; those that only the baseline gets right; only the compressed model.
    n_rest, lost_rest, gained_rest
        The same for all other examples.

    Notes
    -----
    Interval and test are one thing and cannot disagree. Each side keeps its own churn (lost +
    gained). The exact test given the totals of lost and gained predictions assumes equal churn:
    where a group flips more often in both directions, as hard groups do, it rejects a true null in
    up to 34 % (docs/statistics.md). NaN where either side is empty; 1 where the shifts are equal.

    Examples
    --------
    A group of 100 loses 12 and gains none, the 900 others lose 18 and gain 9.

    >>> f"{excess_test(100, 12, 0, 900, 18, 9):.4f}"
    '0.0011'
    >>> float(excess_test(100, 3, 3, 900, 0, 0))
    1.0
    """
    counts = _rows(n_group, lost_group, gained_group, n_rest, lost_rest, gained_rest)
    p: Floats = 2 * ndtr(-np.minimum(touching(counts), _LARGEST_Z))
    return p


def excess_interval(
    n_group: ArrayLike,
    lost_group: ArrayLike,
    gained_group: ArrayLike,
    n_rest: ArrayLike,
    lost_rest: ArrayLike,
    gained_rest: ArrayLike,
    alpha: ArrayLike = 0.05,
) -> tuple[Floats, Floats]:
    """Limits of excess = shift of the group − shift of all others at confidence 1 − alpha.

    Parameters
    ----------
    n_group, lost_group, gained_group, n_rest, lost_rest, gained_rest
        As in `excess_test`.
    alpha
        One minus the confidence; an array gives every row its own.

    Notes
    -----
    Examples are sampled, both models are fixed. The limits are MOVER's: the distances of Tango's
    limits from the shifts of both sides, added in squares. NaN where either side is empty.

    Measured coverage, also where one group flips ten times as often as the others:
    docs/statistics.md.

    References
    ----------
    Zou, G. Y. & Donner, A. (2008), Statistics in Medicine 27, 1693-1702 (MOVER).

    Examples
    --------
    >>> low, high = excess_interval(100, 12, 0, 900, 18, 9)
    >>> float(low.round(3)), float(high.round(3))
    (-0.189, -0.058)
    """
    *counts, level = _rows(n_group, lost_group, gained_group, n_rest, lost_rest, gained_rest, alpha)
    return mover(counts, -ndtri(level / 2))


def mover(counts: Sequence[Floats], quantile: Floats) -> tuple[Floats, Floats]:
    """MOVER's limits of the difference of two shifts at a quantile of z or t.

    `counts`: n, lost and gained of the one side, then of the other.
    """
    *counts, z = _rows(*counts, quantile)
    n, lost, gained = _sides(counts)
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = (gained - lost) / n
    low, high = tango_at(n, lost, gained, z)
    excess = shift[0] - shift[1]
    below = np.hypot(shift[0] - low[0], high[1] - shift[1])
    above = np.hypot(high[0] - shift[0], shift[1] - low[1])
    return excess - below, excess + above


def touching(counts: Sequence[Floats]) -> Floats:
    """The quantile at which MOVER's limits touch 0; 0 where the shifts are equal.

    There the two distances a and b of Tango's limits from the shifts have a² + b² = excess², and
    are reached at one quantile: with a = |excess| cos θ and b = |excess| sin θ, Tango's statistics
    at shift + a of the lower side and at shift − b of the higher side are equal.
    """
    n, lost, gained = _sides(counts)
    n = np.where(n > 0, n, np.nan)
    shift = (gained - lost) / n
    distance = np.abs(shift[0] - shift[1])
    # The lower side's upper limit and the higher side's lower one.
    first_is_lower = shift[0] < shift[1]
    direction = np.where([first_is_lower, ~first_is_lower], 1.0, -1.0)

    def reached(part: Floats) -> Floats:
        """The quantiles at which the limits lie that far from the two shifts."""
        away = np.stack([distance * np.cos(part), distance * np.sin(part)])
        return np.abs(tango_statistic(n, lost, gained, shift + direction * away))

    def difference(part: Floats) -> Floats:
        first, second = np.minimum(reached(part), _LARGEST_QUANTILE)
        apart: Floats = first - second
        return apart

    same = distance <= _ROUNDING
    start, end = np.zeros_like(distance), np.full_like(distance, np.pi / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        ends = np.maximum(difference(start), 0.0), np.minimum(difference(end), 0.0)
        part = falling_root(
            difference, (start, ends[0]), (end, ends[1]), _PRECISION,
            undefined=np.isnan(distance) | same,
        )  # fmt: skip
        first, second = reached(part)
    found = np.where(part < np.pi / 4, first, second)  # of the longer side: the other may be 0
    return np.where(same, 0.0, np.minimum(found, _LARGEST_QUANTILE))


def _sides(counts: Sequence[Floats]) -> list[Floats]:
    """n, lost and gained, each of both sides, (2, …)."""
    return [np.stack(pair) for pair in zip(counts[:3], counts[3:], strict=True)]


def normal_z(p: ArrayLike) -> Floats:
    """The distance from 0 in normal deviations that a two-sided p stands for.

    >>> float(normal_z(0.05).round(2)), float(normal_z(1.0))
    (1.96, 0.0)
    """
    z: Floats = -ndtri(np.asarray(p, dtype=np.float64) / 2)
    return np.abs(z)  # not −0


def _rows(*columns: ArrayLike) -> list[Floats]:
    return list(np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in columns)))


def standardised_excess(n: ArrayLike, lost: ArrayLike, gained: ArrayLike) -> Floats:
    """Excess of each level with every label weighted equally.

    Parameters
    ----------
    n, lost, gained
        Arrays (..., levels, labels) of examples, lost and gained answers.

    Returns
    -------
    NDArray
        (..., levels): mean over labels of (shift of the level − shift of the others) within the
        label, over the labels with examples on both sides; NaN where there is none. A level that
        merely holds more of a label that everybody loses has no standardised excess.

    Examples
    --------
    Two labels; the level loses 1 of 2 and 1 of 4, the others 0 of 2 and 1 of 4:
    mean of −1/2 and 0.

    >>> standardised_excess([[2, 4], [2, 4]], [[1, 1], [0, 1]], [[0, 0], [0, 0]]).tolist()
    [-0.25, 0.25]
    """
    size = np.asarray(n, dtype=np.float64)
    change = np.asarray(gained, dtype=np.float64) - np.asarray(lost, dtype=np.float64)
    others = size.sum(axis=-2, keepdims=True) - size
    change_others = change.sum(axis=-2, keepdims=True) - change
    both = (size > 0) & (others > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = np.where(both, change / size - change_others / others, 0.0)
        mean: Floats = difference.sum(axis=-1) / both.sum(axis=-1)
    return mean


# What noisy group labels hide of an excess.


def corrected_excess(
    excess: ArrayLike, share: ArrayLike, error: ArrayLike
) -> tuple[Floats, Floats]:
    """Range of the excess from the observed one to the one corrected for wrong group labels.

    Parameters
    ----------
    excess
        Shift of the level minus the shift of all others, as observed.
    share
        Share of all examples that carry this level's label, as observed.
    error
        Chance that a label is wrong, the same for members and others of the level.

    Notes
    -----
    With o the observed and s = (o − e) / (1 − 2e) the true share, the observed excess is the true
    one times P(true member | labelled so) − P(true member | not labelled so)
    = s (1 − e) / o − s e / (1 − o), provided that errors do not depend on the outcome.
    NaN where e >= o or e >= 1 − o: then the labels may be errors alone.

    Examples
    --------
    True share 0.2 and error 0.05: 0.2 · 0.95 + 0.8 · 0.05 = 0.23 are labelled so, and the factor
    is 0.19/0.23 − 0.01/0.77 = 0.813.

    >>> low, high = corrected_excess(-0.0813, 0.23, 0.05)
    >>> float(low.round(3)), float(high.round(4))
    (-0.1, -0.0813)
    """
    observed = np.asarray(excess, dtype=np.float64)
    o = np.asarray(share, dtype=np.float64)
    e = np.asarray(error, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        true_share = (o - e) / (1 - 2 * e)
        factor = true_share * (1 - e) / o - true_share * e / (1 - o)
        usable = (e >= 0) & (e < np.minimum(o, 1 - o) - 1e-12)
        corrected = np.where(usable, observed / factor, np.nan)
    shown = np.where(np.isnan(corrected), np.nan, observed)
    return np.minimum(shown, corrected), np.maximum(shown, corrected)
