"""How often the gate passes at the sizes that `fairweight plan` states, through whole audits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import fairweight as fw

from ..few_metrics import only
from .measured import Share, share, stored

WORLD_SEED = 4107
MARGIN = 0.03
POLICY = {"rule": [{"metric": "accuracy", "by": "group", "margin": MARGIN}]}
# Groups with their churn: a quiet one, a usual one, and a hard one.
CHURNS = {"quiet": 0.01, "usual": 0.03, "hard": 0.10}


def audited(seed: int, sizes: Mapping[str, int], loss: float, people: int | None) -> fw.Audit:
    """A world: every example is lost, gained or as before, half of them with their person."""
    rng = np.random.default_rng([WORLD_SEED, seed, *sizes.values()])
    group = np.repeat(list(sizes), list(sizes.values()))
    churn = np.repeat([CHURNS[name] for name in sizes], list(sizes.values()))
    y, u, cluster = np.arange(len(group)) % 2, rng.random(len(group)), None
    if people is not None:
        cluster = np.arange(len(group)) // people
        u = np.where(rng.random(len(group)) < 0.5, rng.random(len(group))[cluster], u)
    lost, changed = u < (churn + loss) / 2, u < churn
    both = {"dense": np.where(changed & ~lost, 1 - y, y), "int8": np.where(lost, 1 - y, y)}
    with only({"accuracy", "harmful_flips", "helpful_flips"}):  # a pilot tells its churn
        return fw.audit(y, both, sensitive_features={"who": group}, cluster=cluster, n_boot=20)


@stored
def planned_passes(loss: float, part: float, audits: int = 400) -> Share:
    """Passes at a part of the sizes that are planned for three groups of known churn."""
    sizes = {}
    for name, churn in CHURNS.items():
        made = fw.plan(margin=MARGIN, churn=churn, n_groups=3, expected_loss=loss)
        sizes[name] = max(100, round(part * made.rows["n_needed"].iloc[0]))
    return share(audited(k, sizes, loss, None).gate(POLICY).passed for k in range(audits))


@stored
def piloted_passes(people: int | None, audits: int = 200) -> Share:
    """Passes at the sizes that pilots of 3,000 give, each pilot with ten audits after it."""
    found = []
    for pilot in range(audits // 10):
        first = audited(10_000 + pilot, dict.fromkeys(CHURNS, 1000), 0.0, people)
        rows = fw.plan(first, margin=MARGIN).rows
        names = rows["group"].str.removeprefix("who=")
        sizes = dict(zip(names, rows["n_needed"].astype(int), strict=True))
        found += [
            audited(10 * pilot + k, sizes, 0.0, people).gate(POLICY).passed for k in range(10)
        ]
    return share(found)
