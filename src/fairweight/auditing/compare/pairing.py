"""Which members belong together: children with their parents, equal seeds, or nobody.

A unit is what varies when a method is run again: a baseline model with everything derived from it.
Several children of one parent are one unit, because they share the parent's luck.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.cube import CubeMember
from fairweight.auditing.counts.stats import Floats

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

    def changed(self, happens: NDArray[np.bool_]) -> Floats:
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
    elif not any((m.variant, m.seed) in parents for m in second) and _same_seeds(first, second):
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
    return Pairing(
        how,
        _weights(base_units, 0, members),
        _weights(compressed_units, len(first), members),
        parent,
        _reason(len(first), len(second), min(len(base_units), len(compressed_units))),
        _unpaired_note(second, oldest, place, parents) if how == "independent" else None,
    )


def _unpaired_note(
    second: Sequence[CubeMember],
    oldest: Sequence[tuple[str, str]],
    place: Mapping[tuple[str, str], int],
    parents: Parents,
) -> str | None:
    known = sum(root in place for root in oldest)
    if not any((m.variant, m.seed) in parents for m in second):
        return None
    lost = next(m for m, root in zip(second, oldest, strict=True) if root not in place)
    return (
        f"{known} of {len(second)} members of '{lost.variant}' descend from a baseline member in "
        f"the variants table (seed {lost.seed} does not): members are taken as independent, not "
        "paired with their parents."
    )


def _oldest(
    member: tuple[str, str], parents: Parents, baseline: Mapping[tuple[str, str], int]
) -> tuple[str, str]:
    """The nearest ancestor in the baseline, or the first of the line."""
    while member not in baseline and member in parents:
        member = parents[member]
    return member


def _same_seeds(first: Sequence[CubeMember], second: Sequence[CubeMember]) -> bool:
    return sorted(m.seed for m in first) == sorted(m.seed for m in second)


def _reason(n_first: int, n_second: int, n_units: int) -> str | None:
    if n_first == 1:
        return "one baseline model"
    if min(n_first, n_second) < FEWEST:
        return f"fewer than {FEWEST} members per side"
    if n_units < FEWEST:
        return f"fewer than {FEWEST} distinct parents"
    return None


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
