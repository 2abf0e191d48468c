"""Calibration errors, their bins, and what chance alone gives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairweight.auditing.metrics import scores
from fairweight.auditing.metrics.rates import is_uncertain
from fairweight.auditing.metrics.scores import (
    Definition,
    ScoreColumn,
    auc,
    bin_of,
    brier,
    calibration_error_sq,
    calibration_gap,
    ece,
    ece_top_label,
    expected_ece_if_calibrated,
    reliability,
)

DEFINITIONS: tuple[Definition, ...] = ("ece", "ece_top_label")
CALIBRATION_ERRORS = {"ece": ece, "ece_top_label": ece_top_label}


def one_slice(score: list[float], outcome: list[float]) -> ScoreColumn:
    n = len(score)
    return ScoreColumn(np.array(score), np.array(outcome), np.zeros(n, dtype=np.intp), 1)


def naive(score: np.ndarray, outcome: np.ndarray, definition: Definition) -> float:
    """The definition, bin by bin."""
    if definition == "ece":
        bins = [(score >= k / 10) & (score < (k + 1) / 10) for k in range(10)] + [score == 1]
    else:
        bins = [(score > k / 15) & (score <= (k + 1) / 15) for k in range(15)]
        bins[0] |= score == 0
    return sum(
        inside.sum() / len(score) * abs(score[inside].mean() - outcome[inside].mean())
        for inside in bins
        if inside.any()
    )


def test_a_score_of_one_has_a_bucket_of_its_own() -> None:
    # .95 and 1 are not pooled: 1/2 |.95 - 0| + 1/2 |1 - 1|; pooled it would be |.975 - .5|
    column = one_slice([0.95, 1.0], [0.0, 1.0])
    assert ece(column, np.ones((1, 2)))[0, 0] == pytest.approx(0.475)
    pooled = one_slice([0.94, 1.0], [0.0, 1.0])  # both in (14/15, 1]: |.97 - .5|
    assert ece_top_label(pooled, np.ones((1, 2)))[0, 0] == pytest.approx(0.47)


@pytest.mark.parametrize("definition", DEFINITIONS)
@given(
    st.lists(
        st.tuples(st.integers(0, 64).map(lambda k: k / 64), st.sampled_from([0.0, 1.0])),
        min_size=1,
        max_size=40,
    )
)
def test_equal_to_the_definition(definition: Definition, rows: list[tuple[float, float]]) -> None:
    score, outcome = map(np.array, zip(*rows, strict=True))
    column = one_slice(score, outcome)
    ours = CALIBRATION_ERRORS[definition](column, np.ones((1, len(score))))[0, 0]
    assert ours == pytest.approx(naive(score, outcome, definition), abs=1e-12)
    bins = reliability(column, definition)
    assert bins["contribution"].sum() == pytest.approx(ours, abs=1e-12)
    assert bins["n"].sum() == len(score)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_bins_cover_the_unit_interval_once(definition: Definition) -> None:
    column = one_slice([0.0, 0.5, 1.0], [0.0, 1.0, 1.0])
    bins = reliability(column, definition)
    assert bins["low"][0] == 0
    assert bins["high"][-1] == 1
    np.testing.assert_array_equal(bins["low"][1:], bins["high"][:-1])
    score = np.linspace(0, 1, 1001)
    assert bin_of(score, definition).min() == 0
    assert bin_of(score, definition).max() == len(bins["low"]) - 1


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_slices_and_weights(definition: Definition) -> None:
    rng = np.random.default_rng(0)
    score, slices = rng.random(60), rng.integers(-1, 3, 60)
    outcome = (rng.random(60) < score).astype(float)
    column = ScoreColumn(score, outcome, slices, 4)  # the fourth slice is empty
    drawn = rng.multinomial(60, np.full(60, 1 / 60), size=3)
    ours = CALIBRATION_ERRORS[definition](column, drawn.astype(float))
    for r in range(3):
        for s in range(3):
            rows = np.repeat(np.arange(60), drawn[r] * (slices == s))
            expected = naive(score[rows], outcome[rows], definition)
            assert ours[r, s] == pytest.approx(expected, abs=1e-12)
    assert np.isnan(ours[:, 3]).all()
    bins = reliability(column, definition, drawn[1].astype(float))
    np.testing.assert_allclose(bins["contribution"][:3].sum(axis=1), ours[1, :3], atol=1e-12)
    assert np.isnan(bins["contribution"][3]).all()


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_what_a_calibrated_model_shows(definition: Definition) -> None:
    """The noise of a bin is nearly normal: E|sum (p - y)| = sqrt(2 / pi * sum p (1 - p))."""
    rng = np.random.default_rng(1)
    score, slices = rng.random(10_050), np.repeat([0, 1], [10_000, 50])
    column = ScoreColumn(score, np.zeros(10_050), slices, 2)
    large, small = expected_ece_if_calibrated(column, definition, 400, rng)
    first = score[:10_000]
    variance = np.bincount(bin_of(first, definition), first * (1 - first))
    assert large == pytest.approx(np.sqrt(2 / np.pi * variance).sum() / 10_000, rel=0.03)
    assert small > 10 * large  # a small slice looks miscalibrated by chance alone


def test_bins_with_many_examples_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The normal value of large bins is right to a tenth of a percent; small ones are drawn."""
    rng = np.random.default_rng(2)
    column = ScoreColumn(rng.beta(5, 1, 20_000), np.zeros(20_000), rng.integers(0, 2, 20_000), 2)
    mixed = expected_ece_if_calibrated(column, "ece_top_label", 2_000, np.random.default_rng(0))
    monkeypatch.setattr("fairweight.auditing.metrics.scores.NEARLY_NORMAL", np.inf)
    drawn = expected_ece_if_calibrated(column, "ece_top_label", 2_000, np.random.default_rng(1))
    np.testing.assert_allclose(mixed, drawn, rtol=0.015)


