"""Agreement with scikit-learn and fairlearn on random tables, to 1e-12."""

from __future__ import annotations

import warnings
from typing import Any

import fairlearn.metrics as fairlearn
import numpy as np
import pytest
import sklearn.metrics as sklearn

from fairweight import metrics
from fairweight.auditing.metrics.scores import ScoreColumn, auc, brier

SEEDS = range(5)
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def table(seed: int, n_classes: int, n: int = 400) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, n_classes, n)
    wrong = rng.random(n) < 0.3
    return {
        "label": label,
        "pred": np.where(wrong, rng.integers(0, n_classes, n), label),
        "group": rng.choice(["x", "y", "z"], n, p=[0.6, 0.3, 0.1]),
        "weight": rng.random(n) + 0.1,
        # two decimals: ties between scores are common
        "score": np.round(np.clip(0.35 * label + 0.6 * rng.random(n), 0, 1), 2),
    }


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_multiclass_agrees_with_scikit_learn(seed: int, weighted: bool) -> None:
    t = table(seed, 5)
    weight = t["weight"] if weighted else None
    pairs = {
        "accuracy": sklearn.accuracy_score(t["label"], t["pred"], sample_weight=weight),
        "recall": sklearn.recall_score(
            t["label"], t["pred"], average="macro", sample_weight=weight
        ),
        "precision": sklearn.precision_score(
            t["label"], t["pred"], average="macro", sample_weight=weight
        ),
        "f1": sklearn.f1_score(t["label"], t["pred"], average="macro", sample_weight=weight),
        "balanced_accuracy": sklearn.balanced_accuracy_score(
            t["label"], t["pred"], sample_weight=weight
        ),
        "kappa": sklearn.cohen_kappa_score(t["label"], t["pred"], sample_weight=weight),
    }
    for name, expected in pairs.items():
        ours = getattr(metrics, name)(t["label"], t["pred"], sample_weight=weight)
        np.testing.assert_allclose(ours, expected, **CLOSE, err_msg=name)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_binary_agrees_with_scikit_learn_and_fairlearn(seed: int, weighted: bool) -> None:
    t = table(seed, 2)
    weight = t["weight"] if weighted else None
    oracles = {
        "recall": sklearn.recall_score,
        "precision": sklearn.precision_score,
        "f1": sklearn.f1_score,
        "fpr": fairlearn.false_positive_rate,
        "fnr": fairlearn.false_negative_rate,
        "selection_rate": fairlearn.selection_rate,
    }
    for name, oracle in oracles.items():
        ours = getattr(metrics, name)(t["label"], t["pred"], sample_weight=weight)
        expected = oracle(t["label"], t["pred"], sample_weight=weight)
        np.testing.assert_allclose(ours, expected, **CLOSE, err_msg=name)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_group_differences_agree_with_fairlearn(seed: int, weighted: bool) -> None:
    t = table(seed, 2)
    weight = t["weight"] if weighted else None
    groups = {"sensitive_features": t["group"], "sample_weight": weight}
    oracles = {
        "demographic_parity_difference": fairlearn.demographic_parity_difference,
        "disparate_impact": fairlearn.demographic_parity_ratio,
        "equalized_odds_difference": fairlearn.equalized_odds_difference,
        "equal_opportunity_difference": fairlearn.equal_opportunity_difference,
    }
    for name, oracle in oracles.items():
        ours = getattr(metrics, name)(t["label"], t["pred"], **groups)
        np.testing.assert_allclose(
            ours, oracle(t["label"], t["pred"], **groups), **CLOSE, err_msg=name
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_values_by_group_agree_with_metric_frame(seed: int) -> None:
    t = table(seed, 2)
    oracles = {
        "accuracy": sklearn.accuracy_score,
        "recall": sklearn.recall_score,
        "precision": sklearn.precision_score,
        "fpr": fairlearn.false_positive_rate,
        "selection_rate": fairlearn.selection_rate,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairlearn's own, about pandas
        frame = fairlearn.MetricFrame(
            metrics=oracles, y_true=t["label"], y_pred=t["pred"], sensitive_features=t["group"]
        )
        by_group, gaps = frame.by_group, frame.difference()
    for name in oracles:
        ours = getattr(metrics, name)(t["label"], t["pred"], sensitive_features=t["group"])
        assert list(ours.index) == list(by_group.index)  # keys first, then values
        np.testing.assert_allclose(ours, by_group[name].astype(float), **CLOSE, err_msg=name)
        gap = "group_gap" if name == "accuracy" else f"{name}_group_gap"
        ours_gap = getattr(metrics, gap)(t["label"], t["pred"], sensitive_features=t["group"])
        np.testing.assert_allclose(ours_gap, gaps[name], **CLOSE, err_msg=gap)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_scores_agree_with_scikit_learn(seed: int, weighted: bool) -> None:
    t = table(seed, 2)
    weight = t["weight"] if weighted else None
    ours = metrics.auc(t["label"], t["score"], sample_weight=weight)
    expected = sklearn.roc_auc_score(t["label"], t["score"], sample_weight=weight)
    np.testing.assert_allclose(ours, expected, **CLOSE)
    ours = metrics.brier(t["label"], t["score"], sample_weight=weight)
    expected = sklearn.brier_score_loss(t["label"], t["score"], sample_weight=weight)
    np.testing.assert_allclose(ours, expected, **CLOSE)


def test_replicates_of_slices_equal_the_rows_drawn() -> None:
    """A row of weights is a sample with repetitions: the same as repeating the rows."""
    t = table(7, 2, n=150)
    slices = np.unique(t["group"], return_inverse=True)[1]
    slices[:10] = -1  # in no slice
    drawn = np.random.default_rng(0).multinomial(150, np.full(150, 1 / 150), size=4)
    column = ScoreColumn(t["score"], t["label"].astype(float), slices, 3)
    for function, oracle in (
        (auc, sklearn.roc_auc_score),
        (brier, sklearn.brier_score_loss),
    ):
        ours = function(column, drawn.astype(float))
        for r in range(4):
            for s in range(3):
                rows = np.repeat(np.arange(150), drawn[r] * (slices == s))
                expected = oracle(t["label"][rows], t["score"][rows])
                np.testing.assert_allclose(ours[r, s], expected, **CLOSE)


def test_top5_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    label, scores = rng.integers(0, 12, 300), rng.random((300, 12))
    rank = (scores > scores[np.arange(300), label][:, None]).sum(axis=1) + 1
    expected = sklearn.top_k_accuracy_score(label, scores, k=5, labels=np.arange(12))
    assert metrics.top5_accuracy(rank) == pytest.approx(expected, abs=1e-12)


def test_undefined_is_nan_where_fairlearn_says_0() -> None:
    """A group without positives has no recall; as a 0 it would be the "worst" group."""
    label, pred, group = [1, 1, 0, 0], [1, 0, 0, 0], ["x", "x", "x", "y"]
    assert fairlearn.true_positive_rate([0], [0], pos_label=1) == 0
    ours = metrics.recall(label, pred, sensitive_features=group)
    assert ours["x"] == 0.5
    assert np.isnan(ours["y"])
    assert np.isnan(metrics.equal_opportunity_difference(label, pred, sensitive_features=group))
