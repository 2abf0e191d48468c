"""Permutations of levels over clusters: whole clusters, or examples within a cluster."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats

CHEAPER = 5  # a hypergeometric number costs as much as moving this many examples


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

    def permuted(self, rng: np.random.Generator, n_draws: int) -> tuple[Floats, Floats]:
        """The same with levels permuted over clusters, (n_draws, levels) each."""
        values, count = np.unique(self.sum, return_counts=True)
        alone = bool((self.size == 1).all())
        if alone and values.size * self.n_levels * CHEAPER < self.level.size:
            return self._by_value(rng, n_draws, values, count)
        drawn = [self._of(rng.permutation(self.level)) for _ in range(n_draws)]
        return np.array([sums for sums, _ in drawn]), np.array([v for _, v in drawn])

    def _by_value(
        self, rng: np.random.Generator, n_draws: int, values: Floats, count: NDArray[np.int64]
    ) -> tuple[Floats, Floats]:
        """Single examples with few distinct values: how many of each a level gets is drawn.

        Levels take their examples one after the other out of what is left, value by value: a
        multivariate hypergeometric draw, which is what permuting single examples does.
        """
        sizes = np.bincount(self.level, minlength=self.n_levels)
        left = np.repeat(count[:, None], n_draws, axis=1)  # (values, draws)
        total = count.sum()
        sums = np.zeros((n_draws, self.n_levels))
        inside = np.zeros((n_draws, self.n_levels))
        for g, size in enumerate(sizes):
            need = np.full(n_draws, size)
            after = np.full(n_draws, total)
            for v, value in enumerate(values):
                after = after - left[v]  # examples of the values still to come
                got = rng.hypergeometric(left[v], after, need)
                left[v] -= got
                need = need - got
                sums[:, g] += got * value
                inside[:, g] += got * value**2
            total -= size
        share = sizes / max(sizes.sum(), 1)
        square = float((self.sum**2).sum())
        return sums, (1 - share) ** 2 * inside + share**2 * (square - inside)

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
