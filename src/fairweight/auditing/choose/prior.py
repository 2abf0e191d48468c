"""What is known of the true values of many variants: their estimates, and a prior over variants.

The best of many estimates is too good: part of its lead is luck. How much depends on how the true
values lie, which the estimates tell in part. Most variants are taken to lie together about a common
value, with a spread from none to far beyond the noise; a share may lie anywhere below them (models
that collapsed) and a share anywhere above. Each such shape counts by how probable it makes the
estimates, so nothing is assumed to be normal, and a few collapsed variants do not make the others
look surely different.

Errors are those of the replicates with all their correlations: one draw of examples serves all
variants, so what they have in common does not blur their differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import ndtr

from fairweight.base.types import Floats

# Shapes of the prior, in units of the noise; picked on simulated samples (docs/statistics.md).
NO_SPREAD = 0.02
SPREADS = (NO_SPREAD, 0.12, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
BELOW, ABOVE = (0.0, 0.15, 0.4), (0.0, 0.15)  # shares that lie apart
EQUAL = (0.18, 0.28)  # further weight of "equal, but for some below": of 10 variants, of 20

ROUNDING = 1e-9  # of the errors: noise that is less is none
LEAST_NOISE = 0.05  # of the mean variance: a variant cannot be known better than that
MOST_PLACES = 400  # of the common value
STEPS = (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5)  # places about each estimate
EVEN_PLACES = 60
BLOCK_VALUES = 4_000_000  # elements of the systems that are solved together


@dataclass(frozen=True)
class Shapes:
    """Which shapes a prior averages. No one set serves every question (docs/statistics.md)."""

    spreads: tuple[float, ...] = SPREADS
    equal: tuple[float, float] = (0.0, 0.0)


FOR_BEST = Shapes(equal=EQUAL)  # who is the best by one noisy number
FOR_FRONTIER = Shapes()  # one of several: with EQUAL, who is on their frontier is understated
# How far from the best: variants that hardly differ would make everybody look near it.
FOR_DISTANCE = Shapes(tuple(spread for spread in SPREADS if spread >= 0.25))


@dataclass(frozen=True)
class Posterior:
    """Draws of the true values given their estimates, (R, V), and the mean of them, (V,).

    Differences between variants are meant: what all errors have in common is not drawn.
    """

    draws: Floats
    mean: Floats


def posterior(
    values: Floats, replicates: Floats, rng: np.random.Generator, shapes: Shapes = FOR_BEST
) -> Posterior:
    """Draw true values given estimates (V,) and bootstrap replicates of them (R, V).

    Without noise the draws are the values. Many variants get fewer draws than replicates: each
    draw solves as many equations as there are variants.
    """
    error = replicates - replicates.mean(axis=0)
    noise = _own_noise(error)
    if len(values) < 2 or noise is None:
        return Posterior(np.tile(values, (len(error), 1)), values.copy())
    error = error[: max(500, 2 * BLOCK_VALUES // len(values) ** 2)]
    unit = float(np.sqrt(np.median(noise)))
    error, covariance = _without_common(error / unit, replicates / unit, noise / unit**2, rng)
    level = float(np.median(values))
    scaled = (values - level) / unit
    drawn = _drawn(scaled, np.sqrt(noise) / unit, error, covariance, shapes, rng)
    draws: Floats = level + unit * drawn
    return Posterior(draws, draws.mean(axis=0))


def _own_noise(error: Floats) -> Floats | None:
    """Variance of each variant's own error, without what all have in common; None without any.

    Of independent errors with variances d, deviations from their mean have the variances
    d (1 − 2 / V) + mean(d) / V.
    """
    n_variants = error.shape[1]
    if n_variants < 2:
        return None
    about = np.asarray((error - error.mean(axis=1, keepdims=True)).var(axis=0))
    mean = float(about.mean()) * n_variants / (n_variants - 1)
    if np.sqrt(mean) <= ROUNDING * float(np.abs(error).max(initial=0.0)):
        return None
    own = np.full(n_variants, mean)
    if n_variants > 2:
        own = (about - mean / n_variants) / (1 - 2 / n_variants)
    found: Floats = np.maximum(own, LEAST_NOISE * mean)
    return found


def _without_common(
    error: Floats, replicates: Floats, noise: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Errors with the same differences and hardly any correlation, and their covariance.

    Each draw's best guess of the common error is taken out, and as much noise as that guess has is
    put back: independent errors come out as independent as they were.
    """
    share = 1 / noise / (1 / noise).sum()
    guessed = float(1 / (1 / noise).sum())
    own = replicates - replicates.mean(axis=0)
    own = own - (own @ share)[:, None]
    covariance = own.T @ own / max(len(own) - 1, 1) + guessed
    added = np.sqrt(guessed) * rng.standard_normal((len(error), 1))
    return error - (error @ share)[:, None] + added, covariance


