"""Pages that are made from docstrings and from computations hold what these say now."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import fairweight as fw
from fairweight import lab

from .scripts import loaded

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("generate_api")


@pytest.mark.parametrize("name", ["python.md", "lab.md"])
def test_the_pages_of_python_are_up_to_date(script: ModuleType, name: str) -> None:
    held = (DOCS / "reference" / name).read_text(encoding="utf-8")
    assert held == script.PAGES[name](), "run: python docs/generate_api.py"


def test_everything_public_is_on_a_page() -> None:
    python, models = ((DOCS / f"reference/{name}.md").read_text() for name in ("python", "lab"))
    for name in set(fw.__all__) - {"__version__", "lab"}:
        assert f"\n## fw.{name}\n" in python
    for name in lab.__all__:
        assert f"\n## lab.{name}\n" in models
    public = [name for name in vars(fw.Audit) if not name.startswith("_")]
    assert len(public) > 10
    for name in public:
        assert f"audit.{name}" in python


def test_a_docstring_becomes_markdown(script: ModuleType) -> None:
    source = '''
def f(a: int, *, b: str = "x") -> int:
    """Add a_b.

    Parameters
    ----------
    a, b
        Two | things,
        on two lines.

    Behind the list.

    Examples
    --------
    >>> f(1)
    1
    """
'''
    (node,) = ast.parse(source).body
    docstrings = importlib.import_module("docstrings")
    assert docstrings.signature(node, "fw.f") == (
        '```python\nfw.f(a: int, *, b: str = "x") -> int\n```'
    )
    assert docstrings.described(node) == [
        "Add a\\_b.",
        "**Parameters**",
        "|  |  |\n|---|---|\n| `a`, `b` | Two \\| things, on two lines. |",
        "Behind the list.",
        "**Examples**",
        "```pycon\n>>> f(1)\n1\n```",
    ]


def test_the_errata_print_what_the_page_says(
    script: ModuleType, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRWEIGHT_GOLDEN", str(golden))
    errata = importlib.import_module("generate_errata")
    text = errata.PAGE.read_text(encoding="utf-8")
    assert errata.filled(text) == text, "run: python docs/generate_errata.py"
    assert len(re.findall(r"^### (?:SS|HK|PA|IO|SG)-\d+: ", text, re.MULTILINE)) >= 20


def test_how_a_number_is_made_prints_what_the_page_says(script: ModuleType) -> None:
    errata = importlib.import_module("generate_errata")
    text = errata.NUMBER.read_text(encoding="utf-8")
    assert errata.filled(text) == text, "run: python docs/generate_errata.py"
    assert text.count("```text") == 3


def test_a_changed_number_would_be_found(script: ModuleType) -> None:
    errata = importlib.import_module("generate_errata")
    wrong = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    assert errata.filled(wrong) == wrong.replace("3", "2")


def test_the_page_of_layers_holds_what_was_measured() -> None:
    """Its sentences are made from where.json; nothing on it was typed."""
    page = loaded("docs/results/where.py").page()
    held = (DOCS / "results" / "where.md").read_text(encoding="utf-8")
    assert held == page, "run: python docs/results/where.py page"
    assert "core-minutes" in page
    assert "## Not run" in page
