"""Boxes: quartiles with every value as a point or tick, over attributes or over members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairweight.report.figures.forms.encoding import (
    DASHED,
    Values,
    colors,
    ends,
    layer,
    names,
    nominal,
    numbers,
    quantitative,
    reference,
)
from fairweight.report.figures.theme import Spec

WIDTH, WIDE = 46, 64  # of a place on the axis, for one box and for several
HEIGHT = 220
BOX_MEMBERS = 5  # quartiles of fewer are not worth a box


@dataclass(frozen=True)
class Box:
    """The values of all attributes, and their mean with its interval where it has one."""

    place: str  # on the axis
    series: str  # which has a colour
    values: list[tuple[str, float]]  # attribute, value
    mean: float | None
    low: float | None = None
    high: float | None = None


def box_panel(
    boxes: Sequence[Box],
    title: str,
    series: Mapping[str, str],
    *,
    rule: float | None = None,
    joined: bool = True,
) -> Spec:
    """One metric: a box of attributes at every place, their mean a diamond with its interval.

    Parameters
    ----------
    title
        Of the axis.
    series
        Their colours, in the order in which they stand side by side.
    rule
        A value that means "nothing": 0 of a bias, 1 of TCB.
    joined
        Whether a line joins the means of a series.
    """
    places = list(dict.fromkeys(box.place for box in boxes))
    several = len(series) > 1
    y: Spec = {"title": title, "scale": {"zero": False, "nice": True}}
    slanted = {"labelAngle": -35, "labelOverlap": False}
    x: Spec = {"x": nominal("place", title=None, sort=places, axis=slanted)}
    if several:
        x["xOffset"] = nominal("series", sort=list(series))
    color = {"color": colors("series", series, legend={} if several else None)}
    summaries: Values = []
    points: Values = []
    for box in boxes:
        here = {"place": box.place, "series": box.series}
        points += [{**here, "attribute": name, "value": v} for name, v in box.values]
        q1, median, q3 = np.quantile([v for _, v in box.values], [0.25, 0.5, 0.75]).tolist()
        quartiles = {"n": len(box.values), "q1": q1, "median": median, "q3": q3}
        summaries.append({**here, **quartiles, "mean": box.mean, "low": box.low, "high": box.high})
    middle_half = {**x, **ends("y", "q1", "q3", y), **color}
    whose = names(place="of", series="what")
    point = {
        **x,
        "y": quantitative("value", **y),
        **color,
        "tooltip": [*names("attribute"), *whose, *numbers(".4g", "value")],
    }
    layers = [] if rule is None else [reference("y", rule, y, strokeDash=DASHED)]
    layers += [
        layer("bar", middle_half, values=summaries, size=20, opacity=0.35),
        layer("tick", {**x, "y": quantitative("median", **y), **color}, values=summaries,
              thickness=2.5, size=20, opacity=1),
        layer("point", point, values=points, filled=True, size=16, opacity=0.6),
    ]  # fmt: skip
    known = [row for row in summaries if row["mean"] is not None]
    spans = [row for row in known if row["low"] is not None and row["high"] is not None]
    ink = {"color": "currentColor"}
    mean = {**x, "y": quantitative("mean", **y)}
    if joined:
        by = {"detail": nominal("series")} if several else {}
        layers.append(layer("line", {**mean, **by}, values=known, strokeWidth=1.4, **ink))
    if spans:
        limits = {**x, **ends("y", "low", "high", y)}
        layers.append(layer("rule", limits, values=spans, strokeWidth=1.6, **ink))
    tooltip = [
        *whose,
        quantitative("n", title="attributes"),
        *numbers(".4g", "mean", "low", "high", "median"),
    ]
    layers.append(
        layer("point", {**mean, "tooltip": tooltip}, values=known, shape="diamond", filled=True,
              size=46, **ink)
    )  # fmt: skip
    step = {"step": WIDE, "for": "position"} if several else {"step": WIDTH}
    return {"width": step, "height": HEIGHT, "layer": layers}


# --- members of a population ---------------------------------------------------------------------


def member_boxes(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Least value, quartiles and largest value wherever there are enough members.

    >>> row = {"name": "a", "model": "m"}
    >>> found = member_boxes([row | {"value": v} for v in (1.0, 2.0, 3.0, 4.0, 9.0)])
    >>> [found[0][key] for key in ("least", "lower", "median", "upper", "most")]
    [1.0, 2.0, 3.0, 4.0, 9.0]
    >>> member_boxes([row | {"value": v} for v in (1.0, 2.0, 3.0, 4.0)])
    []
    """
    groups: dict[tuple[str, str], list[float]] = {}
    for point in points:
        groups.setdefault((point["name"], point["model"]), []).append(point["value"])
    keys = ("least", "lower", "median", "upper", "most")
    return [
        {"name": name, "model": model}
        | dict(zip(keys, np.quantile(found, [0, 0.25, 0.5, 0.75, 1]).tolist(), strict=True))
        for (name, model), found in groups.items()
        if len(found) >= BOX_MEMBERS
    ]


def member_panel(points: Values, color: Spec, title: str) -> Spec:
    """Every member of both models per class or group, with boxes where there are enough."""
    place = {
        "y": nominal("name", title=None, sort=None),
        "yOffset": nominal("model", sort=color["scale"]["domain"]),
        "color": {**color, "legend": {"symbolOpacity": 1}},
    }
    along = {"title": title, "scale": {"zero": False, "nice": True}}
    tooltip = [
        *names(name="who"),
        *names("model", "member"),
        *numbers(".2f", value="%"),
    ]
    value = {**place, "x": quantitative("value", **along), "tooltip": tooltip}
    drawn = member_boxes(points)
    if not drawn:
        layers = [layer("point", value, values=points, filled=True, size=45, opacity=0.85)]
    else:
        layers = [
            layer("rule", {**place, **ends("x", "least", "most", along)}, values=drawn,
                  strokeWidth=1.5),
            layer("bar", {**place, **ends("x", "lower", "upper", along)}, values=drawn,
                  opacity=0.35),
            layer("tick", {**place, "x": quantitative("median", **along)}, values=drawn,
                  thickness=3),
            layer("tick", value, values=points, thickness=1, opacity=0.7),
        ]  # fmt: skip
    return {"width": 420, "height": {"step": 14}, "layer": layers}
