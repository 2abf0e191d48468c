"""Tables: text in cells, and cells coloured by a number."""

from __future__ import annotations

import numpy as np

from fairweight.report.figures.forms.tables import (
    WORSE,
    TextCell,
    change_map,
    change_table,
    rate_map,
    shares_by_column,
    text_table,
)


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


def test_the_scale_reaches_as_far_to_both_sides() -> None:
    cells = [{"label": "a", "answer": "a", "change": -3.0}, {"label": "a", "answer": "b",
             "change": 2.0}]  # fmt: skip
    spec = change_map(cells, ["a"], ["a", "b"])
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == [-3.0, 0, 3.0]
    assert len(spec["layer"]) == 2  # two columns: there is room for numbers
    assert len(change_map(cells, ["a"], [str(i) for i in range(13)])["layer"]) == 1


def test_a_table_without_a_change_has_a_scale_too() -> None:
    spec = rate_map([], [{"who": "a", "column": "c", "change": None, "text": "—"}], ["a"], ["c"])
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == [-1.0, 0, 1.0]


def test_cells_are_in_percent_of_their_column() -> None:
    at = np.array([0.0, 1.0, 2.0])
    x, y = np.array([0.5, 0.5, 0.5, 1.5]), np.array([0.5, 0.5, 1.5, 0.5])
    shares = {(c["x"], c["y"]): c["share"] for c in shares_by_column(x, y, at, at)}
    assert shares == {(0.0, 0.0): 100 * 2 / 3, (0.0, 1.0): 100 / 3, (1.0, 0.0): 100.0}
