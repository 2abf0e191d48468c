"""Boxes over attributes and over members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairweight.report.figures.forms.boxes import Box, box_panel, member_panel


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
