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
    slack = ROUNDING * np.maximum(draws.max() - draws.min(), np.abs(draws).max() * ROUNDING)
    highest = draws >= top - slack
    shares: Floats = (highest / highest.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


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
    error = replicates - replicates.mean(axis=0)
    n_variants = len(values)
    slack = ROUNDING * max(float(np.ptp(values)), float(np.abs(values).max()) * ROUNDING)
    beyond = np.zeros((n_variants, n_variants), dtype=np.bool_)
    for i in range(n_variants):
        lead = values - values[i]
        drawn = error - error[:, [i]]
        width = drawn.std(axis=0, ddof=1) if len(error) > 1 else np.zeros(n_variants)
        noisy = width > slack
        beyond[~noisy, i] = lead[~noisy] > slack
        if noisy.any():
            largest = (drawn[:, noisy] / width[noisy]).max(axis=1)
            limit = max(float(np.quantile(largest, level)), 0.0)
            beyond[noisy, i] = lead[noisy] / width[noisy] > limit
    return beyond
