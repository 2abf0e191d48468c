"""Values with their intervals."""

from __future__ import annotations

from typing import Any

import pytest

from fairweight.report.figures.forms.intervals import (
    Corner,
    GroupPanels,
    PairedRows,
    change_panel,
    cut_domain,
    group_panels,
    paired_rows,
    shift_rows,
    whiskers,
)

ROW = {"name": "a", "n": 100.0, "shift": -2.0, "low": -3.0, "high": -1.0, "sim_low": -4.0,
       "sim_high": -0.5, "floor_low": None, "floor_high": None, "verdict": "loses"}  # fmt: skip
VALUE = {"value": 5.0, "low": 4.0, "high": 6.0, "wide_low": None, "wide_high": None,
         "floor_low": None, "floor_high": None, "n": 10.0, "why": None}  # fmt: skip


def marks(layers: list[dict[str, Any]]) -> list[str]:
    return [layer["mark"]["type"] for layer in layers]


def test_a_far_wider_interval_is_cut_unless_it_says_something() -> None:
    wide = ROW | {"sim_low": -90.0, "sim_high": 80.0}
    assert cut_domain([ROW, ROW, wide]) == [-4.0, 0.0]
    # It excludes 0: whoever loses is drawn whole.
    assert cut_domain([ROW, ROW, wide | {"sim_high": -70.0}]) == [-90.0, 0.0]


def test_a_row_of_shifts_has_a_band_and_a_rule_for_everybody_only_where_they_are_known() -> None:
    plain = shift_rows([ROW], "points", [-4.0, 0.0], None)
    assert marks(plain["layer"]) == ["rule", "rule", "rule", "point"]  # 0, both intervals
    more = shift_rows([ROW | {"floor_low": -1.0, "floor_high": 1.0}], "points", [-4.0, 0.0], -1.5)
    assert marks(more["layer"]) == ["rule"] * 5 + ["point"]
    assert more["layer"][2]["data"]["values"] == [{"at": -1.5}]


def test_whiskers_are_as_many_as_values_have() -> None:
    place = {"y": {"field": "class"}, "color": {"field": "model"}}
    assert len(whiskers([VALUE], "x", place, {})) == 1
    every = VALUE | {"wide_low": 1.0, "wide_high": 9.0, "floor_low": 3.0, "floor_high": 7.0}
    band, thin, thick = whiskers([VALUE, every], "x", place, {})
    assert "color" not in band["encoding"]
    assert thin["encoding"]["x"]["field"] == "wide_low"
    assert thick["mark"]["strokeWidth"] > thin["mark"]["strokeWidth"]


def test_what_is_missing_is_a_cross_with_its_reason() -> None:
    color = {"field": "model", "scale": {"domain": ["dense", "int8"]}}
    form = PairedRows("class", "model", color, "FPR, %", [])
    layers = paired_rows([VALUE], form)
    assert marks(layers) == ["rule", "point", "text"]
    assert layers[-1]["transform"][1] == {"calculate": "'× ' + datum.why", "as": "said"}


def test_a_value_beyond_the_frame_is_written_at_it() -> None:
    form = GroupPanels({"fpr": ("FPR", "red")}, "rate", "rate, %", 100.0, ".2f", True, 100.0)
    rows = [
        VALUE | {"value": v, "low": v, "high": v, "group": "g", "size": "n 1", "metric": "FPR",
                 "model": f"m{i}", "place": i, "this": False}
        for i, v in enumerate((1.0, 2.0, 2.0, 2.0, 80.0))
    ]  # fmt: skip
    (panel,) = group_panels(rows, form, [f"m{i}" for i in range(5)])["concat"]
    # Three quarters stay below 2: four times that is near, and 80 is not.
    (frame,) = {
        tuple(layer["encoding"]["y"]["scale"]["domain"])
        for layer in panel["layer"]
        if "scale" in layer["encoding"].get("y", {})
    }
    assert frame == (0.0, 2.0)
    assert panel["layer"][-1]["transform"][0]["filter"].endswith("datum.value > 2.0")


@pytest.mark.parametrize(("value", "signs"), [(50.0, []), (150.0, ["▲"]), (None, ["×"])])
def test_signs_stand_for_what_lies_outside(value: float | None, signs: list[str]) -> None:
    row = VALUE | {"at": "int8", "value": value}
    panel = change_panel([row], ["int8"], "error", Corner(None, True, True), 100.0)
    texts = [layer["mark"]["text"] for layer in panel["layer"] if layer["mark"]["type"] == "text"]
    assert texts == signs
