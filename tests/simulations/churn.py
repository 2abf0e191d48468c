"""Hard groups flip more in both directions: does the audit keep its error rates there?

Worlds of section 11 of the rules, each through `fw.audit`: one group with five to ten times the
churn of the others, many small hard groups, identical groups beside one that churns, a uniform loss
beside a quiet large group, five variants that share their flips, a thousand classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fairweight as fw

from ..few_metrics import only
from .measured import Share, stored

ALPHA = 0.05
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class ChurnWorld:
    """Groups with their sizes and the chances that a prediction is lost or gained."""

    sizes: tuple[int, ...]
    lost: tuple[float, ...]
    gained: tuple[float, ...]
    variants: int = 1
    shared: float = 0.7  # share of the flips that all variants have in common
    by_class: bool = False  # groups are the classes, and there is no group column

    @property
    def shift(self) -> Numbers:
        return np.array(self.gained) - np.array(self.lost)

    @property
    def excess(self) -> Numbers:
        size, shift = np.array(self.sizes, float), self.shift
        rest = (size @ shift - size * shift) / (size.sum() - size)
        return shift - rest

    def audit(self, rng: np.random.Generator) -> fw.Audit:
        group = np.repeat(np.arange(len(self.sizes)), self.sizes)
        n = len(group)
        label = group if self.by_class else rng.integers(0, 2, n)
        other = (label + 1) % (len(self.sizes) if self.by_class else 2)
        # In both models; several variants share one baseline, and gain where it is wrong.
        accuracy = 0.6 if self.variants > 1 else 0.9
        wrong = rng.random(n) >= accuracy
        lost, gained = np.array(self.lost)[group], np.array(self.gained)[group]
        common, baseline = rng.random(n), np.where(wrong, other, label)
        models = {"dense": baseline}
        for v in range(self.variants):
            own = np.where(rng.random(n) < self.shared, common, rng.random(n))
            flip_lost, flip_gained = own < lost, (own >= lost) & (own < lost + gained)
            if self.variants > 1:
                right = baseline == label
                after = np.where(right & (own < lost / accuracy), other, baseline)
                gains = ~right & (own < gained / (1 - accuracy))
                models[f"v{v}"] = np.where(gains, label, after)
            else:
                models["dense"] = np.where(flip_lost, label, np.where(flip_gained, other, baseline))
                models["v0"] = np.where(flip_lost, other, np.where(flip_gained, label, baseline))
        names = None if self.by_class else {"g": [f"g{i:03d}" for i in group]}
        state = int(rng.integers(2**31))
        return fw.audit(label, models, sensitive_features=names, n_boot=20, random_state=state)


def hard(n: int, times: float, loss: float = 0.0) -> ChurnWorld:
    """One group of n with `times` the churn (.036) of four groups of 500; all lose `loss`."""
    own = 0.018 * times
    return ChurnWorld(
        (n, 500, 500, 500, 500), (own + loss, *[0.018 + loss] * 4), (own, *[0.018] * 4)
    )


def small_hard(loss: float = 0.0) -> ChurnWorld:
    """40 hard groups of 12 to 60 beside 10 large ones."""
    sizes = (*np.linspace(12, 60, 40).astype(int).tolist(), *[600] * 10)
    lost = (*[0.15 + loss] * 40, *[0.018 + loss] * 10)
    return ChurnWorld(sizes, lost, (*[0.15] * 40, *[0.018] * 10))


def identical() -> ChurnWorld:
    """Nothing changes in 19 groups of 200; one group of 60 churns."""
    return ChurnWorld((60, *[200] * 19), (0.15, *[0.0] * 19), (0.15, *[0.0] * 19))


def quiet() -> ChurnWorld:
    """Everybody loses 5 points: 20 groups of 30 that churn, one of 3,000 that only loses."""
    return ChurnWorld((*[30] * 20, 3_000), (*[0.20] * 20, 0.05), (*[0.15] * 20, 0.0))


def several(loss: float = 0.0) -> ChurnWorld:
    """Five variants, one group of 150 with eight times the churn."""
    one = hard(150, 8, loss)
    return ChurnWorld(one.sizes, one.lost, one.gained, variants=5)


def thousand() -> ChurnWorld:
    """1,000 classes × 50; churn log-normal about .08."""
    churn = np.minimum(0.6, np.random.default_rng(1).lognormal(np.log(0.08), 1, 1_000)) / 2
    half = tuple(churn.tolist())
    return ChurnWorld((50,) * 1_000, half, half, by_class=True)


WORLDS: dict[str, Callable[[], ChurnWorld]] = {
    "5 × the churn, n = 80": lambda: hard(80, 5),
    "10 × the churn, n = 80": lambda: hard(80, 10),
    "8 × the churn, n = 150": lambda: hard(150, 8),
    "8 × the churn, n = 300": lambda: hard(300, 8),
    "8 × the churn, n = 150, all lose 2 points": lambda: hard(150, 8, 0.02),
    "8 × the churn, n = 300, all lose 2 points": lambda: hard(300, 8, 0.02),
    "40 hard groups of 12–60": small_hard,
    "40 hard groups of 12–60, all lose 2 points": lambda: small_hard(0.02),
    "19 identical groups, one of 60 churns": identical,
    "all lose 5 points, one large quiet group": quiet,
    "five variants, one hard group": several,
    "1,000 classes × 50": thousand,
}
AT_MOST = {"first excess": 0.07, "any excess": 0.065, "any lead line": 0.065}
FEWER = {"1,000 classes × 50": 100}


def one_audit(world: ChurnWorld, rng: np.random.Generator) -> dict[str, float]:
    """What one audit says, as numbers."""
    with only({"accuracy", "recall"}):
        audit = world.audit(rng)
    results = audit.by_class if world.by_class else audit.by_group
    every = results[results["metric"] == ("recall" if world.by_class else "accuracy")]
    rows = every[every["variant"] == "v0"]
    lead = audit.result.lead
    lines = lead[(lead["p_lead"] <= ALPHA) & (lead["scope"] == "model")]
    loses = bool((world.shift < 0).any())
    covers = (rows["excess_low"] <= world.excess + 1e-9) & (
        world.excess - 1e-9 <= rows["excess_high"]
    )
    known = rows["excess_low"].notna()
    return {
        "first excess": float(rows["excess_p"].iloc[0] <= ALPHA),
        "excess covered": float(covers[known].mean()),
        "any excess": float((rows["excess_p_adjusted"] <= ALPHA).any()),  # of one variant
        "any lead line": float(len(lines[lines["quantity"] == "excess"] if loses else lines) > 0),
    }


@stored
def figures(name: str, audits: int = 400, seed: int = 1801) -> dict[str, Share]:
    """Shares over audits; every audit has random numbers of its own."""
    number, world = list(WORLDS).index(name), WORLDS[name]()
    done = [
        one_audit(world, np.random.default_rng([seed, number, i]))
        for i in range(min(audits, FEWER.get(name, audits)))
    ]
    return {key: Share(float(np.mean([d[key] for d in done])), len(done)) for key in done[0]}


def judged(name: str) -> dict[str, Share]:
    """400 audits; where a share lies above its bound, 2,000 new ones decide."""
    found = figures(name)
    if all(found[key].value <= bound for key, bound in AT_MOST.items()):
        return found
    return figures(name, 2_000, seed=1802)


def table(found: dict[str, dict[str, Share]]) -> list[tuple[Any, ...]]:
    """Rows of the documentation."""
    return [
        (name, *(f"{s} ± {100 * s.error:.1f}" for s in shares.values()), shares["any excess"].of)
        for name, shares in found.items()
    ]
