"""Log odds ratios of being an exemplar, inside a part against outside it, and their variances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.intervals.wilson import wilson

HALF = 0.5  # Haldane and Anscombe: added to every cell


def log_odds_ratio(
    inside: ArrayLike, n_inside: ArrayLike, outside: ArrayLike, n_outside: ArrayLike
) -> Floats:
    """Log odds inside minus log odds outside, with ½ added to every one of the four cells.

    The ½ is always added, not only where a cell is empty, so that the value is one function of the
    counts. `inside` and `outside` count exemplars and need not be whole (means over splits).

    >>> float(log_odds_ratio(8, 19, 8, 49).round(6))  # log(41.5 / 11.5)
    1.283346
    """
    a, n, c, m = (np.asarray(x, dtype=np.float64) for x in (inside, n_inside, outside, n_outside))
    odds: Floats = np.log((a + HALF) / (n - a + HALF)) - np.log((c + HALF) / (m - c + HALF))
    return odds


def log_odds_limits(
    inside: ArrayLike,
    n_inside: ArrayLike,
    outside: ArrayLike,
    n_outside: ArrayLike,
    alpha: float = 0.05,
) -> tuple[Floats, Floats]:
    """Limits of the log odds ratio: square-and-add of both sides' modified Wilson limits.

    Examples are sampled, the models are fixed. Exact coverage at 95 % for 10 to 300 examples inside
    and 200 or 2,000 outside, over a grid of shares: at least 92.9 % (10 inside), 93 % from 20 on.
    Woolf's limits with ½ in every cell cover as little as 82 % there, where less than one exemplar
    is expected inside. Infinite where everybody, or nobody, inside is an exemplar.

    References
    ----------
    Fagerland & Newcombe (2013), Statistics in Medicine 32, 2823-2836.

    Examples
    --------
    No exemplar among 10 says nothing from below: the lower limit is −∞.

    >>> low, high = log_odds_limits(0, 10, 20, 100)
    >>> float(low), bool(high > log_odds_ratio(0, 10, 20, 100))
    (-inf, True)
    """
    from scipy.special import logit

    a, n, c, m = (np.asarray(x, dtype=np.float64) for x in (inside, n_inside, outside, n_outside))
    value = log_odds_ratio(a, n, c, m)
    here, there = np.log((a + HALF) / (n - a + HALF)), np.log((c + HALF) / (m - c + HALF))
    low_here, high_here = (logit(x) for x in wilson(a, n, alpha, modified=True))
    low_there, high_there = (logit(x) for x in wilson(c, m, alpha, modified=True))
    low: Floats = value - np.hypot(here - low_here, high_there - there)
    high: Floats = value + np.hypot(high_here - here, there - low_there)
    return low, high


@dataclass(frozen=True)
class Linear:
    """How a log odds ratio moves with the examples' own chances to be exemplars.

    Near the values at hand, it moves by `inside` per exemplar inside the part and by −`outside`
    per exemplar outside it, and `rates` are the chances there.
    """

    rates: tuple[float, float]
    slopes: tuple[float, float]

    @property
    def pseudo(self) -> float:
        """What the added halves contribute to the variance, as half a success and half a failure.

        With it, the sum of squared influences of a single mask is Woolf's variance: 1 over each of
        the four cells, ½ added.
        """
        return sum(
            HALF * ((1 - rate) ** 2 + rate**2) * slope**2
            for rate, slope in zip(self.rates, self.slopes, strict=True)
        )


def linear(inside: float, n_inside: float, outside: float, n_outside: float) -> Linear:
    """The derivative of `log_odds_ratio` in the number of exemplars inside and outside.

    >>> near = linear(8, 19, 8, 49)
    >>> mask = np.repeat([1.0, 0.0], [8, 11]), np.repeat([1.0, 0.0], [8, 41])
    >>> squares = [((m - r) ** 2).sum() * s**2 for m, r, s in zip(mask, near.rates, near.slopes)]
    >>> float(round(sum(squares) + near.pseudo, 6)) == round(2 / 8.5 + 1 / 11.5 + 1 / 41.5, 6)
    True
    """
    rates = (inside + HALF) / (n_inside + 1), (outside + HALF) / (n_outside + 1)
    slopes = (
        1 / (rates[0] * (1 - rates[0]) * (n_inside + 1)),
        1 / (rates[1] * (1 - rates[1]) * (n_outside + 1)),
    )
    return Linear(rates, slopes)


def influences(
    near: Linear, within: Floats, n_within: Floats, without: Floats, n_without: Floats
) -> Floats:
    """The part that every unit (example or cluster) has in a log odds ratio, along the last axis.

    Parameters
    ----------
    within, without
        Sums of the unit's chances to be an exemplar, over its examples inside and outside.
    n_within, n_without
        How many those are.
    """
    moved: Floats = near.slopes[0] * (within - near.rates[0] * n_within) - near.slopes[1] * (
        without - near.rates[1] * n_without
    )
    return moved
