"""Bars, counted before they are drawn; boxes over attributes and over members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairweight.report.figures.forms.bars import (
    Box,
    bar_panel,
    box_panel,
    edges,
    histogram,
    member_panel,
    probability_bars,
)


def test_every_value_is_in_one_bin_and_equal_values_have_one_too() -> None:
    values = [0.0, 0.2, 0.4, 0.9, 1.0]
    bars = histogram(values, edges(values))
    assert sum(bar["n"] for bar in bars) == 5
    assert (bars[0]["low"], bars[-1]["high"]) == (0.0, 1.0)
    assert edges([3.0, 3.0]).tolist() == [2.5, 3.0, 3.5]


def test_bars_lie_between_the_ends_of_their_bins() -> None:
    bars = [{"low": 0.0, "high": 1.0, "n": 3}]
    panel = bar_panel(bars, {"title": "ink"}, {"field": "n"}, (280, 90), {}, opacity=0.8)
    assert (panel["width"], panel["height"]) == (280, 90)
    assert panel["encoding"]["x"]["bin"] == {"binned": True}
    assert panel["encoding"]["x2"] == {"field": "high"}
    assert panel["mark"] == {"type": "bar", "opacity": 0.8}


def test_a_raw_frequency_is_a_tick_over_the_bar() -> None:
    rows = [{"variant": "int8", "probability": 70.0, "frequency": 90.0, "possible": "not in it"}]
    both = probability_bars(rows, "best, %", first=True, marked=False, frequency=True)
    assert [layer["mark"]["type"] for layer in both["layer"]] == ["bar", "tick"]
    bar = probability_bars(rows, "best, %", first=True, marked=True, frequency=False)["layer"]
    assert len(bar) == 1
    assert bar[0]["encoding"]["color"]["field"] == "possible"


def layers(panel: dict[str, Any], mark: str) -> Iterator[list[dict[str, Any]]]:
    for layer in panel["layer"]:
        if layer["mark"]["type"] == mark:
            yield layer["data"]["values"]


def test_a_box_holds_quartiles_points_and_the_mean() -> None:
    values = [("a", 1.0), ("b", 2.0), ("c", 3.0), ("d", 10.0)]
    panel = box_panel([Box("dense", "all", values, 4.0, 3.0, 5.0)], "TCB", {"all": "red"})
    ((box,),) = layers(panel, "bar")
    assert (box["q1"], box["median"], box["q3"]) == (1.75, 2.5, 4.75)
    points, (mean,) = layers(panel, "point")
    assert [(p["attribute"], p["value"]) for p in points] == values
    assert (mean["mean"], mean["low"], mean["high"]) == (4.0, 3.0, 5.0)
    without = box_panel([Box("dense", "all", values, 4.0)], "", {"all": "red"})
    assert list(layers(without, "rule")) == []


def test_members_are_ticks_on_a_box_from_five_on() -> None:
    color = {"field": "model", "scale": {"domain": ["dense"]}}
    points = [{"name": "3", "model": "dense", "member": str(i), "value": float(i)} for i in (0, 9)]
    few = member_panel(points, color, "recall, %")
    assert [part["mark"]["type"] for part in few["layer"]] == ["point"]
    enough = member_panel([points[0] | {"value": float(i)} for i in range(5)], color, "recall, %")
    assert [part["mark"]["type"] for part in enough["layer"]] == ["rule", "bar", "tick", "tick"]
    assert enough["layer"][0]["data"]["values"][0]["median"] == 2.0
