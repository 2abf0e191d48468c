"""Bars and boxes: histograms, sizes, shares, probabilities, and quartiles over values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from fairweight.report.figures.theme import BLUE, GREY, ORANGE, Spec

# --- histograms and bars -------------------------------------------------------------------------


def edges(values: Sequence[float], most: int = 24) -> NDArray[np.float64]:
    """Edges of equal bins over finite values, as many as the square root of their number.

    >>> edges([0.0, 1.0, 2.0, 3.0], 2).tolist()
    [0.0, 1.5, 3.0]
    """
    low, high = min(values), max(values)
    if low == high:
        low, high = low - 0.5, high + 0.5
    n = max(2, min(most, round(len(values) ** 0.5)))
    return np.linspace(low, high, n + 1)


def histogram(values: Sequence[float], at: NDArray[np.float64]) -> list[dict[str, Any]]:
    """One bar per bin: low, high, its middle and how many values lie in it.

    >>> [bar["n"] for bar in histogram([0.0, 0.1, 0.9, 1.0], edges([0.0, 1.0], 2))]
    [2, 2]
    """
    counts, _ = np.histogram(values, bins=at)
    return [
        {"low": float(a), "high": float(b), "middle": float((a + b) / 2), "n": int(n)}
        for a, b, n in zip(at[:-1], at[1:], counts, strict=True)
    ]


def bar_panel(
    bars: Values, x: Spec, y: Spec, size: tuple[int, int], more: Spec, **mark: Any
) -> Spec:
    """Bars over bins.

    Parameters
    ----------
    x
        Title of the axis, and what else is special about it.
    size
        Width and height.
    more
        Colour and tooltip.
    """
    across = quantitative("low", **{"bin": {"binned": True}, "axis": {"tickCount": 6}, **x})
    at = {"x": across, "x2": {"field": "high"}, "y": y, **more}
    return {"width": size[0], "height": size[1], **layer("bar", at, values=bars, **mark)}


def share_bars(values: Values, title: str, splits: Sequence[str]) -> Spec:
    """A bar per name and split of the data, with the number of examples behind it."""
    at = {
        "y": nominal("who", title=None, sort=None),
        "yOffset": nominal("split", sort=list(splits)),
        "x": quantitative("share", title=title),
    }
    color = colors("split", dict(zip(splits, (BLUE, GREY), strict=True)))
    tooltip = [
        *names(who="who", split="data"),
        *numbers(".3g", share="share, %"),
        *names(n="n"),
    ]
    return {
        "width": 420,
        "height": {"step": 10 if len({v["split"] for v in values}) > 1 else 16},
        "data": {"values": values},
        "layer": [
            layer("bar", {**at, "color": color, "tooltip": tooltip}, opacity=0.8),
            layer("text", {**at, "text": nominal("n")}, align="left", dx=3, fontSize=9),
        ],
    }


def class_bars(values: Values) -> Spec:
    """The number of examples of every class, coloured by its accuracy where that is known."""
    tooltip = [
        *names("class"),
        *numbers(",.0f", "n"),
        *numbers(".2f", share="share, %"),
        *numbers(".1f", before="accuracy before, %"),
    ]
    at: Spec = {
        "x": nominal("class", title="class", sort=[v["class"] for v in values]),
        "y": quantitative("n", title="examples"),
        "tooltip": tooltip,
    }
    scale = {"scheme": "viridis", "zero": False}
    color = quantitative("before", title="accuracy before compression, %", scale=scale)
    return {
        "width": {"step": 26 if len(values) <= 24 else 12},
        "height": 200,
        "data": {"values": values},
        "layer": [
            layer("bar", {**at, "color": color}, where="isValid(datum.before)"),
            layer("bar", at, where="!isValid(datum.before)", color=GREY),
        ],
    }


IN, OUT = "in the 95 % set", "not in it"


def probability_bars(
    values: Values, title: str, *, first: bool, marked: bool, frequency: bool
) -> Spec:
    """A bar per variant, a probability in percent.

    Parameters
    ----------
    first
        Whether the names of the variants stand beside this panel.
    marked
        Whether colours say who is in the set that contains the best.
    frequency
        Whether ticks show the raw bootstrap frequency.
    """
    axis = {"labels": first, "ticks": first}
    y = nominal("variant", title=None, sort=[v["variant"] for v in values], axis=axis)
    x = quantitative("probability", title=title, scale={"domain": [0, 100]})
    color = colors("possible", {IN: ORANGE, OUT: BLUE}) if marked else {"value": BLUE}
    tooltip = [*names("variant"), *numbers(".1f", probability=title)]
    if frequency:
        tooltip += numbers(".1f", frequency="bootstrap frequency, %")
    layers = [layer("bar", {"x": x, "y": y, "color": color, "tooltip": tooltip}, height=12)]
    if frequency:
        ticks = {"x": {**x, "field": "frequency"}, "y": y}
        layers.append(layer("tick", ticks, color=GREY, thickness=3, height=16))
    return {"width": 260, "height": {"step": 20}, "data": {"values": values}, "layer": layers}


# --- boxes over attributes -----------------------------------------------------------------------

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
