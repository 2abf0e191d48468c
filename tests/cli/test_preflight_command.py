"""`fairweight preflight` with one dense model, several, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from .conftest import Run


@pytest.fixture
def dense(folder: Path) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 120
    label = np.arange(n) % 2
    wrong = rng.random(n) < 0.1
    frame = pd.DataFrame(
        {
            "example_id": np.arange(n),
            "label": label,
            "prediction": np.where(wrong, 1 - label, label),
            "score": rng.random(n).round(3),
            "sex": np.where(np.arange(n) % 3 == 0, "f", "m"),
        }
    )
    frame.to_csv(folder / "dense.csv", index=False)
    return frame


def test_one_dense_model(run: Run, folder: Path, dense: pd.DataFrame) -> None:
    shown = run("preflight", "dense.csv", "--groups", "sex", "--out", "checked").done().out
    assert "1 dense model, 120 examples" in shown
    assert "Evidence:" in shown
    parts = pd.read_csv(folder / "checked/preflight.csv")
    assert set(parts.loc[parts["by"] == "group", "group"]) == {"sex=f", "sex=m"}
    examples = pd.read_csv(folder / "checked/preflight_examples.csv")
    assert len(examples) == 120
    assert (folder / "checked/preflight_evidence.csv").exists()


def test_several_members_disagree(run: Run, folder: Path, dense: pd.DataFrame) -> None:
    dense.assign(prediction=dense["label"]).to_csv(folder / "other.csv", index=False)
    run("preflight", "dense=dense.csv", "dense=other.csv", "--out", "checked", "-q").done()
    parts = pd.read_csv(folder / "checked/preflight.csv")
    assert "disagreement" in set(parts["score"])


def test_no_scores_cannot_rank_examples(run: Run, folder: Path, dense: pd.DataFrame) -> None:
    dense.drop(columns="score").to_csv(folder / "bare.csv", index=False)
    shown = run("preflight", "bare.csv").done().out
    assert "cannot be ranked" in " ".join(shown.split())


def test_equal_scores_cannot_rank_examples(run: Run, folder: Path, dense: pd.DataFrame) -> None:
    dense.assign(score=0.5).to_csv(folder / "flat.csv", index=False)
    shown = " ".join(run("preflight", "flat.csv").done().out.split())
    assert "Single examples cannot be ranked: their scores are all equal." in shown
    assert "Examples, by" not in shown


def test_one_example(run: Run, folder: Path, dense: pd.DataFrame) -> None:
    dense.head(1).to_csv(folder / "one.csv", index=False)
    assert "1 dense model, 1 example: " in run("preflight", "one.csv").done().out


def test_compressed_variants_are_left_out_and_said(
    run: Run, folder: Path, dense: pd.DataFrame
) -> None:
    dense.to_csv(folder / "int8.csv", index=False)
    shown = " ".join(run("preflight", "dense.csv", "int8.csv").done().out.split())
    assert "Only the baseline 'dense' was looked at; not used: 'int8'." in shown


def test_bad_input(run: Run, folder: Path, dense: pd.DataFrame) -> None:
    assert "--alpha" in run("preflight", "dense.csv", "--alpha", "2").refused()
    assert "--min-group" in run("preflight", "dense.csv", "--min-group", "0").refused()
    assert "nothing.csv" in run("preflight", "nothing.csv").refused()
