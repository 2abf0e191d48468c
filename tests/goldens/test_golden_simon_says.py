"""Goldens of Simon Says: its Tables 2 and 3 and a sentence, from the authors' counts.

CEV, SDE and accuracies (G1, G2) are in tests/auditing/test_simon_says.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairweight.auditing.counts.counts import Counts
from fairweight.auditing.metrics import changes
from fairweight.auditing.metrics.rates import fnr, fpr, recall
from fairweight.data.imbalance import SIMON_SAYS


@pytest.fixture(scope="module")
def published(golden: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((golden / "simon_says_table3.json").read_text())
    return read


def counts_of(published: dict[str, Any], models: list[dict[str, Any]]) -> Counts:
    """Counts of (models, classes) from false positives and false negatives."""
    fp, fn = (np.array([model[kind] for model in models], dtype=float) for kind in ("FP", "FN"))
    label = np.full(fp.shape, float(published["n_per_class"]))
    classes = tuple(str(i) for i in range(fp.shape[1]))
    return Counts(label, label - fn + fp, label - fn, np.zeros(len(models)), classes)


def class_accuracy(published: dict[str, Any], method: str) -> np.ndarray:
    models = [model for model in published["models"] if model["method"] == method]
    return 100 * recall(counts_of(published, models)).mean(axis=0)


def test_rates_of_classes_are_those_of_the_counts(published: dict[str, Any]) -> None:
    teacher = published["teacher"]
    counts = counts_of(published, [teacher])
    np.testing.assert_allclose(fnr(counts)[0], np.array(teacher["FN"]) / 100, atol=1e-12)
    np.testing.assert_allclose(fpr(counts)[0], np.array(teacher["FP"]) / 9900, atol=1e-12)


def test_g3_the_ratios_of_the_text(published: dict[str, Any]) -> None:
    """SDE falls to a half, and CEV to less than a quarter, of what pruning alone gives."""
    printed = published["table3_printed"]
    _, cev_alone, sde_alone, _ = printed["Struct Pruning"]
    ratios = {
        method: (round(printed[method][1] / cev_alone, 4), round(printed[method][2] / sde_alone, 4))
        for method in ("AT + KD", "PKT + KD")
    }
    assert ratios == {"AT + KD": (0.2010, 0.4936), "PKT + KD": (0.2132, 0.4908)}


def test_g4_distances_and_accuracy_beside_cev(printed: dict[str, Any]) -> None:
    rows = np.array(list(printed["table_3"].values()))
    of_cev = rows[:, 4]
    found = [np.corrcoef(of_cev, rows[:, place])[0, 1] for place in range(4)]
    assert found == pytest.approx([0.430, 0.509, 0.655, 0.921], abs=1e-3)
    assert np.corrcoef(of_cev, rows[:, 6])[0, 1] == pytest.approx(0.288, abs=5e-4)


def test_g5_the_sentence_about_shrew(printed: dict[str, Any], published: dict[str, Any]) -> None:
    """An improvement of 88.09 % from 29.99 to 54.24 follows from no numbers that are known."""
    shrew = printed["by_superclass"].index("shrew")
    alone, helped = (
        class_accuracy(published, method)[shrew] for method in ("Struct Pruning", "AT + KD")
    )
    assert (alone, helped) == pytest.approx((29.00, 55.25))
    improvements = [
        round(100 * (after / before - 1), 1)
        for before, after in ((29.99, 54.24), (29.99, 56.24), (alone, helped))
    ]
    assert improvements == [80.9, 87.5, 90.5]
    assert 88.1 not in improvements


def test_g6_table_2_adds_true_positives_and_a_share(
    printed: dict[str, Any], published: dict[str, Any]
) -> None:
    """All 75 cells are TP + TN / n, which is about .99 points above the accuracy of the class."""
    cells = 0
    for place, method in enumerate(printed["columns"]):
        models = [model for model in published["models"] if model["method"] == method]
        counts = counts_of(published, models)
        right = class_accuracy(published, method)
        wrongly_given = (counts.predicted - counts.correct).mean(axis=0)
        n, per_class = published["n_test"], published["n_per_class"]
        share_of_negatives = (n - per_class - wrongly_given) / n
        for name, row in printed["bias"].items():
            at = printed["by_superclass"].index(name)
            made = right[at] * per_class / 100 + share_of_negatives[at]
            assert row[place] == pytest.approx(made, abs=0.005)
            # Four models of a hundred examples give quarters; the share is .99 everywhere.
            quarters = 4 * (row[place] + 0.01)
            assert quarters == pytest.approx(round(quarters), abs=1e-9)
            cells += 1
    assert cells == 75


def test_the_names_of_classes_are_those_of_others(printed: dict[str, Any]) -> None:
    """The fifteen down-sampled classes of the product are those that were really down-sampled."""
    alphabetical = sorted(printed["by_superclass"])
    really = [alphabetical[printed["by_superclass"].index(name)] for name in printed["bias"]]
    assert list(SIMON_SAYS) == really
    assert list(SIMON_SAYS.values()) == [0.1] * 5 + [0.2] * 5 + [0.5] * 5


def test_no_published_baseline_is_zero(published: dict[str, Any]) -> None:
    teacher = published["teacher"]
    assert (min(teacher["FP"]), min(teacher["FN"])) == (4, 3)


def test_the_sum_of_both_variances_is_not_what_was_published(published: dict[str, Any]) -> None:
    teacher = counts_of(published, [published["teacher"]])
    for method, (_, cev, _, _) in published["table3_printed"].items():
        models = [model for model in published["models"] if model["method"] == method]
        many = counts_of(published, models)
        mean = Counts(
            teacher.label,
            many.predicted.mean(axis=0, keepdims=True),
            many.correct.mean(axis=0, keepdims=True),
            np.zeros(1),
            many.classes,
        )
        fpr, fnr = (
            f(teacher, mean)[0]
            for f in (changes.normalized_fpr_change, changes.normalized_fnr_change)
        )
        total = np.var(fpr) + np.var(fnr)
        assert round(total / 2, 3) == cev
        assert total == pytest.approx(2 * cev, rel=1e-6)
