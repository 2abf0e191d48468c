"""Sums of weights by index, as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats


def sums(index: NDArray[np.integer[Any]], weights: NDArray[Any], size: int) -> Floats:
    """For every place 0 .. size-1, the sum of the weights that point at it.

    >>> sums(np.array([0, 2, 2]), np.array([1.0, 0.5, 2.0]), 3).tolist()
    [1.0, 0.0, 2.5]
    """
    return np.bincount(index, weights=weights, minlength=size).astype(np.float64, copy=False)
