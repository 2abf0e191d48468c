"""The audit's own numbers against scikit-learn and fairlearn on random tables, to 1e-12."""

from __future__ import annotations

import warnings
from typing import Any

import fairlearn.metrics as fairlearn
import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as sklearn

import fairweight as fw

from .strategies import row

CLOSE = {"rtol": 0, "atol": 1e-12}
N = 500


def table(seed: int, n_classes: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, n_classes, N)

    def model(rate: float) -> Any:
        return np.where(rng.random(N) < rate, rng.integers(0, n_classes, N), label)

    return {
        "label": label,
        "models": {"dense": model(0.15), "small": model(0.3)},
        "group": rng.choice(["x", "y", "z"], N, p=[0.5, 0.3, 0.2]),
        "weight": rng.choice([0.25, 1.0, 3.0], N),
        # two decimals: ties between scores are common
        "scores": {
            name: np.round(np.clip(0.35 * (label == 1) + 0.6 * rng.random(N), 0, 1), 2)
            for name in ("dense", "small")
        },
        "vectors": {name: rng.dirichlet(np.ones(n_classes), N) for name in ("dense", "small")},
    }


def audit(t: dict[str, Any], *, weighted: bool, **options: Any) -> pd.DataFrame:
    return fw.audit(
        t["label"],
        t["models"],
        sensitive_features={"g": t["group"]},
        sample_weight=t["weight"] if weighted else None,
        n_boot=20,
        **options,
    ).results


def both_sides(found: pd.Series) -> list[float]:
    return [found["baseline"], found["compressed"]]


def metric_frame(oracles: dict[str, Any], t: dict[str, Any], name: str, weight: Any) -> Any:
    parameters = {m: {"sample_weight": weight} for m in oracles} if weight is not None else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairlearn's own, about pandas
        return fairlearn.MetricFrame(
            metrics=oracles,
            y_true=t["label"],
            y_pred=t["models"][name],
            sensitive_features=t["group"],
            sample_params=parameters,
        )


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("seed", [0, 1])
def test_binary_values_overall_and_by_group(seed: int, weighted: bool) -> None:
    t = table(seed, 2)
    weight = t["weight"] if weighted else None
    results = audit(t, weighted=weighted)
    oracles = {
        "accuracy": sklearn.accuracy_score,
        "recall": sklearn.recall_score,
        "precision": sklearn.precision_score,
        "balanced_accuracy": sklearn.balanced_accuracy_score,
        "kappa": sklearn.cohen_kappa_score,
        "fpr": fairlearn.false_positive_rate,
        "fnr": fairlearn.false_negative_rate,
        "selection_rate": fairlearn.selection_rate,
    }
    for column, name in (("baseline", "dense"), ("compressed", "small")):
        frame = metric_frame(oracles, t, name, weight)
        for metric in oracles:
            assert row(results, metric)[column] == pytest.approx(frame.overall[metric], abs=1e-12)
            for level, expected in frame.by_group[metric].items():
                found = row(results, metric, "group", group=f"g={level}")
                assert found[column] == pytest.approx(expected, abs=1e-12), (metric, level)
            gap = "group_gap" if metric == "accuracy" else f"{metric}_group_gap"
            found = row(results, gap, "grouping", group="g")
            assert found[column] == pytest.approx(frame.difference()[metric], abs=1e-12), gap


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_group_differences(weighted: bool) -> None:
    t = table(2, 2)
    results = audit(t, weighted=weighted)
    oracles = {
        "demographic_parity_difference": fairlearn.demographic_parity_difference,
        "disparate_impact": fairlearn.demographic_parity_ratio,
        "equalized_odds_difference": fairlearn.equalized_odds_difference,
        "equal_opportunity_difference": fairlearn.equal_opportunity_difference,
    }
    for metric, oracle in oracles.items():
        expected = [
            oracle(
                t["label"], prediction, sensitive_features=t["group"],
                sample_weight=t["weight"] if weighted else None,
            )
            for prediction in t["models"].values()
        ]  # fmt: skip
        found = row(results, metric, "grouping", group="g")
        np.testing.assert_allclose(both_sides(found), expected, **CLOSE, err_msg=metric)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("seed", [0, 1])
