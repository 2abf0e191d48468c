"""Permutations of levels over clusters: whole clusters, or examples within a cluster."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats


class PureClusters:
    """Clusters that lie in one level each; a permutation moves them whole."""

    def __init__(
        self, cluster: NDArray[np.int64], level: NDArray[np.int64], value: Floats, n_levels: int
    ) -> None:
        _, first, code = np.unique(cluster, return_index=True, return_inverse=True)
        self.level = level[first]
        self.n_levels = n_levels
        self.size = np.bincount(code, minlength=first.size).astype(np.float64)
        # Centred again, so that the sums of these clusters alone have mean 0.
        mean = value.sum() / value.size if value.size else 0.0
        self.sum = np.bincount(code, weights=value, minlength=first.size) - mean * self.size

    def observed(self) -> tuple[Floats, Floats]:
        """Sum of each level and its variance as the clusters stand."""
        return self._of(self.level)

    def permuted(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """The same with levels permuted over clusters."""
        return self._of(rng.permutation(self.level))

    def _of(self, level: NDArray[np.int64]) -> tuple[Floats, Floats]:
        square = self.sum**2
        inside = _sums(level, square, self.n_levels)
        share = _sums(level, self.size, self.n_levels) / max(self.size.sum(), 1.0)
        variance = (1 - share) ** 2 * inside + share**2 * (square.sum() - inside)
        return _sums(level, self.sum, self.n_levels), variance


class MixedClusters:
    """Clusters with examples of several levels; levels are permuted within each."""

    def __init__(
        self, cluster: NDArray[np.int64], level: NDArray[np.int64], value: Floats, n_levels: int
    ) -> None:
        code = np.unique(cluster, return_inverse=True)[1]
        order = np.argsort(code, kind="stable")
        self.code, self.level, value = code[order], level[order], value[order]
        self.n_levels = n_levels
        items = np.maximum(np.bincount(self.code), 1)
        # Centred by cluster: a level's sum then has mean 0 under the permutation.
        self.value = value - (np.bincount(self.code, weights=value) / items)[self.code]
        square = np.bincount(self.code, weights=self.value**2)
        spread = square / items / np.maximum(items - 1, 1)
        cell, count = np.unique(self.code * n_levels + self.level, return_counts=True)
        of_cluster = cell // n_levels
        variance = count * (items[of_cluster] - count) * spread[of_cluster]
        self.variance = _sums(cell % n_levels, variance, n_levels)

    def observed(self) -> Floats:
        """Sum of each level as the examples stand, less its mean under the permutation."""
        return _sums(self.level, self.value, self.n_levels)

    def permuted(self, rng: np.random.Generator) -> Floats:
        """The same with levels permuted within clusters."""
        # Sorting cluster number + fraction shuffles the examples of each cluster.
        order = np.argsort(self.code + rng.random(self.code.size))
        return _sums(self.level, self.value[order], self.n_levels)


def _sums(level: NDArray[np.int64], value: Floats, n_levels: int) -> Floats:
    if level.size == 0:
        return np.zeros(n_levels)
    return np.asarray(np.bincount(level, weights=value, minlength=n_levels), dtype=np.float64)
