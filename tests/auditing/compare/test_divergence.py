"""Without labels: how far probabilities lie apart; beside outcomes: predictions that changed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import fairweight as fw
from fairweight.auditing.metrics.changes import (
    first_choice_agreement,
    kl_divergence,
    total_variation,
)
from fairweight.cli.app import app
from fairweight.errors import InputError

CLASSES = "xyz"


def pair(n: int = 600, seed: int = 0) -> tuple[Any, Any, Any]:
    """Probabilities of two models; those of group b lie further apart."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n)
    logits = 2 * rng.normal(size=(n, 3))
    moved = logits + rng.normal(size=(n, 3)) * np.where(group == "a", 0.1, 0.6)[:, None]
    p, q = (np.exp(z) / np.exp(z).sum(1, keepdims=True) for z in (logits, moved))
    return group, p, q


def table(group: Any, p: Any, **more: Any) -> pd.DataFrame:
    columns = {f"p_{name}": p[:, i] for i, name in enumerate(CLASSES)}
    return pd.DataFrame({"example_id": range(len(p)), "group": group, **columns, **more})


def row(audit: fw.Audit, metric: str, group: str | None = None) -> Any:
    rows = audit.results[audit.results["metric"] == metric]
    own = rows["group"].isna() if group is None else rows["group"] == group
    return rows[own].iloc[0]


def test_distances_by_hand() -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])
    assert total_variation(p, q) == pytest.approx(0.1)
    by_hand = 0.5 * math.log(0.5 / 0.4) + 0.3 * math.log(0.3 / 0.4)
    assert kl_divergence(p, q) == pytest.approx(by_hand)
    assert kl_divergence(p, p) == 0.0
    assert kl_divergence(np.array([0.5, 0.5]), np.array([1.0, 0.0])) == math.inf
    both = np.stack([p, q]), np.stack([p, q[::-1]])
    assert first_choice_agreement(*both) == 0.5


@pytest.mark.parametrize("kind", ["csv", "list"])
def test_log_probabilities_are_told_by_their_values(tmp_path: Path, kind: str) -> None:
    """Columns and lists of logs give what the probabilities themselves give."""
    group, p, q = pair(300)
    plain = {"dense": table(group, p), "int8": table(group, q)}
    logs: dict[str, Any] = {}
    for name, held in (("dense", p), ("int8", q)):
        if kind == "csv":
            table(group, np.log(held)).to_csv(tmp_path / f"{name}.csv", index=False)
            logs[name] = str(tmp_path / f"{name}.csv")
        else:
            rows = {"example_id": range(300), "group": group, "scores": list(np.log(held)),
                    "prediction": [CLASSES[i] for i in held.argmax(1)]}  # fmt: skip
            logs[name] = pd.DataFrame(rows)
    more: dict[str, Any] = {"unlabelled": True, "groups": "group"}
    expected = fw.audit_table(plain, class_scores="p_*", **more)
    made = fw.audit_table(logs, class_scores="p_*" if kind == "csv" else None, **more)
    columns = ["metric", "group", "compressed", "compressed_low", "compressed_high"]
    left, right = (one.results[columns] for one in (expected, made))
    pd.testing.assert_frame_equal(left, right, rtol=1e-9)
    assert any("are log-probabilities (none is above 0)" in note for note in made.notes)


