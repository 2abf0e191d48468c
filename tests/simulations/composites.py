"""Numbers without a closed form: coverage of their bootstraps, level of the swap null."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np

from fairweight.auditing.compare import bootstrap
from fairweight.auditing.compare.harm import worst_shifts
from fairweight.auditing.compare.rows import build
from fairweight.auditing.intervals.bootstrap import bias_corrected

from .audits import chosen, covers, rate, replicated, value_block
from .latent import HARD, Floats, World, compared, world
from .measured import Share, share, stored

CLASSES = 10
NEVER_NEGATIVE = ("cev", "sde", "cev_pp", "sde_pp")
WANTED = (
    *((name, "overall") for name in NEVER_NEGATIVE),
    ("kappa", "overall"),
    ("precision", "class"),
    *((name, "grouping") for name in ("group_gap", "worst_group", "group_std")),
)


def uneven(strength: float = 1.0) -> World:
    """Ten classes and four groups: some are harder, and some lose more (0 to 10 points)."""
    class_harm = np.linspace(0, 0.25, CLASSES)[[3, 7, 0, 9, 5, 1, 8, 2, 6, 4]]
    group_harm = np.array([[0.0], [0.02], [0.05], [0.1]])
    return world(
        4,
        CLASSES,
        hard=np.array([[0.7], [0.9], [1.1], [1.3]]) * np.linspace(0.15, 0.3, CLASSES),
        compressed=0.5 - strength * (class_harm + group_harm),
    )


def mild() -> World:
    """The same with a quarter of the loss."""
    return uneven(0.25)


def unchanged() -> World:
    """The same classes and groups, and two models that differ like retrained ones."""
    return uneven(0.0)


WORLDS = {"uneven": uneven, "mild": mild, "unchanged": unchanged}


def truths(of: World) -> dict[str, np.ndarray]:
    """The true value (or shift) of every wanted quantity."""
    c = compared(of.whole(), 0, n_boot=20)
    wanted = chosen(c, WANTED)
    found = replicated(c, wanted)
    return {q.metric.name: r.observed.change[0] for q, r in zip(wanted, found, strict=True)}


@stored
def coverage(
    name: str, per_class: int, audits: int = 300, n_boot: int = 500, seed: int = 1201
) -> dict[str, Share]:
    """Examples are sampled from everyone, on average `per_class` of each class.

    The audit withholds the intervals of CEV and SDE where a class has under 1,000 examples; here
    it is made to show them, so that one can see why.
    """
    rng = np.random.default_rng([seed, per_class])
    sampled = WORLDS[name]()
    truth = truths(sampled)
    covered: dict[str, list[Floats]] = {metric: [] for metric, _ in WANTED}
    for i in range(audits):
        c = compared(sampled.cube(sampled.draw(per_class * CLASSES, rng)), i, n_boot=n_boot)
        wanted = chosen(c, WANTED)
        for q, r in zip(wanted, replicated(c, wanted), strict=True):
            with patch.object(bootstrap, "ENOUGH_PER_CLASS", 0):
                row = value_block(c, q, r)
            covered[q.metric.name].append(
                covers(row["ci_low"], truth[q.metric.name], row["ci_high"])
            )
    return {metric: share(found) for metric, found in covered.items()}


@stored
def inflation(
    per_class: int, audits: int = 200, n_boot: int = 200, seed: int = 1202
) -> tuple[float, float, float]:
    """True CEV of the uneven world, its mean estimate, and the mean of `debiased` (0 if null)."""
    rng = np.random.default_rng([seed, per_class])
    sampled = uneven()
    plain, corrected = [], []
    for i in range(audits):
        c = compared(sampled.cube(sampled.draw(per_class * CLASSES, rng)), i, n_boot=n_boot)
        wanted = chosen(c, [("cev", "overall")])
        (found,) = replicated(c, wanted)
        estimate, replicates = found.observed.change[0], found.bootstrap.drawn("change")
        plain.append(float(estimate[0]))
        corrected.append(float(bias_corrected(estimate, replicates)[0]))
    return float(truths(sampled)["cev"][0]), float(np.mean(plain)), float(np.mean(corrected))


@stored
def swap_level(
    per_class: int = 300, audits: int = 800, n_boot: int = 199, seed: int = 1203
) -> dict[str, Share]:
    """P(p <= .05) where the two models' answers may be exchanged."""
    rng = np.random.default_rng(seed)
    sampled = unchanged()
    found: dict[str, list[float]] = {metric: [] for metric, _ in WANTED}
    for i in range(audits):
        c = compared(sampled.cube(sampled.draw(per_class * CLASSES, rng)), i, n_boot=n_boot)
        wanted = chosen(c, WANTED)
        for q, r in zip(wanted, replicated(c, wanted), strict=True):
            found[q.metric.name].append(float(np.mean(value_block(c, q, r)["p_value"] <= 0.05)))
    return {metric: share(happened) for metric, happened in found.items()}


TEN_GROUPS = {
    "all lose 2 points": np.full(10, 0.02),
    "one loses 8 points, the others 2": np.array([0.08] + [0.02] * 9),
    "from 0 to 9 points": np.linspace(0, 0.09, 10),
}


@stored
def worst_group(
    name: str, per_group: int = 500, audits: int = 600, seed: int = 1204
) -> dict[str, Share]:
    """Ten groups: limits of the worst shift, and the plain interval of whichever looks worst."""
    rng = np.random.default_rng(seed)
    sampled = world(10, 2, compressed=(0.5 - TEN_GROUPS[name] / HARD)[:, None])
    shifts = sampled.shift
    simultaneous, pointwise = [], []
    for i in range(audits):
        c = compared(sampled.cube(sampled.draw_per_group(per_group, rng)), i, positive=1)
        groups = rate(c, "accuracy", "group")
        ((family, _),) = worst_shifts(c, [groups])
        row = build(c, family)
        simultaneous.append(covers(row["ci_low"], shifts.min(), row["ci_high"]))
        worst = int(np.argmin(groups.block["shift"]))
        low, high = (groups.block[side][worst] for side in ("ci_low", "ci_high"))
        pointwise.append(covers(low, shifts[worst], high))
    return {"simultaneous": share(simultaneous), "pointwise": share(pointwise)}
