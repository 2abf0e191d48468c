"""What retraining alone does: splits of the baseline's members, and relabellings of all members.

Weights are (draws, members): row d of the first matrix averages the members that stand for the
baseline in draw d, row d of the second those that stand for the compressed variant.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats

Weights: TypeAlias = tuple[Floats, Floats]

FEWEST_MEMBERS = 5  # below this there are too few splits for a quantile
FEWEST_RELABELLINGS = 20
MOST_SPLITS = 200
MOST_RELABELLINGS = 2_000
QUANTILE = 0.95


def matched_size(n_baseline: int, n_compressed: int) -> int:
    """k = min(⌊S/2⌋, K_c): the members on either side of a split.

    >>> matched_size(5, 10), matched_size(10, 3)
    (2, 3)
    """
    return min(n_baseline // 2, n_compressed)


def splits(n_baseline: int, k: int, rng: np.random.Generator) -> Weights:
    """Two disjoint sets of k baseline members: every ordered pair, or 200 random ones.

    Both orders of a split are kept: CEV and SDE are not symmetric in their two sides.

    >>> first, second = splits(5, 2, np.random.default_rng(0))
    >>> len(first), bool(((first > 0) & (second > 0)).any())
    (30, False)
    """
    if comb(n_baseline, k) * comb(n_baseline - k, k) // 2 <= MOST_SPLITS:
        chosen = [
            (one, other)
            for one in combinations(range(n_baseline), k)
            for other in combinations([m for m in range(n_baseline) if m not in one], k)
        ]
    else:
        found: dict[tuple[tuple[int, ...], tuple[int, ...]], None] = {}
        while len(found) < MOST_SPLITS:
            order = [int(m) for m in rng.permutation(n_baseline)[: 2 * k]]
            found[tuple(sorted(order[:k])), tuple(sorted(order[k:]))] = None
        chosen = list(found)
    return (
        _averages([one for one, _ in chosen], n_baseline),
        _averages([other for _, other in chosen], n_baseline),
    )


def matched_draws(n_baseline: int, n_compressed: int, k: int, rng: np.random.Generator) -> Weights:
    """k baseline members and k compressed ones, 200 times; weights over each side's own members."""
    drawn = [
        (tuple(rng.permutation(n_baseline)[:k]), tuple(rng.permutation(n_compressed)[:k]))
        for _ in range(MOST_SPLITS)
    ]
    return (
        _averages([one for one, _ in drawn], n_baseline),
        _averages([other for _, other in drawn], n_compressed),
    )


def sign_flips(n_pairs: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which pairs change sides, (draws, pairs): all ways but the one observed, or 2,000 random.

    >>> sign_flips(2, np.random.default_rng(0)).tolist()
    [[False, True], [True, False], [True, True]]
    """
    if 2**n_pairs <= MOST_RELABELLINGS:
        return np.array(list(product((False, True), repeat=n_pairs)))[1:]
    return rng.random((MOST_RELABELLINGS, n_pairs)) < 0.5


def regroupings(n_first: int, n_second: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which units stand for the baseline, (draws, units): all ways but the one observed, or 2,000.

    >>> regroupings(1, 2, np.random.default_rng(0)).tolist()
    [[False, True, False], [False, False, True]]
    """
    total = n_first + n_second
    if comb(total, n_first) <= MOST_RELABELLINGS:
        chosen = list(combinations(range(total), n_first))[1:]
    else:
        chosen = [tuple(rng.permutation(total)[:n_first]) for _ in range(MOST_RELABELLINGS)]
    drawn = np.zeros((len(chosen), total), dtype=bool)
    for row, members in zip(drawn, chosen, strict=True):
        row[list(members)] = True
    return drawn


def _averages(sets: list[tuple[int, ...]], size: int) -> Floats:
    weights = np.zeros((len(sets), size))
    for row, members in zip(weights, sets, strict=True):
        row[list(members)] = 1.0 / len(members)
    return weights
