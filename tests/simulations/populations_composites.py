"""CEV and SDE in points, about the method: members drawn again, members relabelled."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np

from fairweight.auditing.compare import bootstrap, replicates
from fairweight.auditing.compare.bootstrap import drawn_family
from fairweight.auditing.compare.replicates import replicate
from fairweight.auditing.compare.rows import build
from fairweight.auditing.counts.counts import Counts
from fairweight.auditing.metrics.registry import metric

from .audits import chosen, covers
from .latent import Floats
from .measured import Share, share, stored
from .populations import Design, Latent, children, compared, latent, same_seeds, unrelated

NAMES = ("cev_pp", "sde_pp")
CLASSES = 10
AUDITS, DRAWS, SEED = 200, 200, 1331
NULL_AUDITS, NULL_SEED = 1000, 1332

_MARGIN = np.linspace(1.2, 2.0, CLASSES)
_HARM = np.linspace(0, 0.5, CLASSES)[[3, 7, 0, 9, 5, 1, 8, 2, 6, 4]]
WORLDS = {
    # Classes lose from 0 to 12 points.
    "uneven": latent(1, CLASSES, margin=_MARGIN, harm=_HARM, step=0.05),
    "mild": latent(1, CLASSES, margin=_MARGIN, harm=_HARM / 4, step=0.05),
    "unchanged": latent(1, CLASSES, margin=_MARGIN),
}

COVERED = (children(5), unrelated(5, 5), children(10), unrelated(10, 10))
# Five pairs have 32 relabellings, which come in pairs of equal values: p is never below 2 / 32.
RELABELLED = (unrelated(5, 5), children(10), same_seeds(10), unrelated(10, 10))


def truths(world: Latent) -> dict[str, float]:
    """The formulas on the true rates over new members and examples."""

    def counts(right: Floats) -> Counts:
        label = world.share
        false = (label * (1 - right)) @ world.second
        parts = (label, label * right + false, label * right)
        true, said, correct = (part[None, None, None, :] for part in parts)
        names = tuple(str(i) for i in range(CLASSES))
        return Counts(true, said, correct, np.zeros((1, 1, 1)), names, None)

    first, second = (counts(rates[0]) for rates in world.rates())
    return {name: float(np.ravel(metric(name).function(first, second))[0]) for name in NAMES}


@stored
def coverage(
    name: str,
    design: Design,
    per_class: int = 1000,
    audits: int = AUDITS,
) -> dict[str, Share]:
    """Coverage of the basic interval; classes have on average `per_class` examples."""
    world = WORLDS[name]
    truth = truths(world)
    rng = np.random.default_rng([SEED, per_class, *design.key])
    inside: dict[str, list[Floats]] = {metric: [] for metric in NAMES}
    for i in range(audits):
        c = compared(world.sample(design, [per_class * CLASSES], rng), design, i, n_boot=DRAWS)
        wanted = chosen(c, [(metric, "overall") for metric in NAMES])
        # Classes vary in size about `per_class`: the audit would withhold every other interval.
        with patch.object(bootstrap, "ENOUGH_PER_CLASS", 0):
            for q, r in zip(wanted, replicate(c, wanted), strict=True):
                row = build(c, drawn_family(c, q, r, "method"), "method")
                inside[q.metric.name].append(
                    covers(row["ci_low"], truth[q.metric.name], row["ci_high"])
                )
    return {metric: share(found) for metric, found in inside.items()}


@stored
def relabelling(
    design: Design, per_class: int = 100, audits: int = NULL_AUDITS
) -> dict[str, Share]:
    """P(p <= .05) where compressed members are drawn like dense ones."""
    world = WORLDS["unchanged"]
    rng = np.random.default_rng([NULL_SEED, per_class, *design.key])
    found: dict[str, list[bool]] = {metric: [] for metric in NAMES}
    for i in range(audits):
        c = compared(world.sample(design, [per_class * CLASSES], rng), design, i, n_boot=20)
        wanted = chosen(c, [(metric, "overall") for metric in NAMES])
        with patch.object(replicates, "partners_of", lambda c: None):
            made = replicate(c, wanted)
        for q, r in zip(wanted, made, strict=True):
            found[q.metric.name].append(bool(r.context["p_retraining"][0] <= 0.05))
    return {metric: share(happened) for metric, happened in found.items()}
