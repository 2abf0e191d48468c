"""Gaps, about the method: members drawn again, a two-way t of members' values, or both."""

from __future__ import annotations

from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

from fairweight.auditing.compare import replicates
from fairweight.auditing.compare.bootstrap import drawn_with_members, method_limits, two_way_values
from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.estimands import Estimand
from fairweight.auditing.compare.replicates import Replicated, replicate
from fairweight.base.types import Limits

from .audits import chosen, covers
from .latent import Floats
from .measured import Share, share, stored
from .populations import (
    Design,
    Latent,
    compared,
    latent,
    of_groups,
)

NAMES = ("group_gap", "worst_group", "group_std")
THE_AUDITS = "wider of both"
LEVELS = np.array([0.05])
GROUPS = 4
AUDITS, DRAWS, SEED = 300, 200, 1311

WORLDS = {
    # Accuracies of 93, 90, 86 and 82 %, and the weakest loses most.
    "clear": latent(
        GROUPS,
        margin=[[1.9], [1.65], [1.4], [1.18]],
        harm=[[0.0], [0.05], [0.1], [0.2]],
        member_group=0.05,
    ),
    # All groups are alike, and nothing happens: a gap is noise alone.
    "alike": latent(GROUPS, member_group=0.05),
    # All groups are alike until one of them loses 4 points.
    "emerging": latent(GROUPS, harm=[[0.0], [0.0], [0.0], [0.27]], member_group=0.05),
    # As "clear", but retraining moves a group by 3 points and compression by one or two more:
    # members, not examples, limit what is known.
    "far": latent(
        GROUPS,
        margin=[[1.9], [1.65], [1.4], [1.18]],
        harm=[[0.0], [0.05], [0.1], [0.2]],
        member_group=0.2,
        step=0.1,
        step_group=0.1,
    ),
}

CASES = (
    *(("clear", 500, k) for k in (3, 5, 10)),
    *(("far", 2000, k) for k in (3, 5, 10)),
    ("emerging", 500, 5),
    ("emerging", 2000, 5),
)


def _members_drawn(c: Comparison, q: Estimand, r: Replicated) -> Limits:
    limits = drawn_with_members(c, q, r, LEVELS, "change")
    assert limits is not None
    return limits


def _two_way_t(c: Comparison, q: Estimand, r: Replicated) -> Limits:
    return two_way_values(c, q, r, "change").limits(LEVELS[:, None])


def _of_the_audit(c: Comparison, q: Estimand, r: Replicated) -> Limits:
    return method_limits(c, q, r, LEVELS, "change")


RULES = {"members drawn": _members_drawn, "two-way t": _two_way_t, THE_AUDITS: _of_the_audit}


@dataclass(frozen=True)
class Interval:
    coverage: Share
    width: float  # mean width
    bias: float  # mean of the estimates less the truth


@stored
def truths(name: str, members: int = 400_000, seed: int = 1310) -> dict[str, float]:
    """True shifts: the mean over very many members of each member's own value."""
    world = WORLDS[name]
    skills = world.skills(Design(members, members), np.random.default_rng(seed))
    dense, compressed = (of_groups(rates, world.share) for rates in world.rates_of(skills))
    of = {
        "group_gap": np.ptp,
        "worst_group": np.min,
        "group_std": np.std,
    }
    return {
        metric: float(np.mean(f(compressed, axis=1)) - np.mean(f(dense, axis=1)))
        for metric, f in of.items()
    }


@stored
def gaps(
    name: str,
    design: Design,
    per_group: int = 500,
    audits: int = AUDITS,
) -> dict[tuple[str, str], Interval]:
    """Coverage and width, by metric and rule."""
    world, truth = WORLDS[name], truths(name)
    rng = np.random.default_rng([SEED, per_group, *design.key])
    limits: dict[tuple[str, str], list[Floats]] = {(m, r): [] for m in NAMES for r in RULES}
    for i in range(audits):
        for at, found in _audit(world, design, per_group, rng, i).items():
            limits[at].append(found)
    made = {}
    for (metric, rule), found in limits.items():
        low, high, estimate = np.array(found).T
        made[metric, rule] = Interval(
            share(covers(low, np.array(truth[metric]), high)),
            float(np.mean(high - low)),
            float(np.mean(estimate) - truth[metric]),
        )
    return made


def _audit(
    world: Latent, design: Design, per_group: int, rng: np.random.Generator, i: int
) -> dict[tuple[str, str], Floats]:
    """Low end, high end and estimate of one population, by metric and rule."""
    sample = world.sample(design, np.full(GROUPS, per_group), rng)
    c = compared(sample, design, i, n_boot=DRAWS, positive=1)
    wanted = chosen(c, [(metric, "grouping") for metric in NAMES])
    # The swap null is about these models, not about the method.
    with patch.object(replicates, "partners_of", lambda c: None):
        found = replicate(c, wanted)
    rows = {}
    for q, r in zip(wanted, found, strict=True):
        for rule, limits_of in RULES.items():
            low, high = limits_of(c, q, r)
            rows[q.metric.name, rule] = np.array(
                [low.item(), high.item(), r.observed.change.item()]
            )
    return rows