def test_tokens_that_are_not_all_and_long_answers_are_scaled_to_sum_to_1() -> None:
    """Log-likelihoods of -900 and -901 are probabilities of 1 / (1 + e^-1) and the rest."""
    n = 100
    held = pd.DataFrame({"example_id": range(n), "lp_A": [-900.0] * n, "lp_B": [-901.0] * n})
    other = held.assign(lp_B=-900.0, lp_A=-np.inf)
    other.loc[0, "lp_A"] = -900.0
    audit = fw.audit_table({"dense": held, "int8": other}, class_scores="lp_*", unlabelled=True)
    first = 1 / (1 + math.exp(-1))
    apart = (99 * first + abs(first - 0.5)) / 100
    assert row(audit, "total_variation")["compressed"] == pytest.approx(apart)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.0, 0.0], "all 0, which could be probabilities or their logarithms"),
        ([-0.1, -0.2], "sum to 1.72. Give probabilities, or logits less their log-sum-exp"),
        ([-2.0, 0.5], "outside .0, 1. or empty"),
    ],
)
def test_scores_that_could_mean_two_things_are_refused(values: list[float], said: str) -> None:
    held = pd.DataFrame({"example_id": range(20), "p_a": values[0], "p_b": values[1]})
    with pytest.raises(InputError, match=said):
        fw.audit_table({"dense": held, "int8": held}, class_scores="p_*", unlabelled=True)


def test_without_labels_distances_stand_beside_changed_predictions() -> None:
    group, p, q = pair()
    audit = fw.audit_table(
        {"dense": table(group, p), "int8": table(group, q)},
        unlabelled=True,
        class_scores="p_*",
        groups=["group"],
    )
    assert set(audit.results["metric"]) == {
        "flips", "total_variation", "kl_divergence", "first_choice_agreement",
    }  # fmt: skip
    far, kl = total_variation(p, q), kl_divergence(p, q)
    for name, own in ((None, group != ""), ("group=a", group == "a"), ("group=b", group == "b")):
        for metric, values in (("total_variation", far), ("kl_divergence", kl)):
            found = row(audit, metric, name)
            assert found["compressed"] == pytest.approx(values[own].mean(), rel=1e-12)
            # A mean with the limits of a numeric outcome that is 0 for the baseline.
            assert 0 <= found["ci_low"] < found["compressed"] < found["ci_high"]
            assert math.isnan(found["shift"])
            t = 1.96 * values[own].std() / math.sqrt(own.sum())
            assert found["ci_high"] - found["compressed"] >= t * 0.99
        same = row(audit, "first_choice_agreement", name)
        flips = row(audit, "flips", name)
        assert same["compressed"] == pytest.approx(1 - flips["compressed"])
        assert same["ci_low"] == pytest.approx(1 - flips["ci_high"])
        assert same["ci_high"] == pytest.approx(1 - flips["ci_low"])
    # Not a word about losses but that nothing is said of them.
    assert "without labels nothing is said about losses" in repr(audit)


def test_the_limits_are_those_of_an_outcome_with_clusters_and_weights() -> None:
    group, p, q = pair()
    rng = np.random.default_rng(8)
    cluster, weight = rng.integers(0, 50, len(p)), rng.lognormal(sigma=0.3, size=len(p))
    audit = fw.audit_table(
        {
            name: table(group, held, person=cluster, weight=weight)
            for name, held in (("dense", p), ("int8", q))
        },
        unlabelled=True,
        class_scores="p_*",
        groups=["group"],
        cluster="person",
        weight="weight",
    )
    far = total_variation(p, q)
    beside = fw.audit(
        outcomes={"dense": np.zeros(len(p)), "int8": far},
        better="lower",
        sensitive_features={"group": group},
        cluster=cluster,
        sample_weight=weight,
        n_boot=20,
    )
    for name in (None, "group=a", "group=b"):
        found, other = row(audit, "total_variation", name), row(beside, "cost", name)
        assert found["compressed"] == pytest.approx(other["shift"], rel=1e-9)
        for end in ("ci_low", "ci_high"):
            assert found[end] == pytest.approx(min(max(other[end], 0), 1), rel=1e-9)


