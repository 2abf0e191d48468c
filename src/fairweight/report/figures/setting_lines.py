"""Settings side by side: a line for each over variants in the order of their sparsity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records
from fairweight.base.wording import missing
from fairweight.report.figures.attribute_rows import WORDS
from fairweight.report.figures.parts import label, labels, value
from fairweight.report.figures.registry import Spec
from fairweight.report.figures.theme import AMBER, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY

if TYPE_CHECKING:
    import pandas as pd

COLORS = (BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER)


def by_sparsity(frame: pd.DataFrame) -> list[str]:
    """The variants of a table in the order of their mean sparsity; those without one come last."""
    levels = frame.groupby("variant", sort=False)["sparsity"].mean()
    known = {str(name): float(level) for name, level in levels.items()}
    return sorted(known, key=lambda name: (missing(known[name]), known[name]))


def shared_variants(frame: pd.DataFrame) -> list[str]:
    """Those that at least two settings have: what only one has cannot be compared."""
    settings = frame.groupby("variant", sort=False)["setting"].nunique()
    return [name for name in by_sparsity(frame) if settings[name] > 1]


def setting_panel(
    frame: pd.DataFrame,
    metric: str,
    order: Sequence[str],
    settings: Sequence[str],
    title: str,
    *,
    rule: float | None = None,
) -> Spec:
    """The values of one attribute and metric, with their intervals over examples."""
    words, scale = WORDS[metric]
    places = dict(zip(order, labels(order), strict=True))
    points = [_point(row, places, scale) for row in records(frame) if row["variant"] in places]
    points = [point for point in points if point["value"] is not None]
    y: Spec = {"type": "quantitative", "title": words, "scale": {"zero": False, "nice": True}}
    shared: Spec = {
        "x": {
            "field": "variant",
            "type": "nominal",
            "title": None,
            "sort": list(places.values()),
            "scale": {"domain": list(places.values())},
            "axis": {"labelAngle": -35, "labelOverlap": False},
        },
        "color": {
            "field": "setting",
            "type": "nominal",
            "title": None,
            "scale": {
                "domain": [label(name) for name in settings],
                "range": [COLORS[i % len(COLORS)] for i in range(len(settings))],
            },
        },
    }
    layers: list[Spec] = [] if rule is None else [_rule(rule, y)]
    layers += [
        {
            "data": {"values": points},
            "mark": {"type": "line", "opacity": 0.8},
            "encoding": {**shared, "y": {"field": "value", **y}},
        },
        {
            "data": {"values": [p for p in points if p["low"] is not None]},
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.7},
            "encoding": {**shared, "y": {"field": "low", **y}, "y2": {"field": "high"}},
        },
        {
            "data": {"values": points},
            "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
            "encoding": {**shared, "y": {"field": "value", **y}, "tooltip": _TOOLTIP},
        },
    ]
    return {
        "width": {"step": 44},
        "height": 150,
        "title": {"text": title if points else f"{title}: cannot tell", "fontSize": 12},
        "layer": layers,
    }


_TOOLTIP = [
    {"field": "setting", "type": "nominal"},
    {"field": "variant", "type": "nominal"},
    *(
        {"field": name, "type": "quantitative", "format": ".4g"}
        for name in ("value", "low", "high", "members", "n")
    ),
]


def _point(row: dict[str, Any], places: dict[str, str], scale: float) -> dict[str, Any]:
    return {
        "setting": label(row["setting"]),
        "variant": places[row["variant"]],
        "value": value(row["value"], scale),
        "low": value(row["low"], scale),
        "high": value(row["high"], scale),
        "members": value(row["n_members"]),
        "n": value(row["n"]),
    }


def _rule(at: float, y: Spec) -> Spec:
    return {
        "data": {"values": [{"at": at}]},
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": GREY},
        "encoding": {"y": {"field": "at", **y}},
    }
