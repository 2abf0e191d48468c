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
