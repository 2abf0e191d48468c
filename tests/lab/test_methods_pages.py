"""The pages of methods and architectures are what the code says."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from tests.scripts import loaded

from fairweight.lab.compression.descriptions import catalogue, schedules
from fairweight.lab.models import architectures

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return loaded("docs/generate_methods.py")


@pytest.mark.parametrize("name", ["methods.md", "architectures.md"])
def test_the_pages_are_up_to_date(generator: ModuleType, name: str) -> None:
    held = (DOCS / "reference" / name).read_text(encoding="utf-8")
    assert held == generator.PAGES[name](), "run: python docs/generate_methods.py"


def test_everything_is_documented() -> None:
    page = (DOCS / "reference/methods.md").read_text(encoding="utf-8")
    names = [entry.name for entry in catalogue()]
    names += [f"Schedule {schedule.name}" for schedule in schedules()]
    for name in names:
        assert f"\n### {name}\n" in page
    assert page.count("\n### ") == len(names)
    page = (DOCS / "reference/architectures.md").read_text(encoding="utf-8")
    for entry in architectures():
        assert f"\n### {entry.name}\n" in page
        assert f"\n| `{entry.name}` |" in page
    assert page.count("\n### ") == len(architectures())
