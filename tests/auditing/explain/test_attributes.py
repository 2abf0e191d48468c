"""Attributes of an audit laid out as Iofinova et al. read them: the audit's own numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.auditing.explain.attributes import attribute_values, settings_table
from fairweight.auditing.explain.explanations import ExplainRequest
from fairweight.auditing.pipeline import audited
from fairweight.auditing.result import AuditResult
from fairweight.auditing.schema import column_names
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import SourceRef, TableSpec, sources_of

TASKS = ("hat", "scarf")


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    """Two attributes; hats lean to one sex and to one of three ages."""
    rng = np.random.default_rng(0)
    n = 240
    sex = rng.choice(["f", "m"], n)
    age = rng.choice(["old", "mid", "young"], n)
    tables = []
    for task in TASKS:
        label = rng.random(n) < np.where(sex == "m", 0.6, 0.3) + 0.2 * (age == "old")
        for variant, noise in (("dense", 0.4), ("pruned", 0.6)):
            score = np.clip(label + noise * rng.standard_normal(n), 0.01, 0.99)
            tables.append(
                pd.DataFrame(
                    {
                        "example_id": np.arange(n),
                        "task": task,
                        "variant": variant,
                        "seed": 0,
                        "label": label.astype(int),
                        "prediction": (score > 0.5).astype(int),
                        "score": score,
                        "sex": sex,
                        "age": age,
                    }
                )
            )
    folder = tmp_path_factory.mktemp("attributes")
    pd.concat(tables).to_parquet(folder / "predictions.parquet")
    variants = pd.DataFrame(
        {"variant": ["dense", "pruned"], "seed": [0, 0], "method": ["none", "gmp"],
         "sparsity": [0.0, 0.9]}
    )  # fmt: skip
    variants.to_parquet(folder / "variants.parquet")
    tables = TableSpec(
        sources_of(str(folder / "predictions.parquet")),
        baseline="dense",
        variants=SourceRef(str(folder / "variants.parquet")),
        groups=["sex", "age", "sex*age"],
        task="task",
    )
    return audited(tables, AuditOptions(n_boot=20), explain=ExplainRequest(parts=("similarity",)))


@pytest.fixture(scope="module")
def values(audit: AuditResult) -> pd.DataFrame:
    return audit.explanations["attributes"]


def one(frame: pd.DataFrame, **where: object) -> pd.Series:
    for column, wanted in where.items():
        own = frame[column].isna() if wanted is None else frame[column] == wanted
        frame = frame[own]
    (row,) = [row for _, row in frame.iterrows()]
    return row


def test_both_sides_have_the_numbers_of_the_audit(audit: AuditResult, values: pd.DataFrame) -> None:
    rows = audit.results[audit.results["scope"].fillna("model") == "model"]
    told = one(rows, metric="tcb", by="overall", task="hat")
    dense = one(values, variant="dense", metric="tcb", task="hat")
    pruned = one(values, variant="pruned", metric="tcb", task="hat")
    assert (dense["value"], dense["low"]) == (told["baseline"], told["baseline_low"])
    assert (pruned["value"], pruned["high"]) == (told["compressed"], told["compressed_high"])
    assert pruned["shift"] == told["shift"]
    assert np.isnan(dense["shift"])
    assert (dense["sparsity"], pruned["sparsity"], pruned["method"]) == (0.0, 0.9, "gmp")


def test_a_binary_column_is_one_category_and_levels_of_others_are_one_each(
    audit: AuditResult, values: pd.DataFrame
) -> None:
    amplified = values[(values["metric"] == "bias_amplification") & (values["task"] == "hat")]
    categories = set(amplified["category"])
    assert categories == {"sex", "age=old", "age=mid", "age=young"}
    assert len(amplified) == 8  # of two variants; intersections are left out
    sex = one(amplified, variant="pruned", category="sex")
    assert sex["n"] == audit.n_examples
    told = audit.results[
        (audit.results["metric"] == "bias_amplification")
        & (audit.results["group"] == "sex=m")
        & (audit.results["task"] == "hat")
        & (audit.results["scope"] == "model")
    ]
    assert sex["value"] == told["compressed"].iloc[0]


def test_the_mean_over_attributes_is_a_row_without_a_task(values: pd.DataFrame) -> None:
    both = [one(values, variant="dense", metric="accuracy", task=t)["value"] for t in TASKS]
    mean = one(values, variant="dense", metric="accuracy", task=None)
    assert mean["value"] == pytest.approx(sum(both) / 2)
    related = one(values, variant="pruned", metric="interrelation", task=None)
    own = [one(values, variant="pruned", metric="interrelation", task=t)["value"] for t in TASKS]
    assert related["value"] == pytest.approx(sum(own) / 2)
    assert np.isnan(related["low"])


def test_settings_are_under_one_another_without_means(audit: AuditResult) -> None:
    found = settings_table([("joint", audit), ("single", replace(audit, variants=("pruned",)))])
    assert list(found.columns) == list(column_names("settings"))
    assert found["task"].notna().all()
    assert found["setting"].value_counts().to_dict() == {
        "joint": len(found) // 2,
        "single": len(found) // 2,
    }
    assert list(settings_table([]).columns) == list(column_names("settings"))


def test_an_audit_without_a_variants_table_has_no_levels(audit: AuditResult) -> None:
    bare = attribute_values(replace(audit, variants_table=None))
    assert bare["sparsity"].isna().all()
    assert set(bare["metric"]) >= {"accuracy", "auc", "ece", "uncertainty"}
    assert "interrelation" not in set(bare["metric"])


def test_classes_without_bias_amplification_leave_the_overall_rows() -> None:
    """Three classes have no positive one, so no group has a bias amplification."""
    table = {
        "example_id": [0, 0, 1, 1, 2, 2], "task": ["hat", "scarf"] * 3,
        "label": ["a", "b", "c", "a", "b", "c"], "a=b": ["x", "x", "y", "y", "y", "y"],
        "pred_dense": ["a", "b", "c", "a", "b", "a"], "pred_int8": ["a", "b", "c", "a", "a", "a"],
    }  # fmt: skip
    tables = TableSpec(sources_of(table), groups=["a=b"])
    made = attribute_values(audited(tables, AuditOptions(n_boot=20)))
    assert set(made["category"].dropna()) == set()
    accuracy = made[(made["metric"] == "accuracy") & (made["variant"] == "dense")]
    assert dict(zip(accuracy["task"], accuracy["value"], strict=True))["hat"] == 1.0


def test_an_audit_of_one_attribute_is_beside_the_joint_one(audit: AuditResult) -> None:
    """Its rows name no task: the audit does."""
    rng = np.random.default_rng(1)
    label = rng.integers(0, 2, 200)
    alone = pd.DataFrame({"example_id": np.arange(200), "task": TASKS[0], "label": label})
    for variant in ("dense", "pruned"):
        alone[f"pred_{variant}"] = np.where(rng.random(200) < 0.2, 1 - label, label)
    made = fw.audit_table(alone, task="task", n_boot=20).result
    assert made.results["task"].isna().all()
    found = settings_table([("joint", audit), ("single", made)])
    assert set(found.loc[found["setting"] == "single", "task"]) == {TASKS[0]}
