"""What is compared: one variant against the baseline, on one task, with the options that hold."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.pairing import Pairing, Parents, pair_members
from fairweight.auditing.counts.cube import Cube, Scores, compact, with_own_classes
from fairweight.auditing.counts.groupings import Grouping, groupings, whole
from fairweight.auditing.counts.pairs import Pairs, pairs
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.counts.sums import sums
from fairweight.auditing.streams import stream

if TYPE_CHECKING:
    from fairweight.auditing.compare.retrained import Retraining
    from fairweight.auditing.compare.simultaneous import FamilyDraws, Signs

MIN_CLUSTERS = 20


@dataclass(frozen=True)
class Options:
    """Settings of an audit; every one is part of its provenance."""

    alpha: float = 0.05
    n_boot: int = 2000
    correction: str = "holm"
    min_group: int = 10
    random_state: int = 0
    zero_baseline: str = "drop"
    margin: float = 0.02  # the loss that matters: power and equivalence are stated for it
    group_error: float = 0.0  # share of wrong group labels, if the user declares one
    exact: bool = False  # exact instead of mid-p McNemar
    members: str = "retrained"  # or "repeated": the same model run again
    confirmatory: tuple[tuple[str, str], ...] = ()  # (metric, kind) that a policy names


@dataclass(frozen=True)
class Comparison:
    variant: str
    task: str | None
    cube: Cube  # baseline members first, then the variant's; one task
    n_baseline: int  # how many members are the baseline's
    positive: int | None
    whole: Grouping
    groupings: tuple[Grouping, ...]  # single columns and intersections
    options: Options
    stream: str | None = None  # comparisons with one stream share their random numbers
    parents: Parents = field(default_factory=dict)  # (variant, seed) → what it was derived from
    signs: Signs | None = None  # random signs of the whole audit
    once: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def n_compressed(self) -> int:
        return len(self.cube.members) - self.n_baseline

    @property
    def one_pair(self) -> bool:
        return self.n_baseline == 1 and self.n_compressed == 1

    @cached_property
    def pairing(self) -> Pairing:
        """Which members belong together."""
        members, k = self.cube.members, self.n_baseline
        return pair_members(members[:k], members[k:], self.parents)

    @property
    def has_method(self) -> bool:
        """Whether there are members enough to speak of the method, not only of these models."""
        return not self.one_pair and self.pairing.reason is None

    @cached_property
    def unit_weights(self) -> tuple[Floats, Floats]:
        """How much each member of either side counts where units are averaged."""
        k = self.n_baseline
        return self.pairing.first.mean(axis=0)[:k], self.pairing.second.mean(axis=0)[k:]

    @property
    def all_alike(self) -> bool:
        """Whether averaging units counts every member alike."""
        return all(np.allclose(w, 1 / len(w)) for w in self.unit_weights)

    @cached_property
    def retraining(self) -> Retraining:
        """Draws of members for the context from retraining."""
        from fairweight.auditing.compare.retrained import retraining

        return retraining(self.pairing, self.n_baseline, self.n_compressed, self.rng("retraining"))

    def draws(self, kind: str) -> FamilyDraws | None:
        """Random signs of the family of classes, groups or intersections; None without them."""
        if self.signs is None or self.options.correction != "holm":
            return None
        return self.signs.families.get((self.variant, self.task, kind))

    @property
    def closed_form(self) -> bool:
        """Whether examples are single yes-or-no trials: Wilson, Tango and McNemar apply."""
        return self.one_pair and self.one_each

    @property
    def one_each(self) -> bool:
        """Whether what is sampled are single examples of weight 1."""
        return self.cube.weight is None and self.cube.unit is None

    @property
    def clustered(self) -> bool:
        return self.cube.unit is not None

    @property
    def classes(self) -> tuple[str, ...]:
        return self.cube.label_classes

    @cached_property
    def pairs(self) -> dict[str, Pairs]:
        """Paired counts by the grouping's name, of the first members of both sides."""
        return {
            g.name: pairs(self.cube, g, 0, self.n_baseline) for g in (self.whole, *self.groupings)
        }

    @property
    def n_clusters(self) -> float:
        """Number of clusters; NaN without clusters."""
        unit = self.cube.unit
        if unit is None or not self.cube.unit_is_cluster:
            return np.nan
        return float(len(np.unique(unit)))

    def clusters_by_level(self, grouping: Grouping) -> NDArray[np.float64]:
        """Number of clusters in every level of a grouping; NaN without clusters."""
        unit, size = self.cube.unit, len(grouping.levels)
        if unit is None or not self.cube.unit_is_cluster:
            return np.full(size, np.nan)
        level = np.unique(unit * size + grouping.code) % size
        return np.bincount(level, minlength=size).astype(np.float64)

    def rng(self, purpose: str) -> np.random.Generator:
        """Random numbers of their own for each variant, task and purpose.

        They depend on names, not on order, so a variant's numbers are the same whichever other
        variants are audited beside it.
        """
        which = f"task {self.task or ''}" if self.stream is None else self.stream
        return stream(self.options.random_state, self.variant, which, purpose)

    def usable(self, grouping: Grouping) -> NDArray[np.bool_]:
        """Levels that enter gaps and families: large enough, and not the missing one."""
        n = sums(grouping.code, self.cube.count, len(grouping.levels))
        enough: NDArray[np.bool_] = (n >= self.options.min_group) & ~grouping.missing
        if self.cube.unit_is_cluster and self.cube.unit is not None:
            enough &= self.clusters_by_level(grouping) >= MIN_CLUSTERS
        return enough


def comparison(
    cube: Cube,
    *,
    baseline: str,
    variant: str,
    task: str | None,
    grouping_names: tuple[str, ...],
    positive: int | None,
    options: Options,
    keep_scores: bool = False,
    keep_units: bool = False,
    stream: str | None = None,
    parents: Parents | None = None,
    signs: Signs | None = None,
) -> Comparison:
    """Project the cube on the members of two variants, and merge the cells that become equal.

    Within one task an example is one row again, so only clusters still bind rows together; with
    `keep_units` examples stay units, so that several tasks can be drawn together.
    """
    members = cube.member_indices(baseline) + cube.member_indices(variant)
    loose = task is not None and not cube.unit_is_cluster and not keep_units
    projected = replace(
        cube.of_task(task),
        members=tuple(cube.members[m] for m in members),
    )
    projected = replace(
        projected,
        prediction=projected.prediction[:, members],
        scores=_project(projected.scores, members) if keep_scores else None,
        unit=None if loose else projected.unit,
        unit_names=() if loose else projected.unit_names,
    )
    projected = compact(with_own_classes(projected))
    return Comparison(
        variant=variant,
        task=task,
        cube=projected,
        n_baseline=len(cube.member_indices(baseline)),
        positive=positive,
        whole=whole(projected),
        groupings=groupings(projected, grouping_names),
        options=options,
        stream=stream,
        parents=parents or {},
        signs=signs,
    )


def _project(scores: Scores | None, members: list[int]) -> Scores | None:
    if scores is None:
        return None
    return replace(
        scores,
        score=None if scores.score is None else scores.score[:, members],
        vector=None if scores.vector is None else scores.vector[:, members],
        rank=None if scores.rank is None else scores.rank[:, members],
    )