def test_a_probability_of_0_where_the_other_is_possible_has_no_divergence() -> None:
    group, p, q = pair()
    place = int(np.flatnonzero(group == "a")[0])
    q[place] = [0.0, 0.5, 0.5]
    audit = fw.audit_table(
        {"dense": table(group, p), "int8": table(group, q)},
        unlabelled=True,
        class_scores="p_*",
        groups=["group"],
    )
    for name in (None, "group=a"):
        found = row(audit, "kl_divergence", name)
        assert math.isnan(found["compressed"])
        assert found["status"].startswith("not_estimable: the compressed model gives a probability")
    assert row(audit, "kl_divergence", "group=b")["status"] == "ok"
    assert row(audit, "total_variation")["status"] == "ok"


def test_the_score_of_one_of_two_classes_is_a_distribution() -> None:
    rng = np.random.default_rng(2)
    first = rng.random(400)
    second = np.clip(first + rng.normal(0, 0.05, 400), 0.01, 0.99)
    frames = {
        name: pd.DataFrame(
            {"example_id": range(400), "prediction": (s > 0.5).astype(int), "score": s}
        )
        for name, s in (("dense", first), ("int8", second))
    }
    audit = fw.audit_table(frames, unlabelled=True)
    found = row(audit, "total_variation")
    assert found["compressed"] == pytest.approx(np.abs(first - second).mean(), rel=1e-6)
    # Of more classes the score of the predicted one is no distribution, and that is said.
    frames["dense"].loc[0, "prediction"] = 2
    audit = fw.audit_table(frames, unlabelled=True)
    assert set(audit.results["metric"]) == {"flips"}
    assert any("Scores of the predicted class alone" in note for note in audit.result.notes)


def test_on_the_command_line_nothing_is_called_a_loss(tmp_path: Path) -> None:
    group, p, q = pair()
    for name, held in (("dense", p), ("int8", q)):
        table(group, held).to_csv(tmp_path / f"{name}.csv", index=False)
    words = ["audit", str(tmp_path / "dense.csv"), str(tmp_path / "int8.csv"), "--unlabelled"]
    words += ["--scores", "p_*", "--groups", "group", "--out", str(tmp_path / "out"), "-v"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "most in group=b" in done.output
    assert "total variation" in done.output
    for phrase in ("Loses", "lose more", "ruled out"):
        assert phrase not in done.output
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "first choice" in page


# --- beside outcomes


@pytest.mark.parametrize("numeric", [False, True])
def test_a_prediction_that_changed_is_apart_from_an_outcome_that_did(numeric: bool) -> None:
    n = 200
    rng = np.random.default_rng(1)
    label, dense = rng.integers(0, 4, n), rng.integers(0, 4, n)
    int8 = np.where(rng.random(n) < 0.3, rng.integers(0, 4, n), dense)
    scale = 2.5 if numeric else 1
    frames = {
        name: pd.DataFrame(
            {
                "example_id": range(n),
                "answer": held,
                "right": (held == label) * scale,
                "half": np.arange(n) % 2,
            }
        )
        for name, held in (("dense", dense), ("int8", int8))
    }
    audit = fw.audit_table(
        frames, outcome="right", better="higher", prediction="answer", groups=["half"], n_boot=20
    )
    changed = dense != int8
    assert row(audit, "flips")["compressed"] == pytest.approx(changed.mean())
    even = np.arange(n) % 2 == 0
    assert row(audit, "flips", "half=0")["compressed"] == pytest.approx(changed[even].mean())
    moved = (dense == label) != (int8 == label)
    assert moved.mean() < changed.mean()
    assert row(audit, "outcome" if numeric else "correct")["churn"] == pytest.approx(moved.mean())
    if not numeric:
        assert row(audit, "harmful_flips")["compressed"] == pytest.approx(
            ((dense == label) & (int8 != label)).mean()
        )
    said = audit.to_json()
    assert f"{100 * changed.mean():.1f} % changed; the outcome changed on" in said
    # Without the predictions nobody knows: of numbers there is no such row.
    alone = fw.audit_table(frames, outcome="right", better="higher", groups=["half"], n_boot=20)
    rows = alone.results[alone.results["metric"] == "flips"]
    assert len(rows) == (0 if numeric else 3)
