"""The gallery of the documentation: every figure is there, drawn and described."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.scripts import loaded

from fairweight.report.figures import figures

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
LARGEST = 1_500_000  # bytes of all stored pictures together
SCRIPT = loaded("docs/generate_gallery.py")


def entries(text: str) -> dict[str, re.Match[str]]:
    return {found["id"]: found for found in SCRIPT.ENTRY.finditer(text)}


@pytest.fixture(scope="module")
def page() -> str:
    return (DOCS / "gallery.md").read_text(encoding="utf-8")


def unescaped(text: str) -> str:
    return re.sub(r"\\([*_<\[\]])", r"\1", text)


def test_every_figure_is_in_the_gallery(page: str) -> None:
    assert set(entries(page)) == {entry.id for entry in figures()}
    assert page.count("\n### ") == len(figures())


def test_the_page_says_what_the_registry_says(page: str) -> None:
    """Titles, captions, places and the order of the report; pictures are those that are stored."""
    assert page == SCRIPT.page(SCRIPT.stored(page)), "run: python docs/generate_gallery.py --text"
    for entry in figures():
        assert f"### {entry.id}: {entry.title}\n" in page
        assert " ".join(entry.caption.split()) in unescaped(page)


def test_every_figure_stands_under_its_paper(page: str) -> None:
    sections = re.split(r"^## (\w\w): ", page, flags=re.MULTILINE)
    tags = sections[1::2]
    assert sorted(tags) == ["FW", "HK", "IO", "PA", "SG", "SS"]
    for tag, text in zip(tags, sections[2::2], strict=True):
        assert {id.partition("-")[0] for id in entries(text)} == {tag}


def test_every_picture_is_drawn_and_described(page: str) -> None:
    found = entries(page)
    for entry in found.values():
        assert len(entry["told"]) > 40, entry["id"]
        assert unescaped(entry["told"]) == unescaped(entry["again"])
        drawn = (DOCS / entry["file"]).read_bytes()
        assert len(drawn) > 2_000, entry["id"]
        assert drawn.startswith((b"<svg", b"\x89PNG")), entry["id"]


def test_no_picture_is_left_over_and_all_are_small(page: str) -> None:
    stored = {path.name for path in (DOCS / "gallery").iterdir()}
    assert stored == {Path(entry["file"]).name for entry in entries(page).values()}
    assert sum((DOCS / "gallery" / name).stat().st_size for name in stored) < LARGEST


@pytest.mark.slow
def test_the_gallery_can_be_drawn_again(tmp_path: Path, page: str) -> None:
    """Numbers may differ in the last digit between machines; what is drawn may not."""
    script = DOCS / "generate_gallery.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    again = entries((tmp_path / "gallery.md").read_text(encoding="utf-8"))
    assert {id: found["caption"] for id, found in again.items()} == {
        id: found["caption"] for id, found in entries(page).items()
    }
