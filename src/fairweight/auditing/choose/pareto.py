"""The Pareto set: variants that no other is at least as good as in everything and better in one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats

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
    shape = (*points.shape[:-1], points.shape[-2])
    as_good = np.ones(shape, dtype=np.bool_)
    for k in range(points.shape[-1]):
        one = points[..., k]
        as_good &= one[..., :, None] >= one[..., None, :]
    # As good both ways is equal in everything; whoever is as good and not equal is better in one.
    found: NDArray[np.bool_] = as_good & ~np.swapaxes(as_good, -1, -2)
    return found
