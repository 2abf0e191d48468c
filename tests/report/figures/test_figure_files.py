from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fairweight.auditing.result import AuditResult
from fairweight.errors import InputError
from fairweight.report.figures import draw, save_figure


def test_an_svg_is_dark_on_white_and_names_the_variant(tmp_path: Path, result: AuditResult) -> None:
    path = save_figure(result, "SG-F1", tmp_path / "new" / "fpr.svg", variant="pruned-90")
    svg = path.read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert "currentColor" not in svg
    assert "#ffffff" in svg
    assert "pruned-90 against dense" in svg


def test_a_png_and_a_specification(tmp_path: Path, result: AuditResult) -> None:
    image = save_figure(result, "SG-F1", tmp_path / "fpr.PNG").read_bytes()
    assert image.startswith(b"\x89PNG")
    held = json.loads(save_figure(result, "SG-F1", tmp_path / "fpr.json").read_bytes())
    assert held == draw("SG-F1", result).spec


def test_what_cannot_be_written_is_said_and_leaves_no_file(
    tmp_path: Path, result: AuditResult, bare: AuditResult
) -> None:
    with pytest.raises(
        InputError, match=r"path must end in \.svg, \.png, \.csv, \.json; given was 'a.gif'"
    ):
        save_figure(result, "SG-F1", tmp_path / "a.gif")
    with pytest.raises(InputError, match="Figure 'SG-F4' cannot be drawn: there are no groups"):
        save_figure(bare, "SG-F4", tmp_path / "a.svg")
    with pytest.raises(InputError, match="Figure 'SG-F9' does not exist"):
        save_figure(result, "SG-F9", tmp_path / "a.svg")
    assert list(tmp_path.iterdir()) == []


def test_an_svg_has_room_for_a_wider_font(tmp_path: Path, population: AuditResult) -> None:
    """Row names stay inside the drawing where the viewer's font is a fifth wider."""
    svg = save_figure(population, "SG-T1", tmp_path / "table.svg").read_text(encoding="utf-8")
    assert "Arial" in svg
    assert "system-ui" not in svg
    left = float(re.findall(r"translate\((\d+)", svg)[0])  # where the row names end
    names = re.findall(r'text-anchor="end"[^>]*font-size="12px"[^>]*>([^<]+)', svg)
    longest = max(names, key=len)
    assert longest == "precision of 0, %"
    # Liberation Sans draws it 88 pixels wide, DejaVu Sans 103.
    assert left - 7 > 103
