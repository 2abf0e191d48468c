"""One half to discover slices on, the other to measure them again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.counts.sums import sums


def discovery_half(
    change: Floats,
    label: NDArray[Any],
    cluster: NDArray[np.int64] | None,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Which examples belong to the discovery half.

    Parameters
    ----------
    change
        Change of correctness of every example.
    label
        Its class.
    cluster
        Clusters go into one half whole.

    Notes
    -----
    Examples (clusters) are ordered by their change, then by label (size), at random where equal,
    and of every two neighbours one goes into each half: rare lost answers are then halved as
    evenly as they can be. Tests condition on how many answers were lost and gained in a half, so
    that their numbers are not random does not matter; who is in a slice remains so.
    """
    if cluster is None:
        return _one_of_two(change, label, rng)
    n_clusters = int(cluster.max()) + 1
    total = sums(cluster, change, n_clusters)
    size = np.bincount(cluster, minlength=n_clusters)
    return _one_of_two(total, size, rng)[cluster]


def _one_of_two(
    first: NDArray[Any], second: NDArray[Any], rng: np.random.Generator
) -> NDArray[np.bool_]:
    shuffled = rng.permutation(first.size)
    order = shuffled[np.lexsort((second[shuffled], first[shuffled]))]
    heads = rng.random((first.size + 1) // 2) < 0.5
    chosen = np.empty(first.size, dtype=np.bool_)
    chosen[order] = np.column_stack([heads, ~heads]).ravel()[: first.size]
    return chosen
