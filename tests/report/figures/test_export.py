"""A figure as a file; its data as CSV: nothing is lost, no cell runs."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from fairweight.auditing.result import AuditResult
from fairweight.errors import InputError
from fairweight.report.figures import draw, figures
from fairweight.report.figures.export import save_figure, to_csv


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


def _inline(part: object) -> list[list[dict[str, object]]]:
    if isinstance(part, list):
        return [rows for held in part for rows in _inline(held)]
    if not isinstance(part, dict):
        return []
    own = part.get("data", {}).get("values", [])
    return [own, *(rows for k, held in part.items() if k != "data" for rows in _inline(held))]


@pytest.mark.parametrize("id", [f.id for f in figures() if not f.explains])
def test_every_row_of_a_figure_is_in_its_csv(
    hostile_population: AuditResult, hostile_binary_population: AuditResult, id: str
) -> None:
    """Some figures are of two classes only; one of the two audits fills each."""
    specs = [draw(id, audit).spec for audit in (hostile_population, hostile_binary_population)]
    spec = next(spec for spec in specs if spec is not None)
    read = list(csv.DictReader(io.StringIO(to_csv(spec))))
    tables = {json.dumps(rows): rows for rows in _inline(spec) if any(rows)}
    assert len(read) == sum(len(rows) for rows in tables.values()) > 0
    assert not any(str(v).startswith(("=", "@")) for row in read for v in row.values())


def test_numbers_read_back_and_tables_are_told_apart() -> None:
    first = [{"who": "a,b", "shift": -0.125}, {"who": "@x", "shift": None}]
    spec = {"layer": [{"data": {"values": first}}, {"data": {"values": [{"at": 0.0}]}}]}
    read = list(csv.DictReader(io.StringIO(to_csv(spec))))
    assert [row["part"] for row in read] == ["1", "1", "2"]
    assert (read[0]["who"], float(read[0]["shift"])) == ("a,b", -0.125)
    assert (read[1]["who"], read[1]["shift"]) == ("'@x", "")
    assert read[2]["at"] == "0"


def test_pictures_are_left_out() -> None:
    rows = [{"image": "data:image/png;base64,AAAA", "said": "label 3"}]
    assert to_csv({"data": {"values": rows}}) == "said\nlabel 3\n"
