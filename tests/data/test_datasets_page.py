"""The page of data sets is what the registry says."""

from __future__ import annotations

import runpy
from pathlib import Path

from fairweight.data import datasets

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_up_to_date() -> None:
    made = runpy.run_path(str(DOCS / "generate_datasets.py"))["datasets_page"]()
    held = (DOCS / "reference/datasets.md").read_text(encoding="utf-8")
    assert held == made, "run: python docs/generate_datasets.py"


def test_every_data_set_is_documented() -> None:
    page = (DOCS / "reference/datasets.md").read_text(encoding="utf-8")
    for entry in datasets():
        assert f"\n### {entry.name}\n" in page
    assert page.count("\n### ") == len(datasets())
