"""Simon Says (Blakeney et al. 2021), Table 3, from predictions through the public door.

The authors published false positives and false negatives per class, not predictions. Any
predictions with these counts have the same CEV and SDE, so some are made here: 10,000 examples,
one teacher, ten methods with four members each.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fairweight as fw
from fairweight.api import Audit

# The printed column of accuracies is permuted; these follow from the counts (erratum 1).
ACCURACY = {
    "AT + KD": 78.520,
    "PKT + KD": 78.963,
    "SP + KD": 78.413,
    "FSP + KD": 78.143,
    "KD": 78.098,
    "AT": 77.243,
    "PKT": 77.100,
    "SP": 77.335,
    "FSP": 76.928,
    "Struct Pruning": 75.285,
}


@pytest.fixture(scope="module")
def published(golden: Path) -> dict[str, Any]:
    file = golden / "simon_says_table3.json"
    if not file.is_file():
        pytest.skip(f"no file {file}")
    read: dict[str, Any] = json.loads(file.read_text())
    return read


def predictions_with(labels: NDArray[np.int64], fp: list[int], fn: list[int]) -> NDArray[np.int64]:
    """Predictions of sorted labels with these false positives and false negatives per class.

    The first examples of every class are the wrong ones, so that models agree as far as they can.
    Their answers are the false positives, laid beside them in the order of classes and turned
    round until nobody is given his own label.
    """
    assert sum(fp) == sum(fn)  # every wrong answer is a false negative here, a false positive there
    place = np.arange(len(labels)) - np.searchsorted(labels, labels)
    wrong = place < np.array(fn)[labels]
    answers = np.repeat(np.arange(len(fp)), fp)
    for turn in range(len(answers)):
        turned = np.roll(answers, turn)
        if (turned != labels[wrong]).all():
            made = labels.copy()
            made[wrong] = turned
            return made
    raise AssertionError("no turn separates all answers from their labels")


def test_predictions_have_the_counts_asked_for() -> None:
    labels = np.repeat(np.arange(3), 4)
    made = predictions_with(labels, fp=[3, 1, 1], fn=[1, 2, 2])
    for i, (fp, fn) in enumerate(((3, 1), (1, 2), (1, 2))):
        assert ((made == i) & (labels != i)).sum() == fp
        assert ((made != i) & (labels == i)).sum() == fn


@pytest.fixture(scope="module")
def audit(published: dict[str, Any]) -> Audit:
    classes = len(published["teacher"]["FP"])
    labels = np.repeat(np.arange(classes), published["n_per_class"])
    assert len(labels) == published["n_test"]
    members: dict[str, list[NDArray[np.int64]]] = {}
    for model in published["models"]:
        made = predictions_with(labels, model["FP"], model["FN"])
        members.setdefault(model["method"], []).append(made)
    teacher = predictions_with(labels, published["teacher"]["FP"], published["teacher"]["FN"])
    students = {method: np.stack(found, axis=1) for method, found in members.items()}
    # Estimates do not depend on the number of replicates.
    return fw.audit(labels, {"teacher": teacher, **students}, n_boot=20)


def value(audit: Audit, method: str, metric: str) -> float:
    rows = audit.overall.query("variant == @method and metric == @metric and scope == 'model'")
    (row,) = rows.to_dict("records")
    assert (row["n_seeds_baseline"], row["n_seeds_compressed"]) == (1, 4)
    return float(row["compressed"])


@pytest.mark.parametrize("method", ACCURACY)
def test_table_3(method: str, audit: Audit, published: dict[str, Any]) -> None:
    printed = published["table3_printed"]
    assert set(printed) == set(ACCURACY) == set(audit.result.variants)
    _, cev, sde, _ = printed[method]
    assert round(value(audit, method, "cev"), 3) == cev
    assert round(value(audit, method, "sde"), 3) == sde


@pytest.mark.parametrize("method", ACCURACY)
def test_accuracies_as_they_should_have_been_printed(method: str, audit: Audit) -> None:
    assert 100 * value(audit, method, "accuracy") == pytest.approx(ACCURACY[method], abs=0.0006)


def test_cev_goes_with_accuracy(audit: Audit, published: dict[str, Any]) -> None:
    """Correlation -.966; with the column as printed it is +.288, and the paper says so."""
    cev = [value(audit, method, "cev") for method in ACCURACY]
    accuracy = [value(audit, method, "accuracy") for method in ACCURACY]
    printed = [published["table3_printed"][method][3] for method in ACCURACY]
    assert np.corrcoef(cev, accuracy)[0, 1] == pytest.approx(-0.966, abs=0.0005)
    assert np.corrcoef(cev, printed)[0, 1] == pytest.approx(0.288, abs=0.0005)


def test_one_teacher_says_nothing_about_a_method(audit: Audit) -> None:
    """How much another teacher would differ cannot be known from one."""
    rows = audit.results[audit.results["scope"] == "method"]
    assert set(rows["variant"]) == set(ACCURACY)
    assert rows["status"].str.startswith("not_estimable: ").all()
    assert (rows["status"] == "not_estimable: one baseline model").any()
    assert (
        rows[["ci_low", "ci_high", "p_value", "noise_floor", "p_retraining"]].isna().all(axis=None)
    )
