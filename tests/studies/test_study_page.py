"""The page of a study: what its tables say of techniques, by hand."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from tests.scripts import loaded

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"


@pytest.fixture
def tables() -> ModuleType:
    return loaded("docs/results/study_tables.py")


def row(seed: int, treatment: str, number: int, name: str, accuracy: float) -> dict[str, object]:
    return {
        "dataset": "digits", "model": "lenet", "weight_treatment": treatment,
        "pruning_technique": "l1", "sparsity": 0.2 * number, "seed": str(seed),
        "root": f"digits/lenet/{seed}", "class": name, "accuracy": accuracy, "accuracy0": 0.9,
        "n": 10 if name == "a" else 30, "variant": f"l1-{treatment}-r{number}",
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two lineages, two classes of 10 and 30 examples; the second of two rounds is the last."""
    last = {(0, "rewind"): 0.5, (1, "rewind"): 0.7, (0, "finetune"): 0.7, (1, "finetune"): 0.8}
    rows = [row(s, t, 1, name, 0.8) for s, t in last for name in "ab"]
    rows += [row(s, t, 2, "a", accuracy) for (s, t), accuracy in last.items()]
    rows += [row(s, t, 2, "b", 0.9) for s, t in last]
    pd.DataFrame(rows).to_parquet(tmp_path / "class_rows.parquet")
    return tmp_path


def test_techniques_by_lineage(tables: ModuleType, folder: Path) -> None:
    # Accuracy after: (10 · .5 + 30 · .9) / 40 = .8 and (10 · .7 + 27) / 40 = .85, before .9: −10
    # and −5 points; mean −7.5 ± 12.706 · 3.5355 / √2. Gaps grow by 40 and 20 points.
    found = {line.split(" | ")[2]: line for line in tables.techniques(folder)[2:]}
    assert found["rewind"] == (
        "| lenet | l1 | rewind | 2 | 40.0 % | -7.50 [-39.27, +24.27] | +30.00 [-97.06, +157.06] |"
    )
    assert found["finetune"].startswith("| lenet | l1 | finetune | 2 | 40.0 % | -3.75 [")


def test_treatments_are_paired_by_lineage(tables: ModuleType, folder: Path) -> None:
    # .8 − .85 and .85 − .875: −5 and −2.5 points.
    (line,) = tables.rewound(folder)[2:]
    assert line.startswith("| lenet | l1 | 2 | -3.75 [-19.63, +12.13] | +15.00 [")


def test_no_limits_where_nothing_differs(tables: ModuleType) -> None:
    mean, low, high = tables._mean_limits(pd.Series([0.1, 0.1]))
    assert mean == pytest.approx(0.1)
    assert low != low
    assert high != high


def test_accuracy_of_the_last_round_by_data_set(tables: ModuleType, folder: Path) -> None:
    head, _, line = tables.by_data_set(folder)
    assert head == "|  | dense | l1, rewind | l1, finetune |"
    assert line == "| digits, lenet | 90.0 | 82.5 | 86.2 |"
