"""Bounds for the gate where too few predictions changed for an interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import fairweight as fw
from fairweight.api import Audit
from fairweight.auditing.archive import from_json
from fairweight.auditing.result import DIVISORS


def predictions(n: int, changed: int, classes: int = 2) -> dict[str, Any]:
    """Nine in ten right, and int8 that changes the last `changed` right answers."""
    i = np.arange(n)
    label = i % classes
    dense = np.where(i % 10 == 0, (label + 1) % classes, label)
    int8 = dense.copy()
    places = np.flatnonzero(dense == label)[n // 2 : n // 2 + changed]
    int8[places] = (int8[places] + 1) % classes
    return {"label": label, "dense": dense, "int8": int8}


def audited(given: dict[str, Any], **more: Any) -> Audit:
    models = {"dense": given["dense"], "int8": given["int8"]}
    return fw.audit(given["label"], models, n_boot=40, **more)


def bound(audit: Audit, metric: str, by: str = "overall", **keys: Any) -> Any:
    rows = audit.bounds
    chosen = (rows["metric"] == metric) & (rows["kind"] == by) & (rows["quantity"] == "shift")
    for name, wanted in keys.items():
        chosen &= rows[name] == wanted
    (row,) = [row for _, row in rows[chosen].iterrows()]
    return row


def most(k: float, n: float, divisor: int = 1) -> float:
    """Upper limit of Clopper and Pearson of the share that changes, one-sided."""
    return float(beta.ppf(1 - 0.05 / divisor, k + 1, n - k))


def test_four_changes_in_ten_thousand_can_pass() -> None:
    """At most 9.15 change. Kappa of two equal classes: 9.15 / 10,000 over 1 − p_e = .5."""
    audit = audited(predictions(10_000, 4))
    row = bound(audit, "kappa")
    assert most(4, 10_000) * 10_000 == pytest.approx(9.15, abs=0.005)
    assert row["low_1"] == pytest.approx(-most(4, 10_000) / 0.5, rel=1e-3)
    assert np.isnan(row["high_1"])
    assert row["status"] == (
        "bound: at most 9.15 predictions change (4 did), all counted as harmful"
    )
    rules = [
        {"metric": name, "by": "overall", "margin": 0.002}
        for name in ("kappa", "precision", "balanced_accuracy")
    ]
    verdict = audit.gate({"rule": rules})
    assert verdict.passed
    assert verdict.rows["reason"].str.endswith("all counted as harmful").all()
    assert verdict.rows["high"].isna().all()
    assert not verdict.rows["equivalent"].any()


def test_every_level_has_its_own_number_of_changes() -> None:
    row = bound(audited(predictions(1000, 3)), "balanced_accuracy")
    # two classes of 500: every change is one of 500 of one class, half of the mean
    for j in DIVISORS:
        expected = -most(3, 1000, j) * 1000 / 500 / 2
        assert row[f"low_{j}"] == pytest.approx(expected)


def test_no_change_at_all_is_three_in_n() -> None:
    """0 of 400: 1 − .05^(1/400) = .00746, not an interval of no width."""
    given = predictions(400, 0)
    audit = audited(given)
    row = bound(audit, "balanced_accuracy")
    assert row["low_1"] == pytest.approx(-(1 - 0.05 ** (1 / 400)) * 400 / 200 / 2)
    rule = {"metric": "balanced_accuracy", "by": "overall"}
    assert audit.gate({"rule": [rule | {"margin": 0.02}]}).passed
    open_ = audit.gate({"rule": [rule | {"margin": 0.005}]})
    assert open_.outcome == "cannot tell"
    assert open_.rows["reason"].iloc[0].startswith("the loss may be up to ")


def test_ten_changes_have_an_interval() -> None:
    assert bound(audited(predictions(2000, 9)), "kappa")["status"].startswith("bound: ")
    row = bound(audited(predictions(2000, 10)), "kappa")
    assert row["status"] == "ok"
    assert row["high_1"] > row["low_1"]


def test_only_relevant_changes_count() -> None:
    """Fifteen wrong answers become other wrong ones: nothing for the mean recall, all for kappa."""
    given = predictions(3000, 0, classes=3)
    wrong = np.flatnonzero(given["dense"] != given["label"])[:15]
    given["int8"][wrong] = 3 - given["label"][wrong] - given["dense"][wrong]  # the third class
    audit = audited(given)
    assert "(0 did)" in bound(audit, "balanced_accuracy")["status"]
    assert bound(audit, "kappa")["status"] == "ok"


def test_classes_have_their_own_changes() -> None:
    """Three classes, four answers go from 0 to 1: class 2 saw none of it."""
    n = 3000
    label = np.arange(n) % 3
    dense = np.where(np.arange(n) % 10 == 0, (label + 1) % 3, label)
    int8 = dense.copy()
    int8[np.flatnonzero((dense == 0) & (label == 0))[:4]] = 1
    audit = audited({"label": label, "dense": dense, "int8": int8})
    told = [bound(audit, "precision", "class", **{"class": c})["status"] for c in "012"]
    assert ["(4 did)" in text for text in told] == [True, True, False]
    assert "(0 did)" in told[2]
    right, all_ = (dense == 2) & (label == 2), dense == 2
    h = (1 - 0.05 ** (1 / n)) * n
    expected = right.sum() / all_.sum() - right.sum() / (all_.sum() + h)
    row = bound(audit, "precision", "class", **{"class": "2"})
    assert row["low_1"] == pytest.approx(-expected)


def test_lower_is_better_bounds_from_above() -> None:
    row = bound(audited(predictions(3000, 2, classes=3)), "fpr")
    # 1,000 of each class: all become false positives of one, 2,000 others, a third of the mean
    assert row["high_1"] == pytest.approx(most(2, 3000) * 3000 / 2000 / 3)
    assert np.isnan(row["low_1"])


def test_scores() -> None:
    given = predictions(2000, 0)
    score = np.where(given["label"] == 1, 0.7, 0.3) + np.arange(2000) % 7 / 50
    moved = score.copy()
    moved[[3, 4, 5]] = 0.5
    audit = audited(given, y_score={"dense": score, "int8": moved})
    h = most(3, 2000) * 2000
    assert bound(audit, "auc")["low_1"] == pytest.approx(-h / 1000)
    assert bound(audit, "brier")["high_1"] == pytest.approx(h / 2000)
    assert bound(audit, "auc")["status"] == (
        "bound: at most 7.74 scores change (3 did), all counted as harmful"
    )
    rules = [{"metric": m, "by": "overall", "margin": 0.01} for m in ("auc", "brier")]
    assert audit.gate({"rule": rules}).passed


def test_clusters_and_weights_count_as_if_changes_came_together() -> None:
    """50 clusters of 20: 0 changes of 1,000 are 0 of 50. Weights 1 and 3: (4² / 10) / 2 = .8."""
    given = predictions(1000, 0)
    clustered = audited(given, cluster=np.arange(1000) // 20)
    assert bound(clustered, "balanced_accuracy")["low_1"] == pytest.approx(-most(0, 50))
    weighted = audited(given, sample_weight=1.0 + 2 * (np.arange(1000) // 2 % 2))
    assert bound(weighted, "balanced_accuracy")["low_1"] == pytest.approx(-most(0, 800), rel=1e-6)


def test_a_floor_is_about_the_value_which_needs_no_changes() -> None:
    audit = audited(predictions(2000, 3))
    verdict = audit.gate({"rule": [{"metric": "kappa", "by": "overall", "min": 0.7}]})
    (row,) = verdict.rows.to_dict("records")
    assert row["decision"] == "pass"
    assert row["low"] < row["estimate"] < row["high"]


def test_a_stored_audit_has_the_bound_too() -> None:
    audit = audited(predictions(2000, 3))
    rule = {"rule": [{"metric": "kappa", "by": "overall", "margin": 0.02}]}
    again = Audit(from_json(audit.to_json())).gate(rule)
    assert again.passed
    assert again.rows["bound"].tolist() == audit.gate(rule).rows["bound"].tolist()


def test_what_has_no_bound_stays_open() -> None:
    """A gap of precisions has none: nothing changed, and nobody knows the worst."""
    given = predictions(1000, 0)
    audit = audited(given, sensitive_features={"half": np.arange(1000) < 500})
    asked = {"metric": "precision_group_gap", "by": "grouping", "margin": 0.1}
    (row,) = audit.gate({"rule": [asked]}).rows.to_dict("records")
    assert (row["decision"], row["reason"]) == (
        "cannot tell", "it has no limits: every draw is alike",
    )  # fmt: skip
