"""Lines against sparsity, settings and budgets."""

from __future__ import annotations

from fairweight.report.figures.forms.lines import band_panel, setting_panel, sparsity_panel

POINT = {"variant": "v", "method": "m", "sparsity": 0.5, "value": 90.0, "n": 10.0, "low": 88.0,
         "high": 92.0, "wide_low": None, "wide_high": None, "baseline": 95.0, "floor_low": None,
         "floor_high": None, "this": True}  # fmt: skip


def test_a_share_has_a_baseline_and_need_not_begin_at_zero() -> None:
    share = sparsity_panel([POINT], [], "accuracy, %", ["m"])
    assert share["layer"][0]["data"]["values"] == [{"at": 95.0}]
    assert share["layer"][1]["encoding"]["y"]["scale"]["zero"] is False
    number = sparsity_panel([POINT | {"baseline": None}], [], "CEV", ["m"])
    assert number["layer"][0]["mark"]["type"] == "line"
    assert number["layer"][0]["encoding"]["y"]["scale"]["zero"] is True


def test_more_methods_than_colours_are_dashed() -> None:
    few, many = ([f"m{i}" for i in range(n)] for n in (6, 7))
    assert "strokeDash" not in sparsity_panel([POINT], [], "", few)["layer"][1]["encoding"]
    line = sparsity_panel([POINT], [], "", many)["layer"][1]["encoding"]
    assert line["strokeDash"]["scale"]["range"] == [[1, 0]] * 6 + [[6, 3]]
    assert line["color"]["scale"]["range"][6] == line["color"]["scale"]["range"][0]
    assert sparsity_panel([POINT], [], "", ["m"])["layer"][1]["encoding"]["color"]["legend"] is None


def test_a_setting_without_points_cannot_be_told() -> None:
    panel = setting_panel([], ["dense"], ["alone"], "TCB", "hat", rule=1.0)
    assert panel["title"]["text"] == "hat: cannot tell"
    assert panel["layer"][0]["data"]["values"] == [{"at": 1.0}]


def test_a_band_lies_below_its_line() -> None:
    panel = band_panel([], {"field": "budget"}, "accuracy, %", {"field": "choice"}, [], "all")
    assert [layer["mark"]["type"] for layer in panel["layer"]] == ["area", "line"]
