"""The data of every figure as CSV: nothing is lost, no cell runs."""

from __future__ import annotations

import csv
import io
import json

import pytest

from fairweight.auditing.result import AuditResult
from fairweight.report.figures import draw, figures
from fairweight.report.figures.data_rows import to_csv


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
