"""How sure a choice is: the frontier, its neighbours within noise, and probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.choose.best import LEVEL, best_set, deficits, share_best, share_near
from fairweight.auditing.choose.known import Asked, Known
from fairweight.auditing.choose.pareto import frontier
from fairweight.auditing.choose.prior import (
    FOR_BEST,
    FOR_DISTANCE,
    FOR_FRONTIER,
    Posterior,
    Shapes,
    posterior,
)
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.streams import stream


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


def sureness(asked: Asked, known: Known, kept: NDArray[np.bool_], random_state: int) -> Sureness:
    """Everything about those that qualify; the prior is over all candidates."""
    points, raw = [], []
    for objective in asked.objectives:
        values, replicates = (objective.oriented(part) for part in known.of(objective.term))
        points.append(values)
        raw.append(replicates)
    at, replicated = np.stack(points, axis=-1), np.stack(raw, axis=-1)
    noisy = np.array([objective.term.noisy for objective in asked.objectives])

    def known_truth(values: Floats, replicates: Floats, name: str, shapes: Shapes) -> Posterior:
        rng = stream(random_state, "choose", "posterior", name)
        return posterior(values, replicates, rng, shapes)

    alone = noisy.sum() == 1
    truths = [
        known_truth(values, replicates, objective.name, FOR_BEST if alone else FOR_FRONTIER)
        if objective.term.noisy
        else Posterior(replicates, values)
        for objective, values, replicates in zip(asked.objectives, points, raw, strict=True)
    ]
    n_draws = min(len(truth.draws) for truth in truths)
    drawn = np.stack([truth.draws[:n_draws] for truth in truths], axis=-1)

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
    if asked.weights is None:
        return made
    value, value_draws = at @ asked.weights, replicated @ asked.weights
    weights = np.where(noisy, asked.weights, 0.0)  # the prior is over values; costs are known
    costs = at @ (asked.weights - weights)
    noisy_part = at @ weights, replicated @ weights

    def truth_for(name: str, shapes: Shapes) -> Posterior:
        if not noisy.any():
            return Posterior(value_draws, value)
        found = known_truth(*noisy_part, name, shapes)
        return Posterior(found.draws + costs, found.mean + costs)

    truth = truth_for("value", FOR_BEST)
    best = share_best(truth.draws[:, kept])
    near = np.full(len(best), np.nan)
    if asked.margin is not None:
        distances = truth_for("distance", FOR_DISTANCE).draws[:, kept]
        near = np.maximum(share_near(distances, asked.margin), best)  # the best is near itself
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
            sure &= above | _copies(replicates[:, :, k])
        else:
            sure &= one[:, None] >= one[None, :]
        better |= above
    found: NDArray[np.bool_] = np.asarray((sure & better).any(axis=0))
    return found


def _copies(replicates: Floats) -> NDArray[np.bool_]:
    """Which variants have the same value in every draw, (V, V)."""
    known: dict[bytes, int] = {}
    number = np.array([known.setdefault(column.tobytes(), len(known)) for column in replicates.T])
    found: NDArray[np.bool_] = number[:, None] == number[None, :]
    return found
