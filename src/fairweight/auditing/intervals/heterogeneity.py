"""Do the levels of a column pay differently? One permutation test for the whole column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.intervals.excess import standardised_excess
from fairweight.auditing.intervals.permuted_clusters import MixedClusters, PureClusters
from fairweight.auditing.intervals.permuted_tables import draws_at_once, permuted_tables
from fairweight.errors import InputError


@dataclass(frozen=True)
class Heterogeneity:
    """Outcome of the permutation test of one column."""

    statistic: float  # max |t|
    p_value: float
    t: Floats  # (levels,), NaN where a level cannot vary
    excess: Floats  # (levels,), standardised excess
    excess_p: Floats  # (levels,), two-sided permutation p of `excess`
    n_draws: int


def heterogeneity(
    n: ArrayLike,
    lost: ArrayLike,
    gained: ArrayLike,
    *,
    n_draws: int = 2_000,
    rng: np.random.Generator | None = None,
) -> Heterogeneity:
    """Test whether every level has the same shift within every label.

    Parameters
    ----------
    n, lost, gained
        Whole numbers (levels, labels): examples, lost and gained answers.
    n_draws, rng
        Permutations and their source.

    Notes
    -----
    With d = gained − lost, d̄_k the mean of label k and σ²_k its variance over examples, a level has
    T = Σ_k (d_k − n_k d̄_k), whose variance is Σ_k n_k (N_k − n_k) / (N_k − 1) σ²_k if group labels
    are permuted among the examples of each label; t = T / sd and the statistic is max |t|.
    p = (1 + draws with at least that maximum) / (1 + draws). A draw is a multivariate
    hypergeometric table with the same margins: the lost and gained answers of a label fall on
    its examples at random. Labels that everybody loses cannot make a group look hurt.

    Examples
    --------
    >>> found = heterogeneity([[50], [50]], [[10], [0]], [[0], [0]], rng=np.random.default_rng(0))
    >>> round(found.statistic, 2), found.p_value < 0.01
    (3.32, True)
    >>> heterogeneity([[50], [50]], [[0], [0]], [[0], [0]]).p_value
    1.0
    """
    size, down, up = (np.asarray(x, dtype=np.int64) for x in (n, lost, gained))
    if size.ndim != 2 or down.shape != size.shape or up.shape != size.shape:
        raise InputError(
            f"n, lost and gained have the shapes {size.shape}, {down.shape} and {up.shape}; "
            "give three arrays of one shape (levels, labels)."
        )
    change = (up - down).astype(np.float64)
    totals = size.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(totals > 0, change.sum(axis=0) / totals, 0.0)
        second = np.where(totals > 0, (down + up).sum(axis=0) / totals, 0.0)
        spread = np.where(totals > 1, (second - mean**2) / (totals - 1), 0.0)
        deviation = np.sqrt((size * (totals - size) * spread).sum(axis=1))
        others = totals - size
        both = (size > 0) & (others > 0)
        weight = np.where(both, 1 / size + 1 / others, 0.0) / both.sum(axis=1, keepdims=True)
    weight = np.nan_to_num(weight)
    expected = (size * mean).sum(axis=1)
    varies = deviation > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(varies, (change.sum(axis=1) - expected) / deviation, np.nan)
    excess = standardised_excess(size, down, up)
    if not down.any() and not up.any():
        return _no_change(size, excess)
    if not varies.any():
        nothing = np.full(len(t), np.nan)
        return Heterogeneity(np.nan, np.nan, t, excess, nothing, 0)
    rng = np.random.default_rng() if rng is None else rng
    statistic = float(np.nanmax(np.abs(t)))
    offset = (weight * size * mean).sum(axis=1)
    reached, level_reached = 0, np.zeros(len(t))
    chunk = draws_at_once(size, down, up)
    for start in range(0, n_draws, chunk):
        draws = min(chunk, n_draws - start)
        plain, weighted = permuted_tables(size, down, up, weight, draws, rng)
        plain -= expected
        plain[:, varies] /= deviation[varies]
        largest = np.abs(plain[:, varies], out=plain[:, varies]).max(axis=1)
        reached += int(np.count_nonzero(largest >= statistic * (1 - 1e-9)))
        weighted -= offset
        level_reached += np.count_nonzero(
            np.abs(weighted, out=weighted) >= np.abs(excess) * (1 - 1e-9) - 1e-12, axis=0
        )
    excess_p = np.where(np.isnan(excess), np.nan, (1 + level_reached) / (1 + n_draws))
    return Heterogeneity(statistic, (1 + reached) / (1 + n_draws), t, excess, excess_p, n_draws)


def heterogeneity_clusters(
    unit: ArrayLike,
    level: ArrayLike,
    label: ArrayLike,
    difference: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    n_draws: int = 2_000,
    rng: np.random.Generator | None = None,
) -> Heterogeneity:
    """The same question where examples come in clusters.

    Parameters
    ----------
    unit, level, label
        Codes 0, 1, 2 … of the cluster, level and label of each example.
    difference
        Compressed right − baseline right of each example: −1, 0 or 1 (or a mean over members).
    weight
        Weight of each example; all alike if not given.
    n_draws, rng
        Permutations and their source.

    Notes
    -----
    Differences are centred by label, r = weight · (difference − weighted mean of the label), so
    that neither labels that everybody loses count nor weights that differ between levels.

    *Pure* clusters lie in one level and are moved whole: levels are permuted over them. Clusters
    are exchangeable if the level does not matter and has nothing to do with their size. To hold
    where it has (people of one group give more images), t is studentised: the variance of a
    level's sum is (1 − f)² Σ_inside R² + f² Σ_outside R², R the sum of r of a cluster and f the
    level's share of examples, computed anew in every draw. With under 20 clusters in a level
    that variance is itself uncertain, and p is a little too small.

    *Mixed* clusters have examples of several levels; there levels are permuted within the
    cluster. Its examples share whatever binds them, so they are exchangeable if the level does not
    matter, however strong the dependence; the variance is the exact one of that permutation.

    Both kinds are independent, so both are permuted at once. Label means are estimated, so the test
    is exact only up to that. `excess_p` is the permutation p of a level's own |t|, which weights
    labels by their examples; `excess` weights them equally.
    """
    cluster, group, kind = (np.asarray(x, dtype=np.int64) for x in (unit, level, label))
    change = np.asarray(difference, dtype=np.float64)
    n_levels, n_labels = int(group.max()) + 1, int(kind.max()) + 1
    cells = group * n_labels + kind
    mass = np.ones(change.size) if weight is None else np.asarray(weight, dtype=np.float64)
    shape = (n_levels, n_labels)
    size = np.bincount(cells, weights=mass, minlength=n_levels * n_labels).reshape(shape)
    total = np.bincount(cells, weights=mass * change, minlength=n_levels * n_labels).reshape(shape)
    excess = standardised_excess(size, np.zeros_like(total), total)
    if not change.any():
        return _no_change(size, excess)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nan_to_num(total.sum(axis=0) / size.sum(axis=0))
    centred = mass * (change - mean[kind])
    lowest = np.full(int(cluster.max()) + 1, n_levels, dtype=np.int64)
    highest = np.full(lowest.size, -1, dtype=np.int64)
    np.minimum.at(lowest, cluster, group)
    np.maximum.at(highest, cluster, group)
    within = (lowest != highest)[cluster]
    whole = PureClusters(cluster[~within], group[~within], centred[~within], n_levels)
    inner = MixedClusters(cluster[within], group[within], centred[within], n_levels)

    def studentised(sums: Floats, variance: Floats) -> Floats:
        variance = variance + inner.variance
        varies = variance > 1e-12
        return np.where(varies, sums / np.sqrt(np.where(varies, variance, 1.0)), np.nan)

    sums, variance = whole.observed()
    t = studentised(sums + inner.observed(), variance)
    if np.isnan(t).all():
        return Heterogeneity(np.nan, np.nan, t, excess, np.full(n_levels, np.nan), 0)
    rng = np.random.default_rng() if rng is None else rng
    statistic = float(np.nanmax(np.abs(t)))
    reached, level_reached = 0, np.zeros(n_levels)
    for sums, variance in zip(*whole.permuted(rng, n_draws), strict=True):
        drawn = np.nan_to_num(np.abs(studentised(sums + inner.permuted(rng), variance)))
        reached += bool(drawn.max() >= statistic * (1 - 1e-9))
        level_reached += drawn >= np.abs(t) * (1 - 1e-9)
    excess_p = np.where(np.isnan(t), np.nan, (1 + level_reached) / (1 + n_draws))
    return Heterogeneity(statistic, (1 + reached) / (1 + n_draws), t, excess, excess_p, n_draws)


def _no_change(size: NDArray[Any], excess: Floats) -> Heterogeneity:
    """Identical answers everywhere: nothing differs, and that is known without a draw."""
    t = np.where(size.any(axis=1), 0.0, np.nan)
    return Heterogeneity(0.0, 1.0, t, excess, np.where(np.isnan(excess), np.nan, 1.0), 0)
