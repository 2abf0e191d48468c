"""Limits that come from draws: none for few changes, wider for few clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fairweight as fw
from fairweight.auditing.compare import bootstrap
from fairweight.auditing.compare.bootstrap import few_clusters, widened
from fairweight.auditing.compare.comparison import Slots
from fairweight.auditing.compare.estimands import Estimand
from fairweight.auditing.metrics.registry import metric

from ..strategies import row

DRAWN = ("precision", "kappa", "balanced_accuracy", "class_gap", "class_shortfall")


def audited(changed: int, n: int = 400, **options: Any) -> fw.Audit:
    """Balanced labels, 40 wrong answers of both models, and some more of the compressed one."""
    label = np.arange(n) % 2
    dense = np.where(np.arange(n) < 40, 1 - label, label)
    small = dense.copy()
    small[n - changed :] = 1 - small[n - changed :]
    return fw.audit(label, {"dense": dense, "small": small}, **{"n_boot": 200, **options})


@pytest.mark.parametrize("name", DRAWN)
def test_below_ten_changes_there_are_no_limits(name: str) -> None:
    found = row(audited(9).results, name)
    assert found["status"] == "not_estimable: too few changed predictions (9)"
    assert found["interval"] == "none: too few changes"
    for end in ("ci_low", "ci_high", "sim_low", "sim_high"):
        assert np.isnan(found[end])
    # the values stay, with limits of their own, and so does the test by exchanging predictions
    assert found["shift"] != 0
    assert found["baseline_low"] < found["baseline_high"]
    assert found["compressed_low"] < found["compressed_high"]
    assert 0 < found["p_value"] <= 1
    found = row(audited(10).results, name)
    assert found["status"] == "ok"
    assert found["ci_low"] <= found["shift"] <= found["ci_high"]


@pytest.mark.parametrize("name", DRAWN)
def test_identical_predictions_have_a_shift_of_zero(name: str) -> None:
    found = row(audited(0).results, name)
    assert found["shift"] == 0
    assert found["p_value"] == 1
    assert found["status"] == "not_estimable: too few changed predictions (0)"


def test_gaps_and_composites_keep_their_own_rules() -> None:
    group = np.array(["x", "y"] * 200)
    results = audited(4, sensitive_features={"g": group}).results
    assert row(results, "group_gap", "grouping", group="g")["status"] == "ok"
    assert row(results, "cev_pp")["status"] == "ok"
    # rates have closed forms that hold for any number of changes
    assert np.isfinite(row(results, "accuracy")["ci_low"])


def test_a_side_with_few_wrong_predictions_has_no_limits_of_its_own() -> None:
    """Both models are right about all positives but two, one of them the same."""
    label = np.repeat([1, 0], [20, 480])
    dense = label.copy()
    dense[[0, 1]] = 0
    small = dense.copy()
    small[100:130] = 1
    found = row(fw.audit(label, {"dense": dense, "small": small}, n_boot=100).results,
                "balanced_accuracy")  # fmt: skip
    # 30 changed negatives of 480 count as 30 (20 / 480)² = .05 positives of 20
    assert found["status"] == "not_estimable: 30 changed predictions count as 0"
    assert np.isnan(found["baseline_low"])  # two wrong positives


def slots(clusters: list[float]) -> Slots:
    size = len(clusters)
    nobody = np.full(size, None, dtype=object)
    outside = np.zeros(size, dtype=bool)
    return Slots("group", "group", nobody, nobody, outside, np.array(clusters))


def test_few_clusters_widen_percentile_limits_about_the_value() -> None:
    estimand = Estimand(metric("kappa"), slots([20, 50, np.nan]), np.full(3, 100.0), None)
    value = np.array([0.5, 0.5, 0.5])
    limits = np.array([0.4, 0.4, 0.4]), np.array([0.55, 0.55, 0.55])
    low, high = widened(value, limits, few_clusters(estimand), 0.05)
    factor = scipy.stats.t.ppf(0.975, 19) / scipy.stats.norm.ppf(0.975)  # 2.093 / 1.960
    assert low == pytest.approx([0.5 - 0.1 * factor, 0.4, 0.4])
    assert high == pytest.approx([0.5 + 0.05 * factor, 0.55, 0.55])
    # limits that miss their own value are not drawn in
    limits = np.full(3, 0.52), np.full(3, 0.6)
    low, high = widened(value, limits, few_clusters(estimand), 0.05)
    assert low[0] == pytest.approx(0.52)
    assert high[0] == pytest.approx(0.5 + 0.1 * factor)


def test_the_audit_widens_for_few_clusters_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 600)
    dense = np.where(rng.random(600) < 0.1, 1 - label, label)
    small = np.where(rng.random(600) < 0.2, 1 - label, label)
    models = {"dense": dense, "small": small}
    few = row(fw.audit(label, models, cluster=np.arange(600) % 30, n_boot=500).results, "kappa")
    many = row(fw.audit(label, models, cluster=np.arange(600) % 60, n_boot=500).results, "kappa")
    assert few["interval"].endswith("widened by t / z for few clusters")
    assert many["interval"] == "percentile bootstrap (500 replicates)"
    assert few["ci_low"] < few["shift"] < few["ci_high"]
    monkeypatch.setattr(bootstrap, "FEW_CLUSTERS", 0)
    unwidened = row(
        fw.audit(label, models, cluster=np.arange(600) % 30, n_boot=500).results, "kappa"
    )
    assert unwidened["ci_low"] > few["ci_low"]
    assert unwidened["ci_high"] < few["ci_high"]


def test_an_unstable_row_still_counts_in_its_family() -> None:
    """A class that is hardly ever predicted has no stable precision, and is one of three."""
    y = np.repeat(["a", "b", "c"], 60)
    dense = y.copy()
    dense[y == "c"] = "a"
    dense[-1] = "c"
    small = dense.copy()
    small[:5] = "b"
    results = fw.audit(y, {"dense": dense, "small": small}, n_boot=200).results
    rows = results[(results["metric"] == "precision") & (results["by"] == "class")]
    tested = rows[rows["family"].notna()]
    assert (tested["n_family"] == len(tested)).all()
