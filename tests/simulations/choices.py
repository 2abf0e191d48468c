"""Selection probabilities where the truth is known: how often the stated winner is the best.

True values are normal with a spread τ, estimates err by σ = 1; replicates have the same errors.
Worlds: `plain`; `common`, in which all variants share an error three times as large, as easy and
hard draws of examples give them; `collapsed`, in which every fourth variant lies far below.

The scale of τ's prior is picked on samples of one seed (`CHOSEN_ON`) and everything else is
measured on samples of another (`JUDGED_ON`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from fairweight.auditing.choose.best import best_set, share_best
from fairweight.auditing.choose.pareto import frontier
from fairweight.auditing.choose.shrunk import shrink
from fairweight.auditing.counts.stats import Floats

from .measured import Figures, Share, share

CHOSEN_ON, JUDGED_ON = 1801, 1802
SCALES = (0.55, 0.7, 0.85, 1.0)
REPLICATES = 500
SAMPLES = {5: 8000, 20: 8000}
FRONTIERS, CHOOSING = 600, 1200
RATIOS = (0.25, 1.0, 3.0)
VARIANTS = (5, 20)
MOST_OFF = {5: 0.08, 20: 0.05}
WORLDS = ("plain", "common", "collapsed")
COMMON = 3.0
FAR = 30.0  # how far below the others a collapsed variant lies, at least


@dataclass(frozen=True)
class Calibration:
    """What was stated of the variant with the highest probability, and how often it was right."""

    stated: float
    actual: Share
    frequency: float  # the raw bootstrap frequency of the leader
    covered: Share  # samples whose 95 % set contains the best
    size: float  # of that set

    @property
    def off(self) -> float:
        return self.stated - self.actual.value


@dataclass(frozen=True)
class FrontierCalibration:
    """What was stated of being on the frontier, and how often it was so, over variants."""

    stated: float  # of those that the estimates put on it
    actual: Share
    stated_all: float
    actual_all: Share

    @property
    def off(self) -> float:
        return self.stated - self.actual.value

    @property
    def off_all(self) -> float:
        return self.stated_all - self.actual_all.value


def sample(
    rng: np.random.Generator, n_variants: int, ratio: float, world: str = "plain"
) -> tuple[Floats, Floats, Floats]:
    """True values, estimates and replicates of the estimates."""
    shared = COMMON if world == "common" else 0.0
    lost = n_variants // 4 if world == "collapsed" else 0
    truth = ratio * rng.standard_normal(n_variants)
    truth[:lost] -= FAR * (1 + rng.random(lost))
    values = truth + rng.standard_normal(n_variants) + shared * rng.standard_normal()
    error = rng.standard_normal((REPLICATES, n_variants))
    return truth, values, values + error + shared * rng.standard_normal((REPLICATES, 1))


@cache
def calibration(
    n_variants: int, ratio: float, world: str = "plain", *, samples: int | None = None
) -> Calibration:
    rng = np.random.default_rng([JUDGED_ON, n_variants, int(100 * ratio), WORLDS.index(world)])
    stated, raw, right, covered, sizes = [], [], [], [], []
    for _ in range(samples or SAMPLES[n_variants]):
        truth, values, replicates = sample(rng, n_variants, ratio, world)
        chance = share_best(shrink(values, replicates, rng).draws)
        stated.append(chance.max())
        raw.append(share_best(replicates).max())
        right.append(chance.argmax() == truth.argmax())
        inside = best_set(values, replicates)
        covered.append(inside[truth.argmax()])
        sizes.append(inside.sum())
    return Calibration(
        stated=float(np.mean(stated)),
        actual=share(right),
        frequency=float(np.mean(raw)),
        covered=share(covered),
        size=float(np.mean(sizes)),
    )


@cache
def frontier_calibration(
    n_variants: int, ratio: float, *, costs: bool, samples: int = FRONTIERS
) -> FrontierCalibration:
    """Two objectives with noise, or (`costs`) one with noise and one that is known exactly."""
    rng = np.random.default_rng([JUDGED_ON, n_variants, int(100 * ratio), 10 + costs])
    noise = np.array([1.0, 0.0 if costs else 1.0])
    sums: dict[str, list[float]] = {name: [] for name in ("on", "true", "all", "all true")}
    for _ in range(samples):
        truth = ratio * rng.standard_normal((n_variants, 2))
        values = truth + noise * rng.standard_normal(truth.shape)
        replicates = values + noise * rng.standard_normal((REPLICATES, *truth.shape))
        draws = replicates.copy()
        for k in np.flatnonzero(noise):
            draws[:, :, k] = shrink(values[:, k], replicates[:, :, k], rng).draws
        chance, on, true = frontier(draws).mean(axis=0), frontier(values), frontier(truth)
        for name, part in zip(sums, (chance[on], true[on], chance, true), strict=True):
            sums[name].append(float(part.mean()))
    return FrontierCalibration(
        stated=float(np.mean(sums["on"])),
        actual=share(sums["true"]),
        stated_all=float(np.mean(sums["all"])),
        actual_all=share(sums["all true"]),
    )


@cache
def errors_by_scale(samples: int = CHOOSING) -> dict[float, float]:
    """The largest error of P(best) by the prior's scale, as a share of what is allowed.

    Stated is compared with the probability that follows from the true τ, of the same sample: that
    is right on average, and varies less than being right or wrong.
    """
    worst = dict.fromkeys(SCALES, 0.0)
    for n_variants in VARIANTS:
        for ratio in RATIOS:
            rng = np.random.default_rng([CHOSEN_ON, n_variants, int(100 * ratio)])
            off = dict.fromkeys(SCALES, 0.0)
            for _ in range(samples):
                _, values, replicates = sample(rng, n_variants, ratio)
                kept = ratio**2 / (ratio**2 + 1)
                noise = rng.standard_normal((REPLICATES, n_variants))
                known = share_best(kept * values + np.sqrt(kept) * noise)
                for scale in SCALES:
                    drawn = shrink(values, replicates, rng, prior_scale=scale).draws
                    chance = share_best(drawn)
                    off[scale] += (chance.max() - known[chance.argmax()]) / samples
            for scale in SCALES:
                worst[scale] = max(worst[scale], abs(off[scale]) / MOST_OFF[n_variants])
    return worst


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def best_figures() -> Figures:
    rows = []
    for world in WORLDS:
        for n_variants in VARIANTS if world != "common" else VARIANTS[:1]:
            for ratio in RATIOS:
                found = calibration(n_variants, ratio, world)
                cells = (percent(found.stated), found.actual, percent(found.frequency))
                rows.append((world, n_variants, ratio, *cells, found.covered, f"{found.size:.1f}"))
    head = ("world", "variants", "τ / σ", "P(best) of the leader", "it is the best",
            "its bootstrap frequency", "95 % set contains the best", "size of the set")  # fmt: skip
    note = (
        f"{SAMPLES[5]:,} samples of five variants, {SAMPLES[20]:,} of twenty, "
        f"{REPLICATES:,} replicates, seed {JUDGED_ON}."
    )
    return Figures("choices", head, rows, note)


def frontier_figures() -> Figures:
    rows = []
    for costs in (False, True):
        for n_variants in VARIANTS:
            for ratio in RATIOS:
                found = frontier_calibration(n_variants, ratio, costs=costs)
                what = "one, and a cost" if costs else "two"
                cells = (percent(found.stated), found.actual, percent(found.stated_all))
                rows.append((what, n_variants, ratio, *cells, found.actual_all))
    head = ("objectives with noise", "variants", "τ / σ", "P(frontier), estimated to be on it",
            "they are on it", "P(frontier), all variants", "on it")  # fmt: skip
    note = f"{FRONTIERS} samples each, {REPLICATES:,} replicates, seed {JUDGED_ON}."
    return Figures("frontiers", head, rows, note)


def scale_figures() -> Figures:
    rows = [(scale, f"{error:.2f}") for scale, error in errors_by_scale().items()]
    head = ("factor of the prior's scale", "largest error of P(best) / what is allowed")
    note = f"{CHOOSING:,} samples of each of the six plain rows, seed {CHOSEN_ON}."
    return Figures("choice-scales", head, rows, note)


TABLES = {
    "choices": best_figures,
    "frontiers": frontier_figures,
    "choice-scales": scale_figures,
}

if __name__ == "__main__":
    for make in TABLES.values():
        figures = make()
        print(f"### {figures.name}\n\n{figures.markdown()}\n", flush=True)
