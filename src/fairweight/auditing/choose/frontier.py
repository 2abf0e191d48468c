"""How sure a choice is: the frontier, its neighbours within noise, and probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.choose.prior import (
    FOR_BEST,
    FOR_DISTANCE,
    FOR_FRONTIER,
    Posterior,
    posterior,
)
from fairweight.auditing.choose.terms import ChoiceRequest, TermValues
from fairweight.base.streams import stream
from fairweight.base.types import Floats

# How sure a choice is: who is best in how many draws, and the set that contains the best.

LEVEL = 0.95
ROUNDING = 1e-9  # of the spread of the values: what is nearer is equal


def share_best(draws: Floats) -> Floats:
    """In which share of draws (R, V) each variant is highest; equal ones share it.

    >>> share_best(np.array([[1.0, 2.0, 0.0], [1.0, 1.0, 0.0]])).tolist()
    [0.25, 0.75, 0.0]
    """
    top = draws.max(axis=1, keepdims=True)
    highest = draws >= top - _slack(draws)
    shares: Floats = (highest / highest.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def share_near(draws: Floats, margin: float) -> Floats:
    """In which share of draws (R, V) each variant is within a margin of the highest.

    >>> share_near(np.array([[1.0, 2.0, 0.0], [1.0, 1.0, 0.0]]), 1.0).tolist()
    [1.0, 1.0, 0.5]
    """
    top = draws.max(axis=1, keepdims=True)
    shares: Floats = (draws >= top - margin - _slack(draws)).mean(axis=0)
    return shares


def _slack(draws: Floats) -> float:
    """How far apart equal values may be by rounding."""
    most = float(np.abs(draws).max(initial=0.0))
    return ROUNDING * max(float(np.ptp(draws)), most * ROUNDING)


def best_set(values: Floats, replicates: Floats, level: float = LEVEL) -> NDArray[np.bool_]:
    """Variants that may be the best: the set contains it with probability `level`.

    A variant is left out where another is above it by more than noise: the largest of its
    standardised deficits exceeds the `level` quantile of the largest in the replicates, which draw
    the same examples for all. Whichever is truly best is left out wrongly in 1 − level of samples,
    however many variants there are.
    """
    return np.asarray(~deficits(values, replicates, level).any(axis=0))


def deficits(values: Floats, replicates: Floats, level: float = LEVEL) -> NDArray[np.bool_]:
    """Who is above whom by more than noise, (j, i): j above i, held at once for all j."""
    error = np.ascontiguousarray((replicates - replicates.mean(axis=0)).T)  # (V, R)
    slack = _slack(values)
    lead = values[:, None] - values[None, :]
    # Standard deviation of every difference of two variants (V, V), by their covariances.
    width = np.zeros_like(lead)
    if error.shape[1] > 1:
        covariance = error @ error.T / (error.shape[1] - 1)
        own = np.diagonal(covariance)
        squared = own[:, None] + own[None, :] - 2 * covariance
        # Of copies nothing but rounding is left; the square root would make it look like noise.
        squared[squared < ROUNDING * (own[:, None] + own[None, :])] = 0.0
        width = np.sqrt(squared)
    noisy = width > slack
    scale = np.divide(1.0, width, out=np.zeros_like(width), where=noisy)
    largest = np.zeros_like(error)
    drawn = np.empty_like(error)
    for i in range(len(values)):
        np.subtract(error, error[i], out=drawn)
        drawn *= scale[:, i, None]
        drawn.max(axis=0, out=largest[i], initial=0.0)
    limit = np.quantile(largest, level, axis=1)
    found: NDArray[np.bool_] = np.where(noisy, lead * scale > limit, lead > slack)
    return found


# The Pareto set: variants that no other is at least as good as in everything and better in one.

BLOCK_VALUES = 4_000_000  # pairs of variants looked at together, over draws


def frontier(points: Floats) -> NDArray[np.bool_]:
    """Which variants are not dominated, (..., V) of points (..., V, K), higher being better.

    Equal points do not dominate each other: duplicates stay together, on the frontier or off it.
    A point with an undefined objective is never on it and dominates nobody.

    >>> frontier(np.array([[1.0, 3.0], [2.0, 2.0], [1.0, 2.0], [2.0, 2.0]])).tolist()
    [True, True, False, True]
    """
    lead, (n_variants, n_objectives) = points.shape[:-2], points.shape[-2:]
    flat = points.reshape(-1, n_variants, n_objectives)
    kept = np.empty(flat.shape[:2], dtype=np.bool_)
    at_once = max(1, BLOCK_VALUES // max(n_variants * n_variants, 1))
    for start in range(0, len(flat), at_once):
        part = flat[start : start + at_once]
        kept[start : start + at_once] = ~dominates(part).any(axis=-2)
    kept &= np.isfinite(flat).all(axis=-1)
    return kept.reshape(*lead, n_variants)


def dominates(points: Floats) -> NDArray[np.bool_]:
    """Who dominates whom, (..., j, i): j is at least as good in all objectives and better in one.

    >>> dominates(np.array([[1.0, 1.0], [0.0, 1.0]])).tolist()
    [[False, True], [False, False]]
    """
    undefined = ~np.isfinite(points).all(axis=-1)
    places = [np.where(undefined, -1, _places(points[..., k])) for k in range(points.shape[-1])]
    # Whoever is at least as good in all places and has a higher sum of them is better in one.
    total = np.sum(places, axis=0)
    found: NDArray[np.bool_] = total[..., :, None] > total[..., None, :]
    for place in places:
        found &= place[..., :, None] >= place[..., None, :]
    return found


def _places(values: Floats) -> NDArray[np.int32]:
    """Places along the last axis, from 0 for the lowest; equal values have equal places.

    Small whole numbers are compared several times faster than the values themselves.
    """
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    steps = np.zeros(values.shape, dtype=np.int32)
    np.cumsum(ordered[..., 1:] != ordered[..., :-1], axis=-1, out=steps[..., 1:])
    found = np.empty_like(steps)
    np.put_along_axis(found, order, steps, axis=-1)
    return found


@dataclass(frozen=True)
class Sureness:
    """Where candidates stand, NaN or False for those that do not qualify."""

    frontier: NDArray[np.bool_]
    near: NDArray[np.bool_]  # off the frontier, but nobody is shown to dominate it
    p_frontier: Floats
    frequency_frontier: Floats
    value: Floats
    value_draws: Floats | None = None  # (R, V), replicates of the value
    value_shrunk: Floats = field(default_factory=lambda: np.zeros(0))
    p_best: Floats = field(default_factory=lambda: np.zeros(0))
    p_within_margin: Floats = field(default_factory=lambda: np.zeros(0))
    frequency_best: Floats = field(default_factory=lambda: np.zeros(0))
    best_set: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))


def sureness(
    request: ChoiceRequest, known: TermValues, kept: NDArray[np.bool_], random_state: int
) -> Sureness:
    """Everything about those that qualify; the prior is over all candidates."""
    points, raw = [], []
    for objective in request.objectives:
        values, replicates = (objective.oriented(part) for part in known.of(objective.term))
        points.append(values)
        raw.append(replicates)
    at, replicated = np.stack(points, axis=-1), np.stack(raw, axis=-1)
    noisy = np.array([objective.term.noisy for objective in request.objectives])
    shapes = FOR_BEST if noisy.sum() == 1 else FOR_FRONTIER
    truths = []
    for objective, values, replicates in zip(request.objectives, points, raw, strict=True):
        if objective.term.noisy:
            rng = stream(random_state, "choose", "posterior", objective.name)
            truths.append(posterior(values, replicates, rng, shapes).draws)
        else:
            truths.append(replicates)
    n_draws = min(len(draws) for draws in truths)
    drawn = np.stack([draws[:n_draws] for draws in truths], axis=-1)

    def spread(found: NDArray[Any], empty: object = np.nan) -> NDArray[Any]:
        every = np.full(len(kept), empty, dtype=found.dtype)
        every[kept] = found
        return every

    on = frontier(at[kept])
    made = Sureness(
        frontier=spread(on, False),
        near=spread(~on & ~_surely_dominated(at[kept], replicated[:, kept], noisy), False),
        p_frontier=spread(frontier(drawn[:, kept]).mean(axis=0)),
        frequency_frontier=spread(frontier(replicated[:, kept]).mean(axis=0)),
        value=np.full(len(kept), np.nan),
    )
    if request.weights is None:
        return made
    value, value_draws = at @ request.weights, replicated @ request.weights
    truth = distance = Posterior(value_draws, value)
    if noisy.any():
        weights = np.where(noisy, request.weights, 0.0)  # the prior is over values; costs are known
        costs, part = at @ (request.weights - weights), (at @ weights, replicated @ weights)
        rng = stream(random_state, "choose", "posterior", "value")
        found = posterior(*part, rng, FOR_BEST)
        truth = Posterior(found.draws + costs, found.mean + costs)
        if request.margin is not None:
            rng = stream(random_state, "choose", "posterior", "distance")
            found = posterior(*part, rng, FOR_DISTANCE)
            distance = Posterior(found.draws + costs, found.mean + costs)
    best = share_best(truth.draws[:, kept])
    near = np.full(len(best), np.nan)
    if request.margin is not None:  # the best is near itself
        near = np.maximum(share_near(distance.draws[:, kept], request.margin), best)
    return replace(
        made,
        value=value,
        value_draws=value_draws,
        value_shrunk=truth.mean,
        p_best=spread(best),
        p_within_margin=spread(near),
        frequency_best=spread(share_best(value_draws[:, kept])),
        best_set=spread(best_set(value[kept], value_draws[:, kept]), False),
    )


def _surely_dominated(
    points: Floats, replicates: Floats, noisy: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Who is below another variant in every objective by more than noise (costs: at all)."""
    n_variants = len(points)
    level = 1 - (1 - LEVEL) / max(int(noisy.sum()), 1)  # an error in any objective counts
    sure = np.ones((n_variants, n_variants), dtype=np.bool_)
    better = np.zeros_like(sure)
    for k, is_noisy in enumerate(noisy):
        one = points[:, k]
        above = one[:, None] > one[None, :]
        if is_noisy:
            above = deficits(one, replicates[:, :, k], level)
            # Variants with the same value in every draw are as good as each other.
            known: dict[bytes, int] = {}
            drawn = [column.tobytes() for column in replicates[:, :, k].T]
            copy = [known.setdefault(column, len(known)) for column in drawn]
            sure &= above | np.equal.outer(copy, copy)
        else:
            sure &= one[:, None] >= one[None, :]
        better |= above
    found: NDArray[np.bool_] = np.asarray((sure & better).any(axis=0))
    return found