def test_expected_ece_by_multiplicity_is_that_of_rows() -> None:
    score = np.array([0.15, 0.55, 0.85])
    counts = np.array([40, 30, 30])
    few = ScoreColumn(score, np.zeros(3), np.zeros(3, dtype=np.intp), 1)
    rows = ScoreColumn(np.repeat(score, counts), np.zeros(100), np.zeros(100, dtype=np.intp), 1)
    by_counts = expected_ece_if_calibrated(few, "ece", 4000, np.random.default_rng(0), counts)
    by_rows = expected_ece_if_calibrated(rows, "ece", 4000, np.random.default_rng(1))
    assert by_counts[0] == pytest.approx(by_rows[0], rel=0.03)


def test_auc_of_constant_scores_is_one_half() -> None:
    column = one_slice([0.3, 0.3, 0.3], [0.0, 1.0, 1.0])
    assert auc(column, np.ones((1, 3)))[0, 0] == 0.5


def test_auc_without_both_outcomes_is_undefined() -> None:
    column = one_slice([0.3, 0.4], [1.0, 1.0])
    assert np.isnan(auc(column, np.ones((1, 2)))[0, 0])
    # ... in a replicate too: only positives were drawn
    column = one_slice([0.3, 0.4], [0.0, 1.0])
    values = auc(column, np.array([[0.0, 2.0], [1.0, 1.0]]))
    assert np.isnan(values[0, 0])
    assert values[1, 0] == 1


@given(st.data())
def test_auc_is_reversed_by_reversing_scores(data: st.DataObject) -> None:
    pairs = st.tuples(st.integers(0, 8).map(lambda k: k / 8), st.sampled_from([0.0, 1.0]))
    rows = [*data.draw(st.lists(pairs, min_size=1, max_size=20)), (0.5, 0.0), (0.5, 1.0)]
    score, outcome = map(np.array, zip(*rows, strict=True))
    weights = np.ones((1, len(score)))
    forward = auc(one_slice(score, outcome), weights)[0, 0]
    backward = auc(one_slice(1 - score, outcome), weights)[0, 0]
    assert forward + backward == pytest.approx(1, abs=1e-12)
    assert brier(one_slice(score, outcome), weights)[0, 0] == pytest.approx(
        brier(one_slice(1 - score, 1 - outcome), weights)[0, 0], abs=1e-12
    )


def leave_one_out(score: np.ndarray, outcome: np.ndarray, weight: np.ndarray) -> float:
    """The definition of `calibration_error_sq`, example by example."""
    bins, residual = bin_of(score, "ece_top_label"), score - outcome
    total = 0.0
    for i in range(len(score)):
        others = (bins == bins[i]) & (np.arange(len(score)) != i)
        if weight[others].sum() > 0:
            mean = (weight * residual)[others].sum() / weight[others].sum()
            total += weight[i] * residual[i] * mean
    return total / weight.sum()


def test_the_squared_error_by_hand() -> None:
    # one bin: r = .8, -.2, .8; the others' means: .3, .8, .3; (.24 - .16 + .24) / 3
    column = one_slice([0.8, 0.8, 0.8], [0.0, 1.0, 0.0])
    assert calibration_error_sq(column, np.ones((1, 3)))[0, 0] == pytest.approx(0.32 / 3)
    # the plug-in square would be (1.4 / 3)^2 = .218: the bias is what is left out


