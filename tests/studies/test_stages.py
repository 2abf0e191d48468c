"""Audits as stages: what they read, and one attribute of several."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("torch")

from fairweight.errors import UnknownNameError
from fairweight.runs.plan import plan
from fairweight.runs.runner import run
from fairweight.runs.store import Store
from fairweight.specs.toml import read_study
from fairweight.studies.stages import keep_tasks
from fairweight.tables.sources import CLASSES_KEYS


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two examples with two attributes each."""
    columns = {
        "example_id": ["a", "a", "b", "b"],
        "task": ["blond", "smiles"] * 2,
        "label": [1, 0, 0, 1],
        "prediction": [0, 0, 0, 1],
        "score": [0.4, 0.1, 0.2, 0.9],
        "scores": [[0.6, 0.4], [0.9, 0.1], [0.8, 0.2], [0.1, 0.9]],
    }
    path = tmp_path / "table.parquet"
    held = pa.table(columns).replace_schema_metadata({CLASSES_KEYS[0]: json.dumps(["0", "1"])})
    pq.write_table(held, path)
    return path


def test_one_attribute_becomes_the_label(table: Path) -> None:
    keep_tasks(table, ["blond"])
    held = pq.read_table(table)
    assert held.column_names == ["example_id", "label", "prediction", "score", "scores"]
    assert held["label"].to_pylist() == ["yes", "no"]
    assert held["prediction"].to_pylist() == ["no", "no"]
    assert held["score"].to_pylist() == [0.4, 0.2]
    assert json.loads(held.schema.metadata[CLASSES_KEYS[0]]) == ["no", "yes"]


def test_several_attributes_stay_tasks(table: Path) -> None:
    keep_tasks(table, ["smiles", "blond"])
    assert pq.read_table(table)["task"].to_pylist() == ["blond", "smiles"] * 2


def test_an_unknown_attribute(table: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"audited_tasks.*'blonde'.*'blond'"):
        keep_tasks(table, ["blonde"])


def test_an_audit_of_one_attribute(tmp_path: Path) -> None:
    """The accuracy of `loop` counted by hand; the predictions themselves keep both attributes."""
    experiment = {
        "name": "digits",
        "members": 1,
        "groups": ["ink"],
        "positive": "yes",
        "audited_tasks": ["loop"],
        "tie_rule": "max",
        "fill": "random",
        "explain": ["exemplars"],
        "n_boot": 20,
        "data": {"name": "digits", "options": {"attributes": True}, "stratify": ["ink"]},
        "model": {"architecture": "lenet", "width": 0.5},
        "training": {"epochs": 1, "batch_size": 64, "lr": 0.1},
        "copies": [{"method": "global-magnitude", "fields": {"sparsity": 0.8}, "name": "pruned"}],
    }
    planned = plan(read_study({"name": "s", "experiment": [experiment]}))
    store = Store(tmp_path)
    assert run(planned.stages.values(), store, workers=0).complete
    results = pd.read_parquet(store.read(planned.audits["digits"]) / "tables" / "results.parquet")
    overall = results[(results["metric"] == "accuracy") & (results["by"] == "overall")].iloc[0]
    for variant, column in (("dense", "baseline"), ("pruned", "compressed")):
        (key,) = (one.asked_by for one in planned.models if one.variant == variant)
        held = pd.read_parquet(store.read(key) / "predictions.parquet")
        assert held["task"].nunique() > 1
        held = held[held["task"] == "loop"]
        assert overall[column] == pytest.approx((held["label"] == held["prediction"]).mean())
    assert results["task"].isna().all()
    assert set(results["class"].dropna()) == {"no", "yes"}
