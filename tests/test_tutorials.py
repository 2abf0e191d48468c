"""Notebooks of the tutorials: they run from top to bottom, and say what is true then."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs/tutorials"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fairweight.report.html.render", lambda *_: "<!doctype html>")
    book = json.loads(path.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    names: dict[str, Any] = {"__name__": "notebook"}
    said = io.StringIO()
    ran = 0
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            with contextlib.redirect_stdout(said):
                exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
            ran += 1
    assert ran >= 8
    # What its text says: one copy passes, one cannot be told, one fails; the first is chosen.
    assert names["verdict"].variants == {"int8": "pass", "int4": "cannot tell", "int3": "fail"}
    assert names["choice"].chosen == "int8"
    assert (tmp_path / "audit/audit.json").exists()
