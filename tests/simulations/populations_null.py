"""Whole audits of populations in which compressed members are drawn like dense ones."""

from __future__ import annotations

import numpy as np

import fairweight as fw

from .measured import Share, share, stored
from .populations import Design, Latent, latent

GROUPS = 4
PER_GROUP = 150
AUDITS, SEED = 60, 1351
_BY_GROUP = np.array([[1.9], [1.7], [1.5], [1.3]])

# Groups and classes differ in how hard they are; members differ in general and by group.
WORLDS = {
    "2 classes": latent(
        GROUPS,
        2,
        margin=_BY_GROUP + np.array([0.1, -0.1]),
        member=0.1,
        member_group=0.05,
    ),
    "5 classes": latent(
        GROUPS,
        5,
        margin=_BY_GROUP + np.linspace(-0.3, 0.3, 5),
        member=0.1,
        member_group=0.05,
    ),
}


def audited(world: Latent, design: Design, rng: np.random.Generator, seed: int) -> fw.Audit:
    """A small audit of one null population; members have the seeds 0, 1, 2 … on both sides."""
    sample = world.sample(design, np.full(GROUPS, PER_GROUP), rng)
    k = design.n_dense
    half = rng.integers(0, 2, len(sample.label))
    return fw.audit(
        sample.label,
        {"dense": sample.prediction[:, :k], "compressed": sample.prediction[:, k:]},
        sensitive_features={"group": sample.columns[0].code, "half": half},
        positive=1 if world.n_labels == 2 else None,
        n_boot=50,
        random_state=seed,
    )


@stored
def context(name: str, design: Design, audits: int = AUDITS) -> dict[str, tuple[Share, int]]:
    """Share of quantities above their floor, and with p <= .05; with the number of quantities."""
    world = WORLDS[name]
    rng = np.random.default_rng([SEED, *design.key])
    above, small = [], []
    rows = 0
    for i in range(audits):
        results = audited(world, design, rng, i).results
        results = results[results["scope"] == "method"]
        known = results[["matched", "noise_floor"]].notna().all(axis=1)
        rows = max(rows, int(known.sum()))
        above.append((results["matched"] > results["noise_floor"])[known].to_numpy(float))
        p_value = results["p_retraining"].dropna()
        small.append((p_value <= 0.05).to_numpy(float))
    return {"above the floor": (share(above), rows), "p ≤ .05": (share(small), rows)}
