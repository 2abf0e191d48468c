"""Populations with every true value known: several members per side, one latent model.

Example i has difficulty d_i ~ N(0, 1), member m has skill a_m ~ N(0, `member`²), skill in group g
b_mg ~ N(0, `member_group`²), and luck on example i e_mi ~ N(0, `luck`²). It answers rightly where

    margin[group, label] − d_i + a_m + b_mg + e_mi > 0.

A compressed member's margin is lower by `harm[group, label]`, and compression moves its skill by
steps of its own: N(0, `step`²), and N(0, `step_group`²) in every group. A child has its parent's a
and b and a share `kept` of the variance of its parent's luck; members of independent populations
share nothing. A wrong answer is the example's own second choice, the same for every member; near
classes are the second choice more often.

All of this is normal, so the mean over new members and new examples (what scope `method` speaks
of) is Φ(margin / √(1 + member² + member_group² + luck²)), with the steps' variances added for
compressed members, and that of given members over new
examples (scope `model`) is Φ((margin + a_m + b_mg) / √(1 + luck²)). With a luck of .8 and
accuracies of 90 %, two members trained from different seeds disagree in who is right on 12 % of the
examples, a child and its parent on 5 %; a skill of .05 moves a member's accuracy by .7 points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from fairweight.auditing.compare.comparison import Comparison, Options, comparison
from fairweight.auditing.counts.cube import Cube, CubeMember

from .latent import Floats, cube

RIGHT_9_OF_10 = 1.65  # margin of about 90 % accuracy at the default luck


@dataclass(frozen=True)
class Design:
    """How many members there are, and which of them belong together."""

    n_dense: int
    n_compressed: int
    related: bool = False  # child i descends from dense member i
    paired: str = "independent"  # what the audit is told: parent, seed or independent

    @property
    def key(self) -> tuple[int, ...]:
        """Part of the seed, so that every design has random numbers of its own."""
        told = ("parent", "seed", "independent").index(self.paired)
        return self.n_dense, self.n_compressed, told

    def __str__(self) -> str:
        told = {"parent": "by parent", "seed": "by seed, unrelated"}.get(self.paired, "independent")
        return f"{self.n_dense} + {self.n_compressed}, {told}"


def children(k: int) -> Design:
    """k compressed members, each with its dense parent."""
    return Design(k, k, related=True, paired="parent")


def same_seeds(k: int) -> Design:
    """k and k members that share nothing but the names of their seeds."""
    return Design(k, k, paired="seed")


def unrelated(n_dense: int, n_compressed: int) -> Design:
    return Design(n_dense, n_compressed)


@dataclass(frozen=True)
class Skills:
    """Margins that members add to everyone's, (members, groups)."""

    dense: Floats
    compressed: Floats


