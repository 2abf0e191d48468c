"""Threshold calibration in worlds where it should help, and in one where it cannot."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.answers import Answers, from_arrays
from fairweight.auditing.mitigate.new_variant import prediction_table
from fairweight.auditing.mitigate.reaudit import reaudit
from fairweight.auditing.mitigate.thresholds import apply_thresholds, fit_thresholds
from fairweight.report.mitigation_sentences import mitigation_sentences

pytestmark = pytest.mark.slow

WORLDS = 60


def world(rng: np.random.Generator, n: int, first: int, bias: float) -> Answers:
    """A rare attribute; the compressed model's logits are lowered by `bias`."""
    man = rng.random(n) < 0.4
    label = (rng.random(n) < 0.12 + 0.1 * man).astype(int)
    # Calibrated for the dense model: as many positives as there are, up to chance.
    dense = 1.5 * label + rng.normal(size=n) * 0.7
    dense -= np.quantile(dense, 1 - label.mean())
    small = dense + rng.normal(size=n) * 0.1 - bias
    return from_arrays(
        label,
        {"dense": (dense > 0).astype(int), "small": (small > 0).astype(int)},
        groups={"sex": np.where(man, "m", "f")},
        score={k: 1 / (1 + np.exp(-z)) for k, z in (("dense", dense), ("small", small))},
        ids=list(range(first, first + n)),
    )


def threshold_bias(answers: Answers, prediction: np.ndarray) -> float:
    return float(abs((prediction == 1).sum() / (answers.label == 1).sum() - 1))


@pytest.mark.parametrize("smooth", [False, True])
def test_calibration_halves_threshold_bias_on_rows_apart(smooth: bool) -> None:
    rng = np.random.default_rng(0)
    before, after = [], []
    for _ in range(WORLDS):
        validation, test = world(rng, 4000, 0, 0.6), world(rng, 4000, 10_000, 0.6)
        rule = fit_thresholds([validation], ["small"], smooth=smooth)
        before.append(threshold_bias(test, test.of("small")[0]))
        after.append(threshold_bias(test, apply_thresholds(rule, test, "small").prediction[0]))
    assert np.mean(after) < 0.5 * np.mean(before)
    assert np.mean(np.array(after) < 0.5 * np.array(before)) > 0.9


def sentence(bias: float, seed: int) -> str:
    rng = np.random.default_rng(seed)
    validation, test = world(rng, 1500, 0, bias), world(rng, 1500, 10_000, bias)
    rule = fit_thresholds([validation], ["small"])
    new = apply_thresholds(rule, test, "small")
    table: pd.DataFrame = prediction_table([test], [[new]])
    again = reaudit(
        table,
        [(new.name, "small")],
        baseline="dense",
        groups=["sex"],
        options={"n_boot": 100},
    )
    return mitigation_sentences(again.mitigation, "thresholds")[0]


def test_the_product_says_whether_it_helps() -> None:
    helped = [sentence(0.6, seed) for seed in range(2)]
    assert all("it helps" in told for told in helped)
    # Where thresholds are right already, nothing is left to gain.
    idle = [sentence(0.0, seed) for seed in range(3)]
    assert sum("it helps" in told for told in idle) <= 1
    assert any("not shown to help" in told or "does not help" in told for told in idle)
