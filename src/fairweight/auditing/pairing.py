"""Which members belong together: children with their parents, equal seeds, or nobody.

A unit is what varies when a method is run again: a baseline model with everything derived from it.
Several children of one parent are one unit, because they share the parent's luck.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import comb
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.cube import CubeMember
from fairweight.base.types import Floats

Parents = Mapping[tuple[str, str], tuple[str, str]]  # (variant, seed) → what it was derived from

FEWEST = 3  # members and distinct parents per side, below which nothing is said about a method


@dataclass(frozen=True)
class Pairing:
    """Units of both sides, as weights over all members (baseline's first, then compressed)."""

    how: str  # parent, seed, independent, or single (one model against one)
    first: Floats  # (units, members): each row averages the baseline members of a unit
    second: Floats  # (units, members)
    parent: NDArray[np.intp]  # of every compressed member: its baseline member, or −1
    reason: str | None  # why scope `method` cannot be had; None where it can

    note: str | None = None  # why members that seem to belong together were not paired

    @property
    def paired(self) -> bool:
        return self.how in ("parent", "seed")

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Members whose answers are compared one by one: related ones, else every pair."""
        n_first = self.first.shape[1] - len(self.parent)
        related = [(int(p), n_first + j) for j, p in enumerate(self.parent) if p >= 0]
        if self.paired or self.how == "single":
            return related
        return [(i, n_first + j) for i in range(n_first) for j in range(len(self.parent))]

    def means(self, happens: NDArray[np.bool_] | Floats) -> tuple[Floats, Floats]:
        """Mean of either side's members over the pairs, for values (…, members)."""
        if self.paired or self.how == "single":
            first, second = self._sides(happens)
            return mean_of(first), mean_of(second)
        n_first = self.first.shape[1] - len(self.parent)
        return mean_of(happens[..., :n_first]), mean_of(happens[..., n_first:])

    def changed(self, happens: NDArray[Any]) -> Floats:
        """Share of the pairs of which one side alone has the event, for values (…, members)."""
        if self.paired or self.how == "single":
            first, second = self._sides(happens)
            return mean_of(first != second)
        before, after = self.means(happens)
        return before + after - 2 * before * after  # of every pair of two sides

    def _sides(self, happens: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Both sides of the pairs; views where members stand in the same order."""
        n_first = self.first.shape[1] - len(self.parent)
        second = happens[..., n_first:]
        if np.array_equal(self.parent, np.arange(n_first)):
            return happens[..., :n_first], second
        return happens[..., self.parent], second


def pair_members(
    first: Sequence[CubeMember], second: Sequence[CubeMember], parents: Parents
) -> Pairing:
    """By parent where it is known, else by seed where both sides have the same, else not at all."""
    place = {(m.variant, m.seed): i for i, m in enumerate(first)}
    oldest = [_oldest((m.variant, m.seed), parents, place) for m in second]
    how = "independent"
    parent = np.full(len(second), -1, dtype=np.intp)
    if len(first) == len(second) == 1:
        how, parent = "single", np.zeros(1, dtype=np.intp)
    elif all(root in place for root in oldest):
        how, parent = "parent", np.array([place[root] for root in oldest], dtype=np.intp)
    elif not any((m.variant, m.seed) in parents for m in second) and (
        sorted(m.seed for m in first) == sorted(m.seed for m in second)
    ):
        seeds = [m.seed for m in first]
        how, parent = "seed", np.array([seeds.index(m.seed) for m in second], dtype=np.intp)
    if how == "independent":
        base_units = [[i] for i in range(len(first))]
        keys = list(dict.fromkeys(oldest))
        compressed_units = [[j for j, root in enumerate(oldest) if root == key] for key in keys]
    else:
        used = [i for i in range(len(first)) if (parent == i).any()]
        base_units = [[i] for i in used]
        compressed_units = [list(np.flatnonzero(parent == i)) for i in used]
    members = len(first) + len(second)
    reason = note = None
    if len(first) == 1:
        reason = "one baseline model"
    elif min(len(first), len(second)) < FEWEST:
        reason = f"fewer than {FEWEST} members per side"
    elif min(len(base_units), len(compressed_units)) < FEWEST:
        reason = f"fewer than {FEWEST} distinct parents"
    if how == "independent" and any((m.variant, m.seed) in parents for m in second):
        known = sum(root in place for root in oldest)
        lost = next(m for m, root in zip(second, oldest, strict=True) if root not in place)
        note = (
            f"{known} of {len(second)} members of '{lost.variant}' descend from a baseline member "
            f"in the variants table (seed {lost.seed} does not): members are taken as "
            "independent, not paired with their parents."
        )
    return Pairing(
        how,
        _weights(base_units, 0, members),
        _weights(compressed_units, len(first), members),
        parent,
        reason,
        note,
    )


def _oldest(
    member: tuple[str, str], parents: Parents, baseline: Mapping[tuple[str, str], int]
) -> tuple[str, str]:
    """The nearest ancestor in the baseline, or the first of the line."""
    while member not in baseline and member in parents:
        member = parents[member]
    return member


def _weights(units: Sequence[Sequence[int]], start: int, members: int) -> Floats:
    made = np.zeros((len(units), members))
    for row, unit in zip(made, units, strict=True):
        row[[start + m for m in unit]] = 1.0 / len(unit)
    return made


def mean_of(values: NDArray[np.bool_] | Floats) -> Floats:
    """Mean over members, the last axis; of one member it is a view of numbers, not a sum."""
    if values.shape[-1] == 1:
        return values[..., 0].astype(np.float64)
    mean: Floats = values.mean(axis=-1)
    return mean


# What retraining alone does: splits of the baseline's members, and relabellings of all members.
#
# Weights are (draws, members): row d of the first matrix averages the members that stand for the
# baseline in draw d, row d of the second those that stand for the compressed variant.

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
