"""Lines with their intervals as bands: curves of budgets and of thresholds."""

from __future__ import annotations

from typing import Any

from fairweight.report.figures.registry import Spec

WIDTH, HEIGHT = 250, 200


def banded(
    values: list[dict[str, Any]], x: Spec, title: str, color: Spec, tooltip: list[Spec]
) -> list[Spec]:
    """A band from `low` to `high` and a line of `value`, one per colour."""
    y = {"type": "quantitative", "title": title, "scale": {"zero": False}}
    return [
        {
            "data": {"values": values},
            "mark": {"type": "area", "opacity": 0.18},
            "encoding": {
                "x": x,
                "y": {**y, "field": "low"},
                "y2": {"field": "high"},
                "color": color,
            },
        },
        {
            "data": {"values": values},
            "mark": {"type": "line", "strokeWidth": 2, "point": {"size": 18}},
            "encoding": {"x": x, "y": {**y, "field": "value"}, "color": color, "tooltip": tooltip},
        },
    ]
