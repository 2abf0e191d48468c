"""`fairweight explain`: an audit with a section on which examples, and why."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.errors import InputError

from .conftest import Run

pytestmark = pytest.mark.usefixtures("few_metrics")


@pytest.fixture
def table(folder: Path) -> pd.DataFrame:
    """Two classes, a site that loses a third of its right answers, and a measurement."""
    rng = np.random.default_rng(0)
    n = 1200
    label = rng.integers(0, 2, n)
    site = np.where(rng.random(n) < 0.3, "x", "y")
    dense = np.where(rng.random(n) < 0.95, label, 1 - label)
    small = np.where(rng.random(n) < np.where(site == "x", 0.33, 0.02), 1 - label, dense)
    made = pd.DataFrame(
        {
            "example_id": np.arange(n), "label": label, "pred_dense": dense, "pred_small": small,
            "site": site, "person": rng.integers(0, 60, n), "age": rng.normal(40, 9, n),
        }
    )  # fmt: skip
    made.to_csv(folder / "preds.csv", index=False)
    return made


def test_a_planted_slice_is_told_and_in_the_tables(run: Run, folder: Path, table: pd.DataFrame):
    told = run(
        "explain", "preds.csv", "--groups", "site", "--part", "exemplars,slices,properties",
        "--n-boot", "100", "--out", "why",
    ).done()  # fmt: skip
    slices = pd.read_parquet(folder / "why" / "tables" / "slices.parquet")
    assert slices["slice"].iloc[0] == "site=x"
    assert slices["excess_high"].iloc[0] < -0.2
    assert "site=x" in told.out
    assert "why/report.html" in told.out.replace("\n", "")
    page = (folder / "why" / "report.html").read_text()
    assert "Which examples, and why" in page
    properties = pd.read_parquet(folder / "why" / "tables" / "example_properties.parquet")
    found = properties.set_index("property")["p_adjusted"]
    assert found["site=x"] < 0.001 < found["age"]


def test_individuals_need_to_be_named(run: Run, folder: Path, table: pd.DataFrame):
    run(
        "explain", "preds.csv", "--groups", "site", "--part", "individuals", "--cluster", "person",
        "--n-boot", "20", "--out", "who",
    ).done()  # fmt: skip
    people = pd.read_parquet(folder / "who" / "tables" / "individuals.parquet")
    assert len(people) == 60
    assert people["n"].sum() == 1200
    without = fw.audit_table(table, groups=["site"], explain=["individuals"], n_boot=20)
    assert "individuals" not in without.explanations
    assert any("whose an example is" in note for note in without.notes)


def test_what_cannot_be_asked(run: Run, table: pd.DataFrame):
    assert "'reasons'" in run("explain", "preds.csv", "--part", "reasons").refused()
    outcome = run("explain", "preds.csv", "--dataset", "digits", "--n-boot", "20")
    assert "are not in the data set 'digits'" in outcome.refused()
    with pytest.raises(InputError, match="explain="):
        _ = fw.audit_table(table, groups=["site"], n_boot=20).exemplars
