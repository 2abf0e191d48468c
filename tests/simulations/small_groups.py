"""Small groups and calibration: what whole audits show, and how often it is right.

Every group of an audit is a sample of its own from one world, so one audit of sixty groups is
sixty samples; the audit is `fw.audit`, with few replicates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import fairweight as fw

from ..few_metrics import only
from .measured import Share, stored

GROUPS = 60
SIZES = (30, 100, 200)
LARGE = (500, 2000)
N_BOOT = 200
MANY = 400_000  # examples that stand for everyone
COUNTED = ("precision", "kappa", "balanced_accuracy")
SCORED = ("auc", "brier")
CALIBRATION = ("calibration_gap", "calibration_error_sq")
WHERE = ("shift", "baseline", "compressed")

Values = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """Scores of two models; the baseline's are calibrated where `slope` is 1.

    A score is the logistic function of a normal value whose mean is `apart` above or below 0; the
    compressed model sees it with noise, and with another slope and intercept.
    """

    positives: float
    apart: float  # 1.75: accuracy of 96 %; 2.33: 99 %
    noise: float = 0.3
    slope: tuple[float, float] = (1.0, 1.0)
    intercept: float = 0.0

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Values, Values, Values]:
        """Labels, and the scores of both models."""
        label = (rng.random(n) < self.positives).astype(float)
        value = 2 * self.apart * (rng.normal(size=n) + self.apart * (2 * label - 1))
        value += np.log(self.positives / (1 - self.positives))
        noisy = value + 2 * self.apart * self.noise * rng.normal(size=n)
        first, second = self.slope
        return label, _logistic(first * value), _logistic(second * noisy + self.intercept)


def _logistic(value: Values) -> Values:
    return 1 / (1 + np.exp(-value))


WORLDS = {
    "96 % accuracy": World(0.5, 1.75),
    "99 %": World(0.5, 2.33),
    "96 %, 4 % positives": World(0.04, 1.75),
    "99 %, 4 % positives": World(0.04, 2.33),
    "96 %, 4 % positives, many changes": World(0.04, 1.75, noise=1.0),
    "96 %, overconfident": World(0.5, 1.75, slope=(1.0, 1.8)),
    "90 %, many changes": World(0.5, 1.28, noise=0.7),
    "90 %, shifted": World(0.5, 1.28, slope=(1.2, 1.0), intercept=0.7),
}
CALIBRATED = {
    "unchanged but for noise": World(0.5, 1.0, noise=0.2),
    "overconfident": World(0.5, 1.0, slope=(1.0, 1.7)),
    "repaired": World(0.5, 1.0, slope=(1.7, 1.0)),
    "shifted": World(0.5, 1.0, intercept=0.5),
    "20 % positives, overconfident": World(0.2, 1.28, slope=(1.0, 1.7)),
    "more confident, 4 % positives": World(0.04, 1.28, slope=(1.0, 1.5)),
}
METRICS = COUNTED + SCORED + CALIBRATION


@stored
def truth(name: str) -> dict[str, tuple[float, float]]:
    """Every metric of both models on (nearly) everyone."""
    world = (WORLDS | CALIBRATED)[name]
    label, *scores = world.draw(np.random.default_rng(99), MANY)
    found: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for score in scores:
        made = {"y_pred": (score > 0.5).astype(int), "y_score": score}
        for metric in METRICS:
            given = {"y_pred": made["y_pred"]} if metric in COUNTED else {"y_score": score}
            value = getattr(fw.metrics, metric)(y_true=label.astype(int), **given)
            found[metric].append(float(value))
    return {metric: (first, second) for metric, (first, second) in found.items()}


@dataclass(frozen=True)
class Shown:
    """Of all groups: the share with limits, the share of these that hold the truth."""

    shown: float
    covered: Share | None  # None where hardly any group has limits
    wrong: float  # groups with limits that miss the truth, of all groups


@stored
def shown(
    name: str, n: int, audits: int = 3, clusters: int | None = None, seed: int = 2101
) -> dict[tuple[str, str], Shown]:
    """By metric and (shift, baseline, compressed), in groups of `n`."""
    world, true = (WORLDS | CALIBRATED)[name], truth(name)
    rng = np.random.default_rng([seed, n, *name.encode()])
    hits: dict[tuple[str, str], list[Values]] = {(m, w): [] for m in METRICS for w in WHERE}
    for i in range(audits):
        label, dense, small = world.draw(rng, GROUPS * n)
        scores = {"dense": dense, "small": small}
        with only(METRICS):
            results = fw.audit(
                label.astype(int),
                {name: (score > 0.5).astype(int) for name, score in scores.items()},
                y_score=scores,
                sensitive_features={"group": np.repeat(np.arange(GROUPS), n)},
                cluster=None if clusters is None else np.arange(GROUPS * n) // (n // clusters),
                n_boot=N_BOOT,
                random_state=i,
            ).results
        rows = results[(results["by"] == "group") & results["metric"].isin(METRICS)]
        for metric, part in rows.groupby("metric"):
            first, second = true[str(metric)]
            for where, target in zip(WHERE, (second - first, first, second), strict=True):
                columns = "ci" if where == "shift" else where
                low, high = (part[f"{columns}_{side}"].to_numpy() for side in ("low", "high"))
                inside = (low <= target + 1e-9) & (target - 1e-9 <= high)
                hits[str(metric), where].append(np.where(np.isnan(low), np.nan, inside))
    return {key: _counted(np.concatenate(values)) for key, values in hits.items()}


def _counted(hits: Values) -> Shown:
    known = hits[~np.isnan(hits)]
    covered = Share(float(known.mean()), len(known)) if len(known) >= 30 else None
    return Shown(len(known) / len(hits), covered, float((known == 0).sum() / len(hits)))


def pooled(found: list[Shown]) -> Share:
    """Of all limits that were shown."""
    known = [s.covered for s in found if s.covered is not None]
    total = sum(s.of for s in known)
    return Share(sum(s.value * s.of for s in known) / total, total)
