"""Threshold calibration in worlds where it should help, and in worlds where it cannot.

A rare attribute (16 %): logits are 1.5 · label + .7 · noise, less the value above which as many
lie as have the attribute. The compressed model adds a little noise, and its logits are lower by
`bias` on the rows that are judged, by `validation_bias` on those that thresholds are fitted on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairweight.auditing.mitigate.mitigation import prediction_table
from fairweight.auditing.mitigate.reaudit import reaudit
from fairweight.auditing.mitigate.thresholds import apply_thresholds, fit_thresholds
from fairweight.auditing.prediction_matrix import Answers, from_arrays
from fairweight.report.explanation_sentences import mitigation_sentences
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import TableSpec

from .measured import Figures, Share, share, stored

SEED = 1901
RATE, SIGNAL, NOISE, FURTHER = 0.16, 1.5, 0.7, 0.1
PAIRS = 60  # of a validation and a test table
SIZES = (200, 1000, 4000)


@dataclass(frozen=True)
class World:
    bias: float
    validation_bias: float
    audits: int


WORLDS = {
    "too few positives": World(0.6, 0.6, 20),
    "right already": World(0.0, 0.0, 60),
    "validation rows unlike the others": World(0.0, -0.6, 20),
}


@dataclass(frozen=True)
class Calibrated:
    """Threshold bias |TCB − 1| on rows apart, before and after."""

    before: float
    after: float
    halved: Share  # of the pairs of tables


@stored
def right(noise: float) -> float:
    """Above this value lie as many logits as there are positives."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def too_many(value: float) -> float:
        above = RATE * norm.sf((value - SIGNAL) / noise) + (1 - RATE) * norm.sf(value / noise)
        return float(above - RATE)

    return float(brentq(too_many, -5, 5))


def table(rng: np.random.Generator, n: int, first: int, bias: float) -> Answers:
    label = (rng.random(n) < RATE).astype(int)
    plain = SIGNAL * label + NOISE * rng.normal(size=n)
    further = plain + FURTHER * rng.normal(size=n)
    logits = {
        "dense": plain - right(NOISE),
        "small": further - right(float(np.hypot(NOISE, FURTHER))) - bias,
    }
    return from_arrays(
        label,
        {name: (z > 0).astype(int) for name, z in logits.items()},
        score={name: 1 / (1 + np.exp(-z)) for name, z in logits.items()},
        ids=list(range(first, first + n)),
    )


def threshold_bias(answers: Answers, prediction: np.ndarray) -> float:
    return float(abs((prediction == 1).sum() / (answers.label == 1).sum() - 1))


@stored
def calibrated(n: int, smooth: bool) -> Calibrated:
    """With n validation rows, judged on 4,000 others."""
    rng = np.random.default_rng(SEED)
    before, after = [], []
    for _ in range(PAIRS):
        validation, test = table(rng, n, 0, 0.6), table(rng, 4000, 10_000, 0.6)
        rule = fit_thresholds([validation], ["small"], smooth=smooth)
        before.append(threshold_bias(test, test.of("small")[0]))
        after.append(threshold_bias(test, apply_thresholds(rule, test, "small").prediction[0]))
    halved = share(np.array(after) < 0.5 * np.array(before))
    return Calibrated(float(np.mean(before)), float(np.mean(after)), halved)


def sentence(world: World, rng: np.random.Generator) -> str:
    """What the product says of thresholds that were fitted on 1,500 rows, judged on as many."""
    validation = table(rng, 1500, 0, world.validation_bias)
    test = table(rng, 1500, 10_000, world.bias)
    new = apply_thresholds(fit_thresholds([validation], ["small"]), test, "small")
    again = reaudit(
        prediction_table([test], [[new]]),
        [(new.name, "small")],
        TableSpec((), baseline="dense", groups=[]),
        AuditOptions(n_boot=200),
    )
    return mitigation_sentences(again.mitigation, "thresholds")[0]


@stored
def said(name: str) -> dict[str, Share]:
    """How often each of the three things is said in a world."""
    rng = np.random.default_rng([SEED, list(WORLDS).index(name)])
    told = [sentence(WORLDS[name], rng) for _ in range(WORLDS[name].audits)]
    return {
        words: share(f": {words}:" in one or f": {words} of " in one for one in told)
        for words in ("it helps", "no clear improvement", "it does not help")
    }


def threshold_figures() -> Figures:
    rows = []
    for n in SIZES:
        for smooth in (False, True):
            found = calibrated(n, smooth)
            rows.append((f"{n:,}", "smoothed" if smooth else "k-th largest",
                         f"{found.before:.3f}", f"{found.after:.3f}", found.halved))  # fmt: skip
    head = ("validation rows", "threshold", "before", "after", "at most half")
    return Figures("thresholds", head, rows, f"{PAIRS} pairs of tables per row, seed {SEED}.")


def sentence_figures() -> Figures:
    rows = [(name, WORLDS[name].audits, *said(name).values()) for name in WORLDS]
    head = ("world", "audits", *(f"“{words}”" for words in said("right already")))
    return Figures("thresholds-said", head, rows, f"Seed {SEED}.")


TABLES = {"thresholds": threshold_figures, "thresholds-said": sentence_figures}