@dataclass(frozen=True)
class Latent:
    margin: Floats  # (groups, labels)
    harm: Floats  # (groups, labels)
    share: Floats  # of each label within every group
    member: float = 0.05
    member_group: float = 0.0
    luck: float = 0.8
    step: float = 0.0
    step_group: float = 0.0
    kept: float = 0.7

    @property
    def n_groups(self) -> int:
        return self.margin.shape[0]

    @property
    def n_labels(self) -> int:
        return self.margin.shape[1]

    @cached_property
    def second(self) -> Floats:
        """(labels, labels): which class is the second choice; rows sum to 1."""
        distance = np.abs(np.arange(self.n_labels)[:, None] - np.arange(self.n_labels))
        weight = np.where(distance > 0, 1 / np.maximum(distance, 1), 0.0)
        chance: Floats = weight / weight.sum(axis=1, keepdims=True)
        return chance

    def rates(self) -> tuple[Floats, Floats]:
        """True chance to be right over new members and examples, (groups, labels) each."""
        spread = 1 + self.member**2 + self.member_group**2 + self.luck**2
        return (
            ndtr(self.margin / np.sqrt(spread)),
            ndtr((self.margin - self.harm) / np.sqrt(spread + self.step**2 + self.step_group**2)),
        )

    def rates_of(self, skills: Skills) -> tuple[Floats, Floats]:
        """The same of these members over new examples, (members, groups, labels) each."""
        scale = np.sqrt(1 + self.luck**2)
        return (
            ndtr((self.margin + skills.dense[..., None]) / scale),
            ndtr((self.margin - self.harm + skills.compressed[..., None]) / scale),
        )

    def skills(self, design: Design, rng: np.random.Generator) -> Skills:
        """The luck of training."""

        def drawn(k: int, alike: float, by_group: float) -> Floats:
            own = by_group * rng.standard_normal((k, self.n_groups))
            made: Floats = alike * rng.standard_normal((k, 1)) + own
            return made

        dense = drawn(design.n_dense, self.member, self.member_group)
        other = drawn(design.n_compressed, self.member, self.member_group)
        step = drawn(design.n_compressed, self.step, self.step_group)
        return Skills(dense, (dense if design.related else other) + step)

    def sample(
        self,
        design: Design,
        sizes: ArrayLike,
        rng: np.random.Generator,
        skills: Skills | None = None,
    ) -> Cube:
        """The predictions of one population on `sizes` new examples of every group."""
        skills = self.skills(design, rng) if skills is None else skills
        group = np.repeat(np.arange(self.n_groups), sizes)
        n = len(group)
        label = rng.choice(self.n_labels, size=n, p=self.share)
        eased = self.margin[group, label] - rng.standard_normal(n)
        dense_luck = rng.standard_normal((design.n_dense, n))
        luck = rng.standard_normal((design.n_compressed, n))
        if design.related:
            luck = np.sqrt(self.kept) * dense_luck + np.sqrt(1 - self.kept) * luck
        right = np.concatenate(
            [
                eased + skills.dense[:, group] + self.luck * dense_luck > 0,
                eased - self.harm[group, label] + skills.compressed[:, group] + self.luck * luck
                > 0,
            ]
        )
        until = np.cumsum(self.second, axis=1)[label]
        wrong = (rng.random(n)[:, None] > until).sum(axis=1)
        prediction = np.where(right.T, label[:, None], wrong[:, None])
        return replace(cube(group, label, prediction), members=members_of(design))


def latent(
    groups: int,
    labels: int = 2,
    *,
    margin: ArrayLike = RIGHT_9_OF_10,
    harm: ArrayLike = 0.0,
    member: float = 0.05,
    member_group: float = 0.0,
    step: float = 0.0,
    step_group: float = 0.0,
) -> Latent:
    """Margins and harm broadcast over (groups, labels); labels are equally frequent."""
    shape = (groups, labels)
    return Latent(
        margin=np.broadcast_to(np.asarray(margin, float), shape),
        harm=np.broadcast_to(np.asarray(harm, float), shape),
        share=np.full(labels, 1 / labels),
        member=member,
        member_group=member_group,
        step=step,
        step_group=step_group,
    )


def compared(
    sample: Cube, design: Design, seed: int, *, n_boot: int = 2, positive: int | None = None
) -> Comparison:
    """The comparison that an audit of this population makes; `seed` must differ between audits."""
    parents = {}
    if design.paired == "parent":
        parents = {("compressed", str(i)): ("dense", str(i)) for i in range(design.n_dense)}
    return comparison(
        sample,
        baseline="dense",
        variant="compressed",
        task=None,
        grouping_names=("group",),
        positive=positive,
        options=Options(n_boot=max(n_boot, 20), random_state=seed),
        parents=parents,
    )


def members_of(design: Design) -> tuple[CubeMember, ...]:
    """Names of all members, as the audit sees them."""
    first = 0 if design.paired in ("parent", "seed") else design.n_dense
    return (
        *(CubeMember("dense", str(i)) for i in range(design.n_dense)),
        *(CubeMember("compressed", str(first + i)) for i in range(design.n_compressed)),
    )


def of_groups(rates: Floats, share: Floats) -> NDArray[np.float64]:
    """Accuracy of every group from rates by group and label."""
    made: Floats = rates @ share
    return made
