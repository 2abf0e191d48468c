"""Outcomes that are numbers: do limits, lines and gates hold their error rates?

Worlds of section 11 of the rules, each through `fw.audit(outcomes=...)`: word errors per word of
which few change, skewed losses, a judge's scores, one group with ten times the variance, everybody
or one group harmed, clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fairweight as fw

from .measured import Share, stored

ALPHA = 0.05
AUDITS = 400
SIZES = (100, 200, 300, 400)  # examples of the groups, the first one is the odd one
Numbers = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, float, float], tuple[Numbers, Numbers, Numbers | None]]


def word_errors(
    rng: np.random.Generator, n: int, churn: float, harm: float
) -> tuple[Numbers, Numbers, Numbers | None]:
    """Errors and words of utterances of 5 to 40 words; `churn` of them change, `harm` get worse."""
    words = rng.integers(5, 41, n).astype(float)
    common = np.where(rng.random(n) < 0.35, rng.geometric(0.4, n), 0.0)

    def more(share: float) -> Numbers:
        return np.where(rng.random(n) < share, rng.geometric(0.5, n), 0.0)

    return common + more(churn / 2), common + more(churn / 2 + harm), words


def losses(
    rng: np.random.Generator, n: int, spread: float, harm: float
) -> tuple[Numbers, Numbers, Numbers | None]:
    """Losses that all change a little, with skewed changes; `harm` is added to all."""
    before = np.exp(0.7 * rng.standard_normal(n))
    moved = np.exp(0.8 * rng.standard_normal(n)) - np.exp(0.32)
    return before, before + spread * before * moved + harm, None


def judged_scores(
    rng: np.random.Generator, n: int, churn: float, harm: float
) -> tuple[Numbers, Numbers, Numbers | None]:
    """Scores from 1 to 5 of which some fall by 1 or 2 in either model, and more by harm."""
    score = rng.choice([2.0, 3, 4, 5], p=[0.1, 0.2, 0.4, 0.3], size=n)

    def fallen(share: float) -> Numbers:
        step = np.where(rng.random(n) < 0.8, 1.0, 2.0)
        return np.maximum(score - np.where(rng.random(n) < share, step, 0.0), 1.0)

    return fallen(churn / 2), fallen(churn / 2 + harm), None


# The true shift for a harm of 1: a word error costs 2 errors of 22.5 words on average.
PER_HARM = {word_errors: 2 / 22.5, losses: 1.0, judged_scores: -1.18}


@dataclass(frozen=True)
class OutcomeWorld:
    """Four groups; the first may be harder or harmed."""

    draw: Draw
    better: str
    others: tuple[float, float]  # churn (or spread) and harm of three groups
    first: tuple[float, float]  # the same of the first one
    cluster: bool = False  # groups of 10 examples that share a part of their changes
    n_first: int = SIZES[0]

    @property
    def shifts(self) -> Numbers:
        return PER_HARM[self.draw] * np.array([self.first[1], *[self.others[1]] * 3])

    @property
    def alike(self) -> bool:
        return self.first[1] == self.others[1]

    def audit(self, rng: np.random.Generator) -> tuple[fw.Audit, float]:
        """An audit, and the margin of the first group at which a gate is asked."""
        sizes = (self.n_first, *SIZES[1:])
        kinds = (self.first, *[self.others] * 3)
        parts = [self.draw(rng, n, *kind) for n, kind in zip(sizes, kinds, strict=True)]
        before, after = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        den = None
        if parts[0][2] is not None:
            den = np.concatenate([part[2] for part in parts if part[2] is not None])
        group = np.repeat([f"g{i}" for i in range(len(sizes))], sizes)
        made = fw.audit(
            outcomes={"dense": before, "small": after},
            better=self.better,
            denominator=den,
            sensitive_features={"g": group},
            cluster=np.arange(len(group)) // 5 if self.cluster else None,
            random_state=int(rng.integers(2**31)),
        )
        return made, abs(float(self.shifts[0]))


WORLDS: dict[str, OutcomeWorld] = {
    "word errors, 5 % change": OutcomeWorld(word_errors, "lower", (0.05, 0.0), (0.05, 0.0)),
    "word errors, one group changes ten times as often": OutcomeWorld(
        word_errors, "lower", (0.03, 0.0), (0.3, 0.0)
    ),
    "word errors, all lose": OutcomeWorld(word_errors, "lower", (0.05, 0.1), (0.05, 0.1)),
    "skewed losses, one group of ten times the variance": OutcomeWorld(
        losses, "lower", (0.1, 0.0), (0.316, 0.0)
    ),
    "skewed losses, all lose": OutcomeWorld(losses, "lower", (0.1, 0.05), (0.1, 0.05)),
    "a judge's scores, all lose": OutcomeWorld(judged_scores, "higher", (0.1, 0.1), (0.3, 0.1)),
    "a judge's scores, clusters of 5": OutcomeWorld(
        judged_scores, "higher", (0.1, 0.1), (0.3, 0.1), cluster=True
    ),
    "a judge's scores, one group harmed": OutcomeWorld(
        judged_scores, "higher", (0.2, 0.0), (0.2, 0.3)
    ),
}
AT_MOST = {"gate at the margin": 0.07, "any excess": 0.065}
AT_LEAST = {"shift covered": 0.93, "excess covered": 0.93, "all shifts covered": 0.94}


def one_audit(world: OutcomeWorld, rng: np.random.Generator) -> dict[str, float]:
    """What one audit says, as numbers."""
    audit, margin = world.audit(rng)
    rows = audit.by_group[audit.by_group["metric"] == audit.result.primary]
    shifts, n = world.shifts, rows["n"].to_numpy(dtype=float)
    rest = (n @ shifts - n * shifts) / (n.sum() - n)

    def inside(low: str, high: str, truth: Numbers) -> NDArray[np.bool_]:
        ends = rows[low].to_numpy(dtype=float), rows[high].to_numpy(dtype=float)
        return np.asarray((ends[0] <= truth + 1e-12) & (truth - 1e-12 <= ends[1]))

    passed = np.nan
    if margin > 0:
        rule = {"metric": "outcome", "by": "group", "groups": ["g=g0"], "margin": margin}
        passed = float(audit.gate({"rule": [rule]}).outcome == "pass")
    return {
        "gate at the margin": passed,
        "shift covered": float(inside("ci_low", "ci_high", shifts).mean()),
        "excess covered": float(inside("excess_low", "excess_high", shifts - rest).mean()),
        "all shifts covered": float(inside("sim_low", "sim_high", shifts).all()),
        "any excess": float((rows["excess_p_adjusted"] <= ALPHA).any()),
    }


@stored
def figures(name: str, audits: int = AUDITS, seed: int = 2401) -> dict[str, Share]:
    """Shares over audits; every audit has random numbers of its own."""
    number, world = list(WORLDS).index(name), WORLDS[name]
    done = [one_audit(world, np.random.default_rng([seed, number, i])) for i in range(audits)]
    return {
        key: Share(float(np.nanmean(values)), len(values))
        if np.isfinite(values := np.array([d[key] for d in done])).any()
        else Share(float("nan"), len(done))
        for key in done[0]
    }


@stored
def found_harm(audits: int = AUDITS, seed: int = 2402) -> Share:
    """How often a harm of the first group is found that the audit says it finds in 80 %.

    The stated least detectable shift comes from other audits of the same world.
    """
    quiet = WORLDS["a judge's scores, one group harmed"]
    quiet = replace(quiet, first=quiet.others)
    power = quiet.audit(np.random.default_rng([seed, 0]))[0].result.power
    least = float(power.loc[power["group"] == "g=g0", "min_detectable_shift"].iloc[0])
    world = replace(quiet, first=(quiet.others[0], least / -PER_HARM[quiet.draw]))
    hits = []
    for i in range(audits):
        rows = world.audit(np.random.default_rng([seed, 1, i]))[0].by_group
        row = rows[(rows["metric"] == "outcome") & (rows["group"] == "g=g0")].iloc[0]
        hits.append(bool(row["p_adjusted"] <= ALPHA and row["shift"] < 0))
    return Share(float(np.mean(hits)), audits)


def table(found: dict[str, dict[str, Share]]) -> list[tuple[Any, ...]]:
    """Rows of the documentation."""
    return [
        (
            name,
            *("—" if np.isnan(s.value) else f"{s} ± {100 * s.error:.1f}" for s in shares.values()),
            shares["any excess"].of,
        )
        for name, shares in found.items()
    ]
