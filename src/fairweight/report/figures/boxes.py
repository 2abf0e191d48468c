"""Boxes over attributes: quartiles, every attribute as a point, and the mean with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fairweight.report.figures.registry import Spec
from fairweight.report.figures.theme import GREY

WIDTH, WIDE = 46, 64  # of a place on the axis, for one box and for several
HEIGHT = 220


class Value(NamedTuple):
    """What one attribute shows."""

    attribute: str
    value: float


class Mean(NamedTuple):
    """Over all attributes; its interval where it has one."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Box:
    """The attributes of one variant."""

    values: list[Value]
    mean: Mean

    def quartiles(self) -> tuple[float, float, float]:
        """Lower quartile, median and upper quartile, linear between values.

        >>> values = [Value("a", 1.0), Value("b", 2.0), Value("c", 6.0)]
        >>> Box(values, Mean(3.0, None, None)).quartiles()
        (1.5, 2.0, 4.0)
        """
        import numpy as np

        low, middle, high = np.quantile([held.value for held in self.values], [0.25, 0.5, 0.75])
        return float(low), float(middle), float(high)


@dataclass(frozen=True)
class Placed:
    """A box at a place of the axis, in the colour of its series."""

    place: str
    series: str
    box: Box


def box_panel(
    boxes: Sequence[Placed],
    title: str,
    colors: Mapping[str, str],
    *,
    rule: float | None = None,
    joined: bool = True,
) -> Spec:
    """One metric.

    Parameters
    ----------
    title
        Of the axis.
    colors
        Of the series, in the order in which they stand side by side.
    rule
        A value that means "nothing": 0 of a bias, 1 of TCB.
    joined
        Whether a line joins the means of a series.
    """
    places = list(dict.fromkeys(placed.place for placed in boxes))
    several = len(colors) > 1
    y = {"type": "quantitative", "title": title, "scale": {"zero": False, "nice": True}}
    x: Spec = {
        "x": {
            "field": "place",
            "type": "nominal",
            "title": None,
            "sort": places,
            "axis": {"labelAngle": -35, "labelOverlap": False},
        }
    }
    if several:
        x["xOffset"] = {"field": "series", "type": "nominal", "sort": list(colors)}
    color = {
        "field": "series",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(colors), "range": list(colors.values())},
        "legend": {} if several else None,
    }
    layers: list[Spec] = []
    if rule is not None:
        layers.append(
            {
                "data": {"values": [{"at": rule}]},
                "mark": {"type": "rule", "strokeDash": [4, 4], "color": GREY},
                "encoding": {"y": {"field": "at", **y}},
            }
        )
    summaries = [_summary(placed) for placed in boxes]
    layers += [
        {
            "data": {"values": summaries},
            "mark": {"type": "bar", "size": 20, "opacity": 0.35},
            "encoding": {**x, "y": {"field": "q1", **y}, "y2": {"field": "q3"}, "color": color},
        },
        {
            "data": {"values": summaries},
            "mark": {"type": "tick", "thickness": 2.5, "size": 20, "opacity": 1},
            "encoding": {**x, "y": {"field": "median", **y}, "color": color},
        },
        {
            "data": {
                "values": [
                    {"place": p.place, "series": p.series, **held._asdict()}
                    for p in boxes
                    for held in p.box.values
                ]
            },
            "mark": {"type": "point", "filled": True, "size": 16, "opacity": 0.6},
            "encoding": {**x, "y": {"field": "value", **y}, "color": color, "tooltip": _TOOLTIP},
        },
    ]
    layers += _means(summaries, x, y, several, joined)
    step = {"step": WIDE, "for": "position"} if several else {"step": WIDTH}
    return {"width": step, "height": HEIGHT, "layer": layers}


_TOOLTIP = [
    {"field": "attribute", "type": "nominal"},
    {"field": "place", "type": "nominal", "title": "of"},
    {"field": "series", "type": "nominal", "title": "what"},
    {"field": "value", "type": "quantitative", "format": ".4g"},
]


def _summary(placed: Placed) -> dict[str, Any]:
    q1, median, q3 = placed.box.quartiles()
    mean = placed.box.mean
    return {
        "place": placed.place,
        "series": placed.series,
        "n": len(placed.box.values),
        "q1": q1,
        "median": median,
        "q3": q3,
        "mean": mean.value,
        "low": mean.low,
        "high": mean.high,
    }


def _means(
    summaries: list[dict[str, Any]], x: Spec, y: Spec, several: bool, joined: bool
) -> list[Spec]:
    known = [row for row in summaries if row["mean"] is not None]
    spans = [row for row in known if row["low"] is not None and row["high"] is not None]
    by = {"detail": {"field": "series", "type": "nominal"}} if several else {}
    ink = {"color": "currentColor"}
    layers: list[Spec] = []
    if joined:
        layers.append(
            {
                "data": {"values": known},
                "mark": {"type": "line", "strokeWidth": 1.4, **ink},
                "encoding": {**x, "y": {"field": "mean", **y}, **by},
            }
        )
    if spans:
        layers.append(
            {
                "data": {"values": spans},
                "mark": {"type": "rule", "strokeWidth": 1.6, **ink},
                "encoding": {**x, "y": {"field": "low", **y}, "y2": {"field": "high"}},
            }
        )
    layers.append(
        {
            "data": {"values": known},
            "mark": {"type": "point", "shape": "diamond", "filled": True, "size": 46, **ink},
            "encoding": {
                **x,
                "y": {"field": "mean", **y},
                "tooltip": [
                    {"field": "place", "type": "nominal", "title": "of"},
                    {"field": "series", "type": "nominal", "title": "what"},
                    {"field": "n", "type": "quantitative", "title": "attributes"},
                    *(
                        {"field": name, "type": "quantitative", "format": ".4g"}
                        for name in ("mean", "low", "high", "median")
                    ),
                ],
            },
        }
    )
    return layers
