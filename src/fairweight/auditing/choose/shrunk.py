"""Replicates of many variants drawn towards each other: empirical Bayes over variants.

The best of many estimates is too good: part of its lead is luck. Variants' true values are taken as
normal about a common mean, with a spread τ that the data tell; τ itself is not known either, so it
is integrated out (a half-Cauchy prior near the scale of the noise), not put at its estimate. Errors
are those of the replicates, with all their correlations: one draw serves all variants, so what they
have in common does not blur their differences. Variants far from others
that lie together are shrunk apart from them (`apart.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.choose.apart import neighbourhoods
from fairweight.auditing.counts.stats import Floats

STEPS = 60  # of the grid of τ
LEAST, MOST = 0.02, 200.0  # its ends, in units of the noise
PRIOR_SCALE = 0.85  # of the spread that can be told: the best calibrated one (docs/statistics.md)
ROUNDING = 1e-9  # of the noise: what is nearer than that is equal


@dataclass(frozen=True)
class Shrunk:
    """Draws from what is known of the true values, (R, V), and the mean of them, (V,)."""

    draws: Floats
    mean: Floats


def shrink(
    values: Floats,
    replicates: Floats,
    rng: np.random.Generator,
    *,
    prior_scale: float = PRIOR_SCALE,
) -> Shrunk:
    """Draw true values given estimates (V,) and bootstrap replicates of them (R, V).

    Every replicate's error is put on a draw of true values from the prior, and what the estimates
    then say is taken from it (Matheron's rule), so that the errors keep the shape they have.
    """
    error = replicates - replicates.mean(axis=0)
    draws, mean = values - error, values.copy()
    for own in neighbourhoods(values, error):
        if len(own) > 1 and _scale(error[:, own]):
            together = _together(values[own], error[:, own], rng, prior_scale)
            draws[:, own], mean[own] = together.draws, together.mean
    return Shrunk(draws, mean)


def _together(
    values: Floats, error: Floats, rng: np.random.Generator, prior_scale: float
) -> Shrunk:
    n_draws, n_variants = error.shape
    noise = _scale(error)
    within, axes = np.linalg.eigh(error.T @ error / max(n_draws - 1, 1))
    within = np.clip(within, 0.0, None)
    ones = axes.sum(axis=0)
    taus = noise * np.geomspace(LEAST, MOST, STEPS)
    scale = prior_scale * noise * _told_by(n_variants)
    chance = _posterior(axes.T @ values, ones, within, taus, scale)
    tau = taus[_spread_draws(chance, n_draws, rng)]
    prior = tau[:, None] * rng.standard_normal((n_draws, n_variants))
    lacking = (values - prior - error) @ axes
    draws = prior + _explained(lacking, ones, within, tau[:, None]) @ axes.T
    at_values = np.broadcast_to(axes.T @ values, (STEPS, n_variants))
    means = _explained(at_values, ones, within, taus[:, None]) @ axes.T
    return Shrunk(draws, chance @ means)


def _told_by(n_variants: int) -> float:
    """The spread that so many variants can tell from none, in units of the noise.

    Their variance has a standard error of √(2 / (V − 1)), so a τ² below that is hidden by it.
    """
    return float((2 / (n_variants - 1)) ** 0.25)


def _scale(error: Floats) -> float:
    """Standard deviation of the noise between variants; 0 where there is none."""
    between = error - error.mean(axis=1, keepdims=True)
    found = float(np.sqrt((between**2).sum(axis=1).mean() / max(error.shape[1] - 1, 1)))
    return found if found > ROUNDING * float(np.abs(error).max(initial=0.0)) else 0.0


def _posterior(values: Floats, ones: Floats, within: Floats, taus: Floats, scale: float) -> Floats:
    """Probabilities of the grid of τ, the common mean integrated out under a flat prior."""
    total = within + taus[:, None] ** 2  # (T, V), in the axes of the errors
    information = (ones**2 / total).sum(axis=1)
    mean = (ones * values / total).sum(axis=1) / information
    misfit = ((values - mean[:, None] * ones) ** 2 / total).sum(axis=1)
    log = -0.5 * (np.log(total).sum(axis=1) + np.log(information) + misfit)
    log += np.log(taus) - np.log1p((taus / scale) ** 2)  # the grid is even in log τ
    chance = np.exp(log - log.max())
    found: Floats = chance / chance.sum()
    return found


def _explained(lacking: Floats, ones: Floats, within: Floats, tau: Floats) -> Floats:
    """Common mean and own deviation that differences from the prior speak for (rows of axes)."""
    total = within + tau**2
    mean = (ones * lacking / total).sum(axis=1) / (ones**2 / total).sum(axis=1)
    common = mean[:, None] * ones
    found: Floats = common + tau**2 / total * (lacking - common)
    return found


def _spread_draws(chance: Floats, n_draws: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Places of the grid, each as often as its probability says, in random order."""
    at = (np.arange(n_draws) + rng.random()) / n_draws
    places = np.minimum(np.searchsorted(np.cumsum(chance), at), len(chance) - 1)
    return rng.permutation(places)
