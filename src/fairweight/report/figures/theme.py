"""How every figure looks: one theme for light and dark pages, safe for colour-blind readers.

Text and lines take `currentColor`, so the page's style sheet decides them; data colours are those
of Okabe and Ito without black and yellow, which vanish on a dark or a light page; diverging scales
fade to transparent at zero. A specification therefore never has to be drawn again for dark mode.
"""

from __future__ import annotations

from typing import Any

from fairweight.report.figures.registry import Spec

BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00",
)  # fmt: skip
GREY = "#8c8c8c"
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

# Orange: more errors or a fall; blue: fewer or a rise. Text on the cells stays readable: 75 % ink.
DIVERGING = ["rgba(213,94,0,0.75)", "rgba(140,140,140,0)", "rgba(0,114,178,0.75)"]

CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, -apple-system, 'Segoe UI', sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 340,
        "labelSeparation": 6,  # else the first label touches its neighbour
        "domainColor": GREY,
        "tickColor": GREY,
        "gridColor": GREY,
        "gridOpacity": 0.25,
    },
    "legend": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 240,
        "orient": "top",
    },
    "header": {"labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 12},
    "title": {
        "color": "currentColor",
        "subtitleColor": "currentColor",
        "anchor": "start",
        "fontSize": 13,
        "fontWeight": "normal",
        "limit": 640,
    },
    "text": {"color": "currentColor", "fontSize": 12},
    "rule": {"color": GREY},
    "range": {"category": [GREY, ORANGE, BLUE, GREEN, PURPLE, SKY, AMBER]},
}


def finished(spec: Spec) -> Spec:
    """A drawn specification with schema and theme."""
    return {"$schema": SCHEMA, **spec, "config": CONFIG}