def test_an_example_alone_in_its_bin_adds_nothing() -> None:
    column = one_slice([0.8, 0.8, 0.3], [0.0, 0.0, 1.0])  # r = .8, .8 in one bin; -.7 alone
    assert calibration_error_sq(column, np.ones((1, 3)))[0, 0] == pytest.approx(2 * 0.64 / 3)
    assert calibration_error_sq(one_slice([0.8], [0.0]), np.ones((1, 1)))[0, 0] == 0


def test_a_weight_belongs_to_one_example() -> None:
    # r = .5 (weight 3), -.5 (weight 1): each has the other alone; (3 · -.25 + 1 · -.25) / 4
    column = one_slice([0.5, 0.5], [0.0, 1.0])
    assert calibration_error_sq(column, np.array([[3.0, 1.0]]))[0, 0] == pytest.approx(-0.25)
    # an example that counts not at all is as good as absent
    assert calibration_error_sq(column, np.array([[3.0, 0.0]]))[0, 0] == 0


@given(
    st.lists(
        st.tuples(
            st.integers(0, 20).map(lambda k: k / 20),
            st.sampled_from([0.0, 1.0]),
            st.sampled_from([0.5, 1.0, 2.0]),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_the_squared_error_is_its_definition(rows: list[tuple[float, float, float]]) -> None:
    score, outcome, weight = map(np.array, zip(*rows, strict=True))
    column = one_slice(score, outcome)
    ours = calibration_error_sq(column, weight[None, :])[0, 0]
    assert ours == pytest.approx(leave_one_out(score, outcome, weight), abs=1e-12)
    gap = calibration_gap(column, weight[None, :])[0, 0]
    assert gap == pytest.approx(np.average(score - outcome, weights=weight), abs=1e-12)


def test_with_one_score_per_bin_it_is_the_debiased_error_of_kumar() -> None:
    """Kumar, Liang and Ma 2019: sum_b n_b / n ((s_b - y_b)^2 - y_b (1 - y_b) / (n_b - 1))."""
    score = np.repeat([0.3, 0.9], [10, 20])
    outcome = np.array([1.0] * 4 + [0.0] * 6 + [1.0] * 15 + [0.0] * 5)
    low, high = (0.3 - 0.4) ** 2 - 0.4 * 0.6 / 9, (0.9 - 0.75) ** 2 - 0.75 * 0.25 / 19
    ours = calibration_error_sq(one_slice(score, outcome), np.ones((1, 30)))[0, 0]
    assert ours == pytest.approx((10 * low + 20 * high) / 30, abs=1e-12)


def test_the_squared_error_of_a_calibrated_model_is_zero_on_average() -> None:
    """Where ECE is .1 by chance alone: 2,000 samples of 50."""
    rng = np.random.default_rng(3)
    score = rng.random((2000, 50))
    outcome = (rng.random((2000, 50)) < score).astype(float)
    slices = np.repeat(np.arange(2000), 50)
    column = ScoreColumn(score.ravel(), outcome.ravel(), slices, 2000)
    found = calibration_error_sq(column, np.ones((1, 100_000)))[0]
    assert abs(found.mean()) < 3 * found.std() / np.sqrt(2000)
    assert ece_top_label(column, np.ones((1, 100_000)))[0].mean() > 0.1


@pytest.mark.parametrize("function", [auc, brier, ece, ece_top_label, calibration_gap])
def test_slabs_are_not_seen(
    function: Callable[[ScoreColumn, np.ndarray], np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    column = ScoreColumn(
        rng.random(30).round(1), rng.integers(0, 2, 30).astype(float), rng.integers(0, 2, 30), 2
    )
    weights = rng.poisson(1, (7, 30)).astype(float)
    at_once = function(column, weights)
    monkeypatch.setattr(scores, "SLAB_VALUES", 60)  # two replicates at a time
    np.testing.assert_array_equal(function(column, weights), at_once)
    assert function(column, weights[:0]).shape == (0, 2)


def test_uncertain_is_strict() -> None:
    assert is_uncertain(np.array([0.1, 0.10001, 0.9, 0.89999]), binary=True).tolist() == [
        False,
        True,
        False,
        True,
    ]
    # of the predicted class, with more than two classes: .05 is as uncertain as can be
    assert is_uncertain(np.array([0.05, 0.9]), binary=False).tolist() == [True, False]
