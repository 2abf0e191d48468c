"""How sure a choice is: who is best in how many draws, and the set that contains the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats

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
    beyond = deficits(values, replicates, level)
    found: NDArray[np.bool_] = np.asarray(~beyond.any(axis=0))
    return found


def deficits(values: Floats, replicates: Floats, level: float = LEVEL) -> NDArray[np.bool_]:
    """Who is above whom by more than noise, (j, i): j above i, held at once for all j."""
    error = np.ascontiguousarray((replicates - replicates.mean(axis=0)).T)  # (V, R)
    slack = _slack(values)
    lead = values[:, None] - values[None, :]
    width = _noise_of_differences(error)
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


def _noise_of_differences(error: Floats) -> Floats:
    """Standard deviation of every difference of two variants (V, V), by their covariances."""
    if error.shape[1] < 2:
        return np.zeros((len(error), len(error)))
    covariance = error @ error.T / (error.shape[1] - 1)
    own = np.diagonal(covariance)
    squared = own[:, None] + own[None, :] - 2 * covariance
    # Of copies nothing but rounding is left; the square root would make it look like noise.
    squared[squared < ROUNDING * (own[:, None] + own[None, :])] = 0.0
    found: Floats = np.sqrt(squared)
    return found