def test_multiclass_values(seed: int, weighted: bool) -> None:
    t = table(seed, 4)
    weight = t["weight"] if weighted else None
    results = audit(t, weighted=weighted)

    def of(oracle: Any, **options: Any) -> list[Any]:
        return [
            oracle(t["label"], p, sample_weight=weight, **options) for p in t["models"].values()
        ]

    overall = {
        "accuracy": of(sklearn.accuracy_score),
        "recall": of(sklearn.recall_score, average="macro"),
        "precision": of(sklearn.precision_score, average="macro"),
        "balanced_accuracy": of(sklearn.balanced_accuracy_score),
        "kappa": of(sklearn.cohen_kappa_score),
    }
    for metric, expected in overall.items():
        np.testing.assert_allclose(both_sides(row(results, metric)), expected, **CLOSE)
    for metric, oracle in (
        ("recall", sklearn.recall_score),
        ("precision", sklearn.precision_score),
    ):
        expected = of(oracle, average=None)
        for k in range(4):
            found = row(results, metric, "class", cls=str(k))
            np.testing.assert_allclose(both_sides(found), [e[k] for e in expected], **CLOSE)
    for k in range(4):
        expected = [
            fairlearn.false_positive_rate(t["label"] == k, p == k, sample_weight=weight)
            for p in t["models"].values()
        ]
        np.testing.assert_allclose(
            both_sides(row(results, "fpr", "class", cls=str(k))), expected, **CLOSE
        )


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_confusion_is_scikit_learns(weighted: bool) -> None:
    t = table(3, 4)
    weight = t["weight"] if weighted else None
    found = fw.audit(t["label"], t["models"], sample_weight=weight, n_boot=20).confusion
    for name, prediction in t["models"].items():
        matrix = found[found["variant"] == name].pivot(
            index="label", columns="prediction", values="count"
        )
        expected = sklearn.confusion_matrix(t["label"], prediction, sample_weight=weight)
        np.testing.assert_allclose(matrix.fillna(0), expected, **CLOSE)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_binary_scores(weighted: bool) -> None:
    t = table(4, 2)
    weight = t["weight"] if weighted else None
    results = audit(t, weighted=weighted, y_score=t["scores"])
    for metric, oracle in (("auc", sklearn.roc_auc_score), ("brier", sklearn.brier_score_loss)):
        expected = [oracle(t["label"], s, sample_weight=weight) for s in t["scores"].values()]
        np.testing.assert_allclose(both_sides(row(results, metric)), expected, **CLOSE)
        for level in ("x", "y", "z"):
            here = t["group"] == level
            w = None if weight is None else weight[here]
            expected = [
                oracle(t["label"][here], s[here], sample_weight=w) for s in t["scores"].values()
            ]
            found = row(results, metric, "group", group=f"g={level}")
            np.testing.assert_allclose(both_sides(found), expected, **CLOSE)


def test_score_vectors_of_several_classes() -> None:
    t = table(5, 4)
    results = audit(t, weighted=False, y_score=t["vectors"])
    expected = [
        sklearn.roc_auc_score(t["label"], v, multi_class="ovr", average="macro")
        for v in t["vectors"].values()
    ]
    np.testing.assert_allclose(both_sides(row(results, "auc")), expected, **CLOSE)
    one_hot = np.eye(4)[t["label"]]
    expected = [((v - one_hot) ** 2).sum(axis=1).mean() for v in t["vectors"].values()]
    np.testing.assert_allclose(both_sides(row(results, "brier")), expected, **CLOSE)
    # four classes: the label is always among the top five
    assert both_sides(row(results, "top5_accuracy")) == [1.0, 1.0]


def test_top5_of_twelve_classes() -> None:
    t = table(6, 12)
    results = audit(t, weighted=False, y_score=t["vectors"])
    expected = [sklearn.top_k_accuracy_score(t["label"], v, k=5) for v in t["vectors"].values()]
    np.testing.assert_allclose(both_sides(row(results, "top5_accuracy")), expected, **CLOSE)
