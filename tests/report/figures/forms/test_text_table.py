"""Tables: text in cells."""

from __future__ import annotations

from fairweight.report.figures.forms.text_table import WORSE, TextCell, change_table, text_table


def test_rows_stand_in_the_order_of_the_cells_and_columns_as_given() -> None:
    cells = [TextCell("b", "y", "1", WORSE), TextCell("a", "x", "2", strong=True)]
    spec = text_table(cells, ["x", "y"], step=100)
    at = spec["layer"][0]["encoding"]
    assert at["y"]["sort"] == ["b", "a"]
    assert at["x"]["scale"]["domain"] == ["x", "y"]
    assert spec["data"]["values"][0]["ink"] == WORSE
    assert [part["mark"].get("fontWeight") for part in spec["layer"]] == [None, "normal", "bold"]


def test_the_legend_names_only_what_is_in_the_table() -> None:
    cells = [{"row": "a", "column": "x", "text": "1", "ink": "better, the method"}]
    color = change_table(cells, ["a"], ["x"])["layer"][0]["encoding"]["color"]
    assert color["scale"] == {"domain": ["better, the method"], "range": ["rgba(0,114,178,0.5)"]}