def _drawn(
    values: Floats,
    noise: Floats,
    error: Floats,
    covariance: Floats,
    averaged: Shapes,
    rng: np.random.Generator,
) -> Floats:
    """Draws in units of the noise: a shape, who lies apart in it, and true values given these.

    Given who lies apart, the prior is normal: a draw from it is corrected by what the estimates
    say, with the error of a replicate (Matheron's rule), so errors keep the shape they have.
    """
    n_draws, n_variants = error.shape
    places, weights = _places(values)
    distance = values - places[:, None]  # (M, V)
    # Densities of lying anywhere below or above, as far as the estimates reach, (2, M, V).
    reach = float(np.ptp(values)) + 2.0
    apart = np.stack([ndtr(-distance / noise), ndtr(distance / noise)]) / reach
    variances = [noise**2 + spread**2 for spread in averaged.spreads]
    together = [np.exp(-0.5 * distance**2 / v) / np.sqrt(2 * np.pi * v) for v in variances]
    shapes = list(product(range(len(averaged.spreads)), BELOW, ABOVE))
    further = float(np.interp(n_variants, (10, 20), averaged.equal))
    log = np.array([
        np.log(_density(together[s], apart, below, above)).sum(axis=1) for s, below, above in shapes
    ])  # fmt: skip
    # Shapes count alike, with a further weight for variants that are equal but for some below.
    equal = np.array([s == 0 and below > 0 and above == 0 for s, below, above in shapes])
    shape_weights = (1 - further) / len(shapes) + further * equal / equal.sum()
    log += np.log(weights) + np.log(shape_weights)[:, None]
    chance = np.exp(log - log.max()).ravel()
    # Each shape and place is drawn as often as its probability says, in random order.
    even = (np.arange(n_draws) + rng.random()) / n_draws
    drawn = np.searchsorted(np.cumsum(chance / chance.sum()), even)
    drawn = rng.permutation(np.minimum(drawn, len(chance) - 1))
    shape, place = np.divmod(drawn, len(places))
    spread = np.array([averaged.spreads[s] for s, _, _ in shapes])[shape][:, None]
    share = np.empty((n_draws, n_variants))
    for number, (s, below, above) in enumerate(shapes):
        own = shape == number
        core = together[s][place[own]]
        rest = _density(core, apart[:, place[own]], below, above)
        share[own] = (1 - below - above) * core / rest
    pull = np.where(rng.random(share.shape) < share, 1 / spread, 0.0)  # 0: it lies apart
    prior = places[place][:, None] + spread * rng.standard_normal(share.shape)
    lacking = values - prior - error
    return values - error - _corrections(pull, covariance, lacking)


def _places(values: Floats) -> tuple[Floats, Floats]:
    """Where the variants that lie together may lie, and the weight of each place (flat prior)."""
    low, high = values.min() - 2.0, values.max() + 2.0
    near = (values[:, None] + np.array(STEPS)).ravel()
    found = np.unique(np.round(np.concatenate([near, np.linspace(low, high, EVEN_PLACES)]), 1))
    if len(found) > MOST_PLACES:
        found = found[np.linspace(0, len(found) - 1, MOST_PLACES).astype(np.intp)]
    return found, np.gradient(found)


def _density(together: Floats, apart: Floats, below: float, above: float) -> Floats:
    """The density of estimates where some variants lie below the others and some above."""
    found: Floats = (1 - below - above) * together + below * apart[0] + above * apart[1]
    return np.maximum(found, 1e-300)


def _corrections(pull: Floats, covariance: Floats, lacking: Floats) -> Floats:
    """Σ S (I + S Σ S)⁻¹ S l for every draw, S the diagonal of one over the prior's spread."""
    n_draws, n_variants = pull.shape
    found = np.empty_like(lacking)
    at_once = max(1, BLOCK_VALUES // n_variants**2)
    for start in range(0, n_draws, at_once):
        part = slice(start, start + at_once)
        scaled = pull[part, :, None] * covariance * pull[part, None, :]
        scaled[:, np.arange(n_variants), np.arange(n_variants)] += 1.0
        solved = np.linalg.solve(scaled, (pull[part] * lacking[part])[..., None])[..., 0]
        found[part] = (pull[part] * solved) @ covariance
    return found
