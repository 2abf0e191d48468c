"""Lines: numbers against sparsity, against a budget, by setting, and against a score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairweight.report.figures.forms.encoding import (
    DASHED,
    Values,
    colors,
    diagonal,
    ends,
    layer,
    names,
    nominal,
    numbers,
    quantitative,
    reference,
    span,
)
from fairweight.report.figures.theme import BLUE, GREY, ORANGE, SERIES, Spec, heading

LEGEND_COLUMNS = 4
SETTINGS = (BLUE, ORANGE, *SERIES[2:])
_DASHES = ([1, 0], [6, 3], [2, 2])


def sparsity_panel(points: Values, ticks: Values, title: str, methods: Sequence[str]) -> Spec:
    """One metric: points with intervals, joined within a method, members as ticks.

    Parameters
    ----------
    points
        As `inputs.point` makes them.
    ticks
        The values of single members.
    methods
        Every line of the figure, so that its panels share their colours.
    """
    x = quantitative("sparsity", title="sparsity", scale={"zero": False, "padding": 16})
    named = list(dict.fromkeys(methods))
    legend: Spec | None = None if len(named) < 2 else {"columns": LEGEND_COLUMNS}
    dash: Spec = {}
    if len(named) > len(SERIES):  # more methods than colours: a second round of them is dashed
        legend = {"columns": LEGEND_COLUMNS, "symbolType": "stroke", "symbolStrokeWidth": 2,
                  "symbolSize": 300}  # fmt: skip
        rounds = [_DASHES[i // len(SERIES) % len(_DASHES)] for i in range(len(named))]
        scale = {"domain": named, "range": rounds}
        dash["strokeDash"] = nominal("method", title=None, scale=scale)
    color = {"color": colors("method", named, SERIES, legend=legend)}
    share = any(p["baseline"] is not None for p in points)
    y = {"title": title, "scale": {"zero": not share, "nice": True}}
    at = {"x": x, "y": quantitative("value", **y)}
    bands = [p for p in points if p["floor_high"] is not None]
    spans = [p for p in points if p["low"] is not None and p["high"] is not None]
    wide = [p for p in points if p["wide_low"] is not None and p["wide_high"] is not None]
    before = next((p["baseline"] for p in points if p["baseline"] is not None), None)
    layers: list[Spec] = []
    if bands:
        layers.append(
            layer("rule", {"x": x, **ends("y", "floor_low", "floor_high", y)}, values=bands,
                  strokeWidth=14, color=GREY, opacity=0.25)
        )  # fmt: skip
    if before is not None:
        layers.append(reference("y", before, strokeDash=DASHED))
    layers.append(layer("line", {**at, **color, **dash}, values=points, opacity=0.7))
    if ticks:
        layers.append(
            layer("tick", {**at, **color}, values=ticks, orient="horizontal", size=12,
                  opacity=0.6)
        )  # fmt: skip
    if wide:
        thin = {"x": x, **ends("y", "wide_low", "wide_high", y), **color}
        layers.append(layer("rule", thin, values=wide, strokeWidth=1.2))
    tooltip = [
        *names("variant"),
        quantitative("sparsity"),
        *numbers(".4g", value=title, low="from", high="to"),
        *numbers(",.0f", n="n"),
    ]
    this = [p for p in points if p["this"]]
    layers += [
        layer("rule", {"x": x, **ends("y", "low", "high", y), **color}, values=spans,
              strokeWidth=4 if wide else 2),
        layer("point", {**at, **color, "tooltip": tooltip}, values=points, filled=True,
              size=55, opacity=1),
        layer("point", at, values=this, size=220, color=GREY, strokeWidth=2),
    ]  # fmt: skip
    return {"width": 260, "height": 200, "layer": layers}


def class_panel(technique: str, values: Values, *, small: bool) -> Spec:
    """A line per class against sparsity, coloured by its accuracy before pruning."""
    y = {"title": "accuracy of the class, %", "scale": {"zero": False}}
    color = quantitative("before", title="accuracy before pruning, %", scale={"scheme": "viridis"})
    x = quantitative("sparsity", title="sparsity", axis={"tickCount": 5})
    place = {"x": x, "color": color}
    at = {**place, "y": quantitative("value", **y)}
    tooltip = [
        *names("class"),
        quantitative("sparsity"),
        *numbers(".1f", value="accuracy, %", low="from", high="to", before="before pruning, %"),
        *numbers(",.0f", "n"),
    ]
    return {
        "title": heading(technique),
        **({"width": 170, "height": 150} if small else {"width": 240, "height": 190}),
        "data": {"values": values},
        "layer": [
            span("y", "low", "high", place, y, opacity=0.35),
            layer("line", {**at, "detail": nominal("class")}, strokeWidth=1.4),
            layer("circle", {**at, "tooltip": tooltip}, size=22, opacity=1),
        ],
    }


def setting_panel(
    points: Values,
    places: Sequence[str],
    settings: Sequence[str],
    axis: str,
    title: str,
    *,
    rule: float | None = None,
) -> Spec:
    """A line per setting over variants, with intervals over examples.

    Parameters
    ----------
    places
        The variants, in the order of their sparsity.
    rule
        A value that means "nothing": 0 of a bias, 1 of TCB.
    """
    y: Spec = {"title": axis, "scale": {"zero": False, "nice": True}}
    slanted = {"labelAngle": -35, "labelOverlap": False}
    scale = {"domain": list(places)}
    shared = {
        "x": nominal("variant", title=None, sort=list(places), scale=scale, axis=slanted),
        "color": colors("setting", settings, SETTINGS),
    }
    at = {**shared, "y": quantitative("value", **y)}
    limits = {**shared, **ends("y", "low", "high", y)}
    tooltip = [
        *names("setting", "variant"),
        *numbers(".4g", "value", "low", "high", "members", "n"),
    ]
    layers: list[Spec] = [] if rule is None else [reference("y", rule, y, strokeDash=DASHED)]
    layers += [
        layer("line", at, values=points, opacity=0.8),
        layer("rule", limits, values=[p for p in points if p["low"] is not None], strokeWidth=2,
              opacity=0.7),
        layer("point", {**at, "tooltip": tooltip}, values=points, filled=True, size=45, opacity=1),
    ]  # fmt: skip
    said = title if points else f"{title}: cannot tell"
    return {"width": {"step": 44}, "height": 150, "title": heading(said), "layer": layers}


def band_panel(
    values: Values,
    x: Spec,
    y: str,
    color: Spec,
    tooltip: list[Spec],
    title: str,
    more: Sequence[Spec] = (),
) -> Spec:
    """A line of `value` in its band from `low` to `high`, one per colour; `more` lies above.

    Parameters
    ----------
    y
        The title of the axis.
    """
    axis = {"title": y, "scale": {"zero": False}}
    band = {"x": x, **ends("y", "low", "high", axis), "color": color}
    line = {"x": x, "y": quantitative("value", **axis), "color": color, "tooltip": tooltip}
    return {
        "width": 250,
        "height": 200,
        "title": heading(title),
        "layer": [
            layer("area", band, values=values, opacity=0.18),
            layer("line", line, values=values, strokeWidth=2, point={"size": 18}),
            *more,
        ],
    }


def reliability_panel(values: Values, color: Spec, title: str) -> Spec:
    """The share that came true against the mean score, a line per model."""
    share: dict[str, Any] = {"scale": {"domain": [0, 1]}, "axis": {"format": ".0%", "tickCount": 5}}
    x = quantitative("score", title="mean score", **share)
    y = quantitative("right", title="share observed", **share)
    at = {"x": x, "y": y, "color": color}
    area = quantitative("n", scale={"range": [15, 250]}, legend=None)
    tooltip = [*names("model"), *numbers(",.0f", "n"), *numbers(".1%", "score", "right")]
    return {
        "title": heading(title),
        "width": 260,
        "height": 260,
        "data": {"values": values},
        "layer": [
            diagonal(x, y, (0, 1)),
            layer("line", at),
            layer("circle", {**at, "size": area, "tooltip": tooltip}, opacity=0.85),
        ],
    }
