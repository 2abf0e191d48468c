"""Bars: histograms counted before drawing, sizes of classes, shares, probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.report.figures.forms.encoding import (
    Values,
    colors,
    layer,
    names,
    nominal,
    numbers,
    quantitative,
)
from fairweight.report.figures.theme import BLUE, GREY, ORANGE, Spec


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
