"""A new metric is one registered function: nothing else of the project is touched for it.

The Matthews correlation coefficient is no metric of fairweight. Here it is added as anybody would
add it, and then audited, shown, gated, chosen by and called on arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef

import fairweight as fw
from fairweight.auditing.counts.counts import Counts
from fairweight.errors import InputError

from ..auditing.strategies import row


def mcc(counts: Counts) -> Any:
    """(c n − Σ p t) / √((n² − Σ p²) (n² − Σ t²)), c right of n; p predicted, t labels per class."""
    n, right = counts.n, counts.correct.sum(axis=-1)
    top = right * n - (counts.predicted * counts.label).sum(axis=-1)
    spread = [n**2 - (side**2).sum(axis=-1) for side in (counts.predicted, counts.label)]
    with np.errstate(invalid="ignore", divide="ignore"):
        return top / np.sqrt(spread[0] * spread[1])


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    fw.metrics.register(
        name="mcc",
        kind="value",
        by=("overall", "group"),
        better="higher",
        low=-1,
        high=1,
        summary="Matthews correlation coefficient",
        formula="(c n - sum p t) / sqrt((n^2 - sum p^2) (n^2 - sum t^2))",
        source="Matthews 1975; Gorodkin 2004",
        undefined="labels or predictions are all one class",
        headline=True,
    )(mcc)
    yield
    fw.metrics.unregister("mcc")


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    rng = np.random.default_rng(4)
    label = rng.integers(0, 3, 900)
    wrong = (label + 1) % 3
    return {
        "y_true": label,
        "predictions": {
            "dense": np.where(rng.random(900) < 0.1, wrong, label),
            "small": np.where(rng.random(900) < 0.2, wrong, label),
        },
        "sensitive_features": {"half": np.repeat(["first", "second"], 450)},
    }


def audited(data: dict[str, Any]) -> fw.Audit:
    groups = data["sensitive_features"]
    return fw.audit(
        data["y_true"], data["predictions"], sensitive_features=groups, n_boot=200, random_state=1
    )


def test_its_values_are_scikit_learns(data: dict[str, Any]) -> None:
    """Two classes by hand: TP 2, FN 0, FP 1, TN 1: (2 · 1 − 1 · 0) / √(3 · 2 · 2 · 1) = .577."""
    assert fw.metrics.mcc([0, 0, 1, 1], [0, 1, 1, 1]) == pytest.approx(2 / 12**0.5)
    assert np.isnan(fw.metrics.mcc([0, 0], [0, 0]))
    results = audited(data).results
    first = data["sensitive_features"]["half"] == "first"
    for where, by, group in (
        (slice(None), "overall", None),
        (first, "group", "half=first"),
        (~first, "group", "half=second"),
    ):
        found = row(results, "mcc", by, group=group) if group else row(results, "mcc")
        for side, name in (("baseline", "dense"), ("compressed", "small")):
            expected = matthews_corrcoef(data["y_true"][where], data["predictions"][name][where])
            assert found[side] == pytest.approx(expected, abs=1e-12)


def test_an_audit_has_limits_tests_and_corrections_of_it(data: dict[str, Any]) -> None:
    found = row(audited(data).results, "mcc")
    assert found["status"] == "ok"
    assert found["ci_low"] < found["shift"] < found["ci_high"] < 0
    assert 0 < found["p_value"] < 0.05
    of_group = row(audited(data).results, "mcc", "group", group="half=first")
    assert of_group["n_family"] == 2
    assert of_group["p_value"] <= of_group["p_adjusted"] <= 1
    assert of_group["sim_low"] <= of_group["ci_low"] < of_group["ci_high"] <= of_group["sim_high"]
    assert of_group["family"] == "exploratory: mcc by group (bh)"


def test_several_models_have_rows_about_the_method(data: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    label = data["y_true"]

    def members(rate: float) -> Any:
        wrong = rng.random((len(label), 4)) < rate
        return np.where(wrong, (label[:, None] + 1) % 3, label[:, None])

    models = {"dense": members(0.1), "small": members(0.2)}
    results = fw.audit(label, models, n_boot=200, random_state=1).results
    about = results[(results["metric"] == "mcc") & (results["scope"] == "method")].iloc[0]
    assert about["interval"] == "two-way t over members and examples"
    assert about["ci_low"] < about["shift"] < about["ci_high"] < 0


def test_it_is_on_the_page(data: dict[str, Any], tmp_path: Path) -> None:
    audited(data).save(tmp_path / "audit")
    page = (tmp_path / "audit" / "report.html").read_text(encoding="utf-8")
    assert page.count(">mcc<") >= 1


def test_a_gate_may_ask_for_it(data: dict[str, Any]) -> None:
    policy = {"schema": 1, "min_group_size": 10, "rule": [
        {"metric": "mcc", "by": "group", "margin": 0.5},
        {"metric": "mcc", "by": "overall", "min": 0.99},
    ]}  # fmt: skip
    verdict = audited(data).gate(policy)
    decided = {(e["by"], e["decision"]) for e in verdict.rows.to_dict("records")}
    assert decided == {("group", "pass"), ("overall", "fail")}
    with pytest.raises(InputError, match=r"mcc has no rows by = .class.; use .overall. or"):
        audited(data).gate({"schema": 1, "rule": [{"metric": "mcc", "by": "class", "margin": 0.1}]})
