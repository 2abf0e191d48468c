"""docs/coverage.md: every line of the coverage list has an entry, and every entry exists.

Nothing is imported to find out: files are parsed, so that the page is checked without torch.
"""

from __future__ import annotations

import ast
import os
import re
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.scripts import loaded

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "fairweight"
TESTS = ROOT / "tests"

# Lines, or parts of lines, that the product does not have: what is missing, and why.
NOT_YET: dict[str, str] = {}  # what is on the list and not built, and why
# Goldens without a test, because nothing was published to compute them from.
NOT_COMPUTABLE = {"G7"}

FIGURE = re.compile(r"\b(?:SS|IO|HK|PA|SG|FW)-[FT]?\w+\b")


def generator() -> ModuleType:
    return loaded("docs/generate_coverage.py")


HELD: dict[str, list[dict[str, Any]]] = generator().read()
PARTS = [part for line in HELD["line"] for part in line["parts"]]


@pytest.fixture(scope="module")
def shared() -> Path:
    """The folder with the coverage list, which is not part of the repository."""
    folder = Path(os.environ.get("FAIRWEIGHT_SHARED", ROOT.parent / "shared"))
    if not (folder / "coverage.md").is_file():
        pytest.skip(f"no file {folder / 'coverage.md'}: set FAIRWEIGHT_SHARED to run this test")
    return folder


def lines_of(text: str) -> list[str]:
    """Items, and paragraphs of the form `Name: …`, below the first heading of a list."""
    below = text[text.index("\nMetrics\n") :].splitlines()
    items = [line.removeprefix("- ").strip() for line in below if line.startswith("- ")]
    named = [line.strip() for line in below if re.match(r"[A-Z]\w+: ", line)]
    return items + named


@cache
def names_in(file: Path) -> frozenset[str]:
    """What a file defines at its top: functions, classes, constants; experiments of a study."""
    if file.suffix == ".toml":
        study = tomllib.loads(file.read_text(encoding="utf-8"))
        return frozenset(experiment["name"] for experiment in study["experiment"])
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(found)


def exists(place: str, below: Path) -> bool:
    """Whether `file::name` is there; a parameter in brackets is left to the test itself."""
    path, _, name = place.partition("::")
    file = below / path
    return file.is_file() and name.split("[")[0] in names_in(file)


def commands() -> set[str]:
    text = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
    return set(re.findall(r"^## (fairweight .+)$", text, re.MULTILINE))


def test_every_line_has_an_entry(shared: Path) -> None:
    expected = lines_of((shared / "coverage.md").read_text(encoding="utf-8"))
    assert len(expected) > 70
    held = [line["text"] for line in HELD["line"]]
    assert sorted(held) == sorted(expected), "bring docs/coverage.toml up to date"
    assert all(line["parts"] or line["text"] in NOT_YET for line in HELD["line"])


def test_every_figure_of_a_line_has_a_part() -> None:
    for line in HELD["line"]:
        if line["section"] == "Figures and tables":
            assert FIGURE.findall(line["text"]) == [part["what"] for part in line["parts"]]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part["what"])
def test_every_part_lives_somewhere_and_has_a_test(part: dict[str, str]) -> None:
    if part["what"] in NOT_YET:
        assert part["test"] == "not yet"
        return
    if part["where"].startswith("fairweight "):
        assert part["where"] in commands()
    else:
        assert exists(part["where"], SOURCE), part["where"]
    assert part["test"].partition("::")[2].startswith("test_")
    assert exists(part["test"], TESTS), part["test"]


def test_goldens_are_those_of_the_definitions(shared: Path) -> None:
    text = (shared / "definitions.md").read_text(encoding="utf-8")
    goldens = set(re.findall(r"^\| (G\d+) \|", text, re.MULTILINE))
    findings = text[text.index("\n## 1.") : text.index("\n## 2.")]
    expected = {f"finding {n}" for n in re.findall(r"^(\d+)\. ", findings, re.MULTILINE)}
    assert (len(goldens), len(expected)) == (24, 12)
    assert {golden["id"] for golden in HELD["golden"]} == goldens | expected | {"section 2"}


@pytest.mark.parametrize("golden", HELD["golden"], ids=lambda golden: golden["id"])
def test_every_golden_has_a_test(golden: dict[str, str]) -> None:
    if golden["id"] in NOT_COMPUTABLE:
        assert golden["test"] == ""
        assert golden["note"].startswith("not computable: ")
    else:
        assert exists(golden["test"], TESTS), golden["test"]


def test_the_page_is_up_to_date() -> None:
    made = generator()
    held = made.PAGE.read_text(encoding="utf-8")
    assert held == made.page(HELD), "run: python docs/generate_coverage.py"


def test_what_is_missing_would_be_found(tmp_path: Path) -> None:
    file = tmp_path / "test_one.py"
    file.write_text("def test_this() -> None: ...\nLIMIT: int = 3\n")
    assert exists("test_one.py::test_this[some-parameter]", tmp_path)
    assert exists("test_one.py::LIMIT", tmp_path)
    assert not exists("test_one.py::test_that", tmp_path)
    assert not exists("test_one.py", tmp_path)
    assert not exists("test_two.py::test_this", tmp_path)
    listed = "Title\n- no line\n\nMetrics\n- one [SS]\n\nTools: two; three\nA heading\n"
    assert lines_of(listed) == ["one [SS]", "Tools: two; three"]
