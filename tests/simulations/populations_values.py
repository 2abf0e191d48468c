"""Smooth functions of counts, about the method: the two-way t of members' bootstrapped means."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np

from fairweight.auditing.compare import replicates
from fairweight.auditing.compare.bootstrap import method_limits
from fairweight.auditing.compare.replicates import replicate

from .audits import chosen, covers
from .latent import Floats
from .measured import Share, share, stored
from .populations import Design, compared, latent

WANTED = tuple(
    (name, kind)
    for name in ("precision", "balanced_accuracy", "kappa")
    for kind in ("overall", "group")
)
PER_GROUP = 500
GROUPS = 3
AUDITS, DRAWS, SEED = 400, 200, 1321

# The positive class is harder, and each group loses differently in its two classes.
_MARGIN = [[1.8, 1.2], [1.6, 1.4], [1.4, 1.1]]
_HARM = [[0.0, 0.2], [0.1, 0.1], [0.2, 0.4]]
WORLDS = {
    "near": latent(GROUPS, margin=_MARGIN, harm=_HARM, member_group=0.03, step=0.05),
    "far": latent(GROUPS, margin=_MARGIN, harm=_HARM, member=0.2, member_group=0.1, step=0.1),
}


def of_rates(rates: Floats) -> dict[str, Floats]:
    """Every metric from the recalls of two equally frequent classes, (..., 2)."""
    right0, right1 = rates[..., 0], rates[..., 1]
    accuracy = (right0 + right1) / 2
    return {
        # Of those called positive, right1 / 2 are, and (1 − right0) / 2 are not.
        "precision": right1 / (right1 + 1 - right0),
        "balanced_accuracy": accuracy,
        # With equal classes chance agreement is ½ whatever the model says.
        "kappa": 2 * accuracy - 1,
    }


@stored
def truths(name: str, members: int = 400_000, seed: int = 1320) -> dict[tuple[str, str], Floats]:
    """True values of the compressed side, shifts and excesses: rows (value, shift, excess)."""
    world = WORLDS[name]
    skills = world.skills(Design(members, members), np.random.default_rng(seed))
    sides = world.rates_of(skills)
    groups = [of_rates(side) for side in sides]
    whole = [of_rates(side.mean(axis=1)) for side in sides]
    made = {}
    for metric in groups[0]:
        dense, compressed = (side[metric].mean(axis=0) for side in whole)
        made[metric, "overall"] = np.array([[compressed], [compressed - dense], [np.nan]])
        dense, compressed = (side[metric].mean(axis=0) for side in groups)
        others = [
            [
                of_rates(np.delete(side, g, axis=1).mean(axis=1))[metric].mean()
                for g in range(GROUPS)
            ]
            for side in sides
        ]
        shift = compressed - dense
        rest = np.subtract(others[1], others[0])
        made[metric, "group"] = np.array([compressed, shift, shift - rest])
    return made


@stored
def coverage(name: str, design: Design, audits: int = AUDITS) -> dict[tuple[str, str], Share]:
    """By metric and part: the compressed side's value, the shift, the excess (over all rows)."""
    world, truth = WORLDS[name], truths(name)
    rng = np.random.default_rng([SEED, *design.key])
    inside: dict[tuple[str, str], list[Floats]] = {}
    for i in range(audits):
        sample = world.sample(design, np.full(GROUPS, PER_GROUP), rng)
        c = compared(sample, design, i, n_boot=DRAWS, positive=1)
        wanted = chosen(c, WANTED)
        with patch.object(replicates, "partners_of", lambda c: None):
            found = replicate(c, wanted)
        for q, r in zip(wanted, found, strict=True):
            assert not q.members_drawn
            parts = ["compressed", "change"] + ["excess"] * (q.slots.kind == "group")
            values = truth[q.metric.name, q.slots.kind]
            for part, value in zip(parts, values, strict=False):
                low, high = method_limits(c, q, r, np.array([0.05]), part)
                inside.setdefault((q.metric.name, part), []).append(covers(low[0], value, high[0]))
    return {at: share(rows) for at, rows in inside.items()}
