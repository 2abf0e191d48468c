"""From audits to class rows: whose accuracy, whose parent, which root."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.auditing.explain.class_rows import class_rows, quartile
from fairweight.auditing.result import AuditResult
from fairweight.auditing.schema import column_names
from fairweight.errors import InputError

LABELS = np.repeat([0, 1], 5)
# How many of the five examples of each class a member gets right.
RIGHT = {
    ("dense", 0): (5, 4),
    ("dense", 1): (4, 3),
    ("pruned-r1", 0): (4, 3),
    ("pruned-r1", 1): (3, 3),
    ("pruned-r2", 0): (2, 1),
    ("int8", 0): (5, 4),
}
MODELS = pd.DataFrame(
    {
        "variant": [variant for variant, _ in RIGHT],
        "seed": [seed for _, seed in RIGHT],
        "parent": [None, None, "dense:0", "dense:1", "pruned-r1:0", "dense:0"],
        "dataset": "toy",
        "model": "lenet",
        "method": ["none", "none", *["global-magnitude"] * 3, "int8-static"],
        "treatment": [None, None, "rewind", "rewind", "rewind", None],
        "sparsity": [0.0, 0.0, 0.2, 0.2, 0.36, 0.01],
        "nominal_sparsity": [0.0, 0.0, 0.2, 0.2, 0.36, 0.0],
    }
)
COVARIATES = pd.DataFrame(
    {
        "class": ["0", "1"],
        "imbalance": [0.1, -0.1],
        "class_entropy": [3.0, 4.0],
        "intra_class_distance": [7.0, 8.0],
    }
)


@pytest.fixture(scope="module")
def result() -> AuditResult:
    tables = []
    for (variant, seed), right in RIGHT.items():
        correct = np.concatenate([np.arange(5) < n for n in right])
        tables.append(
            pd.DataFrame(
                {
                    "example_id": np.arange(10),
                    "label": LABELS,
                    "prediction": np.where(correct, LABELS, 1 - LABELS),
                    "variant": variant,
                    "seed": seed,
                }
            )
        )
    held = [table for table in tables if table["variant"].iloc[0] != "int8"]
    audit: Any = fw.audit_table(
        pd.concat(held), baseline="dense", variants=MODELS, n_boot=20, random_state=0
    )
    return audit.result


def test_rows_are_the_recalls_with_those_of_the_unpruned_ancestor(result: AuditResult) -> None:
    rows = class_rows([result], {"toy": COVARIATES})
    assert tuple(rows.columns) == column_names("class_rows")
    keyed = rows.set_index(["variant", "seed", "class"])
    assert len(rows) == 6
    # The second round of seed 0 descends from the first, and that from dense:0.
    assert keyed.loc[("pruned-r2", "0", "0"), "accuracy"] == pytest.approx(2 / 5)
    assert keyed.loc[("pruned-r2", "0", "0"), "accuracy0"] == pytest.approx(5 / 5)
    assert keyed.loc[("pruned-r1", "1", "1"), "accuracy0"] == pytest.approx(3 / 5)
    assert keyed.loc[("pruned-r1", "1", "1"), "root"] == "toy/lenet/1"
    assert keyed.loc[("pruned-r2", "0", "1"), "root"] == "toy/lenet/0"
    assert keyed.loc[("pruned-r2", "0", "1"), "imbalance"] == -0.1
    assert set(rows["pruning_technique"]) == {"global_unstructured"}
    assert set(rows["weight_treatment"]) == {"rewind"}
    assert set(rows["n"]) == {5}
    assert set(rows["status"]) == {"ok"}
    assert rows["sparsity"].tolist() == [0.2, 0.2, 0.36, 0.36, 0.2, 0.2]  # seed 0, then seed 1
    # accuracy0: 1, .8, 1, .8, .8, .6; quartiles .8, .8, .95.
    assert rows["accuracy0_quartile"].tolist() == [4, 1, 4, 1, 1, 1]


def test_without_lineage_members_are_matched_by_seed(result: AuditResult) -> None:
    bare = replace(result, variants_table=MODELS.drop(columns="parent"))
    keyed = class_rows([bare], {"toy": COVARIATES}).set_index(["variant", "seed", "class"])
    assert keyed.loc[("pruned-r2", "0", "1"), "accuracy0"] == pytest.approx(4 / 5)
    seeds = result.per_seed["seed"].where(result.per_seed["variant"] == "dense", "9")
    strangers = replace(
        bare,
        per_seed=result.per_seed[result.per_seed["variant"] != "pruned-r1"].assign(seed=seeds),
        variants_table=bare.variants_table.assign(seed=[0, 1, 8, 9, 9, 0]).drop(index=2),
    )
    rows = class_rows([strangers], {"toy": COVARIATES})
    assert set(rows["status"]) == {"not_estimable: no unpruned model of this seed"}
    assert rows["accuracy0_quartile"].isna().all()


def test_a_model_without_its_pruned_channels_has_the_sparsity_asked_for(
    result: AuditResult,
) -> None:
    table = MODELS.assign(n_params=[100, 100, 100, 100, 64, 100])
    table.loc[4, "sparsity"] = 0.0
    rows = class_rows([replace(result, variants_table=table)], {"toy": COVARIATES})
    assert sorted(set(rows["sparsity"])) == [0.2, 0.36]


def test_missing_covariates_and_two_audits(result: AuditResult) -> None:
    other = replace(result, variants_table=MODELS.assign(dataset="other"))
    rows = class_rows([result, other], {"toy": COVARIATES})
    assert len(rows) == 12
    unknown = rows[rows["dataset"] == "other"]
    assert set(unknown["status"]) == {"not_estimable: no covariates of this class and data set"}
    assert set(rows.loc[rows["dataset"] == "toy", "status"]) == {"ok"}
    assert rows["root"].nunique() == 4


def test_what_cannot_be_used_is_said(result: AuditResult) -> None:
    with pytest.raises(InputError, match="No audit was given"):
        class_rows([], {})
    with pytest.raises(InputError, match="no variants table"):
        class_rows([replace(result, variants_table=None)], {})
    with pytest.raises(InputError, match="no column 'method'"):
        class_rows([replace(result, variants_table=MODELS.drop(columns="method"))], {})
    with pytest.raises(InputError, match="2 tasks"):
        class_rows([replace(result, tasks=("a", "b"))], {})


def test_quartiles_are_those_of_pandas() -> None:
    values = np.random.default_rng(0).random(101)
    wanted = pd.qcut(values, 4, labels=False) + 1
    np.testing.assert_array_equal(quartile(values), wanted)
    assert np.isnan(quartile(np.array([np.nan]))).all()
