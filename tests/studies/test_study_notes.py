"""The page of a study written twice: claims first, and notes by hand outlive it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from tests.scripts import loaded

DOCS = Path(__file__).resolve().parents[2] / "docs" / "results"
MODULES = ("study_page", "study_notes", "study_figures", "study_tables")


@pytest.fixture
def page() -> ModuleType:
    return loaded("docs/results/study_page.py")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two rows of one audit of a study that has claims, and no report."""
    tables = tmp_path / "simon-says" / "balanced" / "audit" / "tables"
    tables.mkdir(parents=True)
    (tmp_path / "simon-says" / "balanced" / "predictions").mkdir()
    (tmp_path / "simon-says" / "balanced-thresholds" / "audit").mkdir(parents=True)
    row = {"measure": "svcca", "block": "logits", "metric": "cev", "correlation": 0.8}
    limits = {"correlation_low": 0.4, "correlation_high": 0.9, "status": "ok"}
    pd.DataFrame([row | limits]).to_parquet(tables / "similarity.parquet")
    return tmp_path / "simon-says"


def test_claims_come_first_and_notes_are_kept(
    page: ModuleType, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "audited", lambda folder: ["audited here"])
    monkeypatch.setattr(page, "worst_individuals", lambda folder: [])
    out, notes = tmp_path / "page.md", tmp_path / "notes.md"
    notes.write_text("## What this says\n\nBy hand.\n")
    page.main([str(results), "--out", str(out), "--notes", str(notes)])
    first = out.read_text()
    page.main([str(results), "--out", str(out)])
    assert out.read_text() == first
    parts = ["## The paper's claims", "| | logits |", "By hand.", "## balanced", "audited here"]
    places = [first.index(part) for part in parts]
    assert places == sorted(places)
    assert "0.800 [0.400, 0.900] | reproduces |" in first
    assert "balanced-thresholds" not in first  # a mitigation that was tried, no experiment


def test_a_study_of_no_paper_has_no_claims(page: ModuleType, tmp_path: Path) -> None:
    assert page.claims_section(tmp_path / "mnist-lenet") == []


def test_notes_without_an_end_are_not_lost(page: ModuleType, tmp_path: Path) -> None:
    notes = sys.modules["study_notes"]
    out = tmp_path / "page.md"
    assert notes.kept_notes(out) == ""
    out.write_text("no marks")
    assert notes.kept_notes(out) == ""
    out.write_text(f"a\n{notes.BEGIN}\n\nkept\n\n{notes.END}\nb")
    assert notes.kept_notes(out) == "kept"
    out.write_text(f"a\n{notes.BEGIN}\nkept")
    with pytest.raises(SystemExit, match="notes without an end"):
        notes.kept_notes(out)
