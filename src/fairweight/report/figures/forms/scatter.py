"""Points in a plane: individuals, classes, and variants between objectives or distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairweight.base.wording import missing
from fairweight.report.figures.forms.encoding import (
    DASHED,
    Values,
    colors,
    diagonal,
    layer,
    names,
    nominal,
    numbers,
    quantitative,
)
from fairweight.report.figures.theme import BLUE, EVERYONE, GREY, ORANGE, SERIES, Spec
from fairweight.report.numbers import label_of

MANY = 40  # points above which they are small and have no names
SIGMAS = 2.448  # 95 % of a two-dimensional normal distribution: sqrt(chi2(2, .95))

# --- individuals ---------------------------------------------------------------------------------


def group_colors(values: Values) -> Spec:
    """The colour of a group; without groups there is no legend."""
    groups = sorted({v["group"] for v in values})
    legend = None if len(groups) < 2 else {"symbolOpacity": 1}
    return colors("group", groups, SERIES, legend=legend)


def individual_tooltip(**more: str) -> list[Spec]:
    """Who a point is, both accuracies, the shrunken shift with its interval, and properties."""
    return [
        *names(who="individual"),
        *names("group"),
        *numbers(",.0f", n="n"),
        *numbers(".1f", baseline="before, %", compressed="after, %"),
        *numbers("+.1f", shift="shift, points", shift_shrunk="shrunken shift", shift_low="from",
                 shift_high="to"),
        *numbers(".4g", **more),
    ]  # fmt: skip


def fitted_lines(values: Values, x: str, y: str, by_group: bool = True) -> Values:
    """The ends of the least-squares line of each group; none below three points.

    >>> row = {"group": "a", "x": 0.0, "y": 1.0}
    >>> ends = fitted_lines([row, row | {"x": 1.0, "y": 3.0}, row | {"x": 2.0, "y": 5.0}], "x", "y")
    >>> [(round(e["x"], 6), round(e["y"], 6)) for e in ends]
    [(0.0, 1.0), (2.0, 5.0)]
    """
    made = []
    for group in sorted({v["group"] for v in values}) if by_group else [EVERYONE]:
        own = [(v[x], v[y]) for v in values if not by_group or v["group"] == group]
        known = [(a, b) for a, b in own if a is not None and b is not None]
        across = [a for a, _ in known]
        if len(known) < 3 or min(across) == max(across):
            continue
        slope, start = np.polyfit(across, [b for _, b in known], 1)
        made += [
            {"group": group, x: end, y: float(start + slope * end)}
            for end in (min(across), max(across))
        ]
    return made


def reach(values: Values, *fields: str) -> Spec:
    """A scale over all values of some fields."""
    ends = [v[name] for v in values for name in fields if v[name] is not None]
    return {"domain": [min(ends), max(ends)], "nice": True, "zero": False}


def before_after(
    values: Values, suffix: str, words: str, fits: Values | None = None, spans: Values | None = None
) -> Spec:
    """Accuracy after against accuracy before, a point per individual, its area the examples.

    Parameters
    ----------
    suffix
        Of the fields: nothing as counted, `_shrunk` as shrunken.
    fits
        Ends of the lines of groups.
    spans
        Individuals whose intervals are drawn.
    """
    x = quantitative(f"baseline{suffix}", title=f"accuracy before, % ({words})",
                     scale=reach(values, "baseline", "baseline_shrunk"))  # fmt: skip
    y = quantitative(f"compressed{suffix}", title="accuracy after, %",
                     scale=reach(values, "compressed", "compressed_shrunk"))  # fmt: skip
    at = {"x": x, "y": y, "color": group_colors(values)}
    size = quantitative("n", legend=None, scale={"range": [8, 60]})
    layers = [
        diagonal(x, y, (0, 100), clip=True),
        layer("circle", {**at, "size": size, "tooltip": individual_tooltip()}, opacity=0.6),
    ]
    if fits:
        layers.append(layer("line", at, values=fits, strokeWidth=2, clip=True))
    if spans:
        ends = {**at, "y": {**y, "field": "compressed_low"}, "y2": {"field": "compressed_high"}}
        layers.append(layer("rule", ends, values=spans, clip=True, strokeWidth=1.4))
    return {"width": 280, "height": 280, "layer": layers}


def colored_before_after(values: Values, field: str, words: str, color: Spec) -> Spec:
    """Accuracy after against accuracy before, coloured by a property."""
    x = quantitative("baseline", title="accuracy before, %", scale=reach(values, "baseline"))
    y = quantitative("compressed", title="accuracy after, %", scale=reach(values, "compressed"))
    at = {"x": x, "y": y, "color": quantitative(field, **color),
          "tooltip": individual_tooltip(**{field: words})}  # fmt: skip
    return {
        "width": 260,
        "height": 220,
        "layer": [
            diagonal(x, y, (0, 100), clip=True),
            layer("circle", at, where=f"isValid(datum.{field})", size=30, opacity=0.85),
        ],
    }


def shift_panel(values: Values, field: str, words: str) -> Spec:
    """Shifts of individuals against a property: pale as counted, strong as shrunken."""
    x = quantitative(field, title=words, scale={"zero": False})
    y = {"title": "shift, points"}
    shift = {"x": x, "y": quantitative("shift", **y)}
    color = {"color": group_colors(values)}
    strong = {
        "x": x,
        "y": quantitative("shift_shrunk", **y),
        **color,
        "tooltip": individual_tooltip(**{field: words}),
    }
    line = fitted_lines(values, field, "shift", by_group=False)
    return {
        "width": 220,
        "height": 200,
        "layer": [
            layer("rule", {"y": quantitative("zero", **y)}, values=[{"zero": 0}], color=GREY),
            layer("circle", {**shift, **color}, size=14, opacity=0.25),
            layer("circle", strong, size=22, opacity=0.85),
            layer("line", shift, values=line, color=GREY, strokeWidth=2.5),
        ],
    }


def property_panel(
    values: Values, lines: Values, side: str, words: str, title: str, scale: Spec
) -> Spec:
    """Accuracies of individuals on one side against a property (`p0`), with lines of groups."""
    x = quantitative("p0", title=words, scale={"zero": False})
    y = quantitative(side, title=title, scale=scale)
    at = {"x": x, "y": y, "color": group_colors(values + lines)}
    tooltip = individual_tooltip(p0=words)
    return {
        "width": 280,
        "height": 240,
        "layer": [
            layer("circle", {**at, "tooltip": tooltip}, where="isValid(datum.p0)", size=20,
                  opacity=0.5),
            layer("line", at, values=lines, strokeWidth=2.5, clip=True),
        ],
    }  # fmt: skip


# --- classes -------------------------------------------------------------------------------------


def class_plane(points: Values, centre: dict[str, object]) -> Spec:
    """Changes of two error rates, a point per class, with their mean and the ellipse of them."""
    x, y = ([float(p[rate]) for p in points] for rate in ("fpr", "fnr"))
    place = {"x": quantitative("fpr"), "y": quantitative("fnr")}
    at = {
        axis: {**held, "title": f"change of {label_of(held['field'])}, % of baseline"}
        for axis, held in place.items()
    }
    told = {**at, "tooltip": [*names("class"), *numbers("+.1f", fpr="FPR, %", fnr="FNR, %")]}
    layers: list[Spec] = [
        {"data": {"values": [{"at": 0}]}, "mark": "rule", "encoding": {axis: quantitative("at")}}
        for axis in ("x", "y")
    ]
    outline = ellipse(x, y)
    if outline:
        around = {**place, "order": quantitative("i")}
        layers.append(layer("line", around, values=outline, color=BLUE, opacity=0.8))
    layers.append(layer("circle", told, values=points, size=60, color=ORANGE, opacity=0.85))
    if len(points) <= MANY:
        layers.append(
            layer("text", {**at, "text": nominal("class")}, values=points, align="left", dx=7,
                  limit=120, fontSize=11)
        )  # fmt: skip
    layers.append(
        layer("point", told, values=[centre], shape="cross", size=160, filled=True, color=BLUE,
              stroke=GREY)
    )  # fmt: skip
    return {"width": 520, "height": 360, "layer": layers}


def ellipse(x: list[float], y: list[float], steps: int = 72) -> list[dict[str, float]]:
    """The outline of the covariance ellipse at 2.448 sigma; nothing below three points.

    Uncorrelated x and y of equal variance give a circle:

    >>> ring = ellipse([1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0])
    >>> sorted({round((p["fpr"] ** 2 + p["fnr"] ** 2) / SIGMAS**2, 3) for p in ring})
    [0.667]
    """
    if len(x) < 3:
        return []
    covariance = np.cov(x, y)
    sizes, axes = np.linalg.eigh(covariance)
    angle = np.linspace(0, 2 * math.pi, steps + 1)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    ring = axes @ (SIGMAS * np.sqrt(np.maximum(sizes, 0))[:, None] * circle)
    ring += np.array([[np.mean(x)], [np.mean(y)]])
    return [{"i": i, "fpr": float(a), "fnr": float(b)} for i, (a, b) in enumerate(ring.T)]


# --- variants ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """An objective as an axis: its field in the points, its title, and which way is better."""

    field: str
    term: str
    title: str


WIDTH, HEIGHT = 420, 300
NAME = (130, 14)  # the room of a name, in pixels


def objective_plane(points: Values, axes: Sequence[Axis], color: Spec) -> Spec:
    """Variants between the first two objectives: intervals, crosses on the frontier, names."""
    # Names of the frontier where they have room: one upon another nobody reads any.
    scales = []
    for axis, pixels in zip(axes[:2], (WIDTH, HEIGHT), strict=True):
        held = [p[axis.field] for p in points if not missing(p.get(axis.field))]
        scales.append(pixels / ((max(held) - min(held)) or 1.0) if held else 0.0)
    taken: list[tuple[float, float]] = []
    for point in points:
        place = [point.get(axis.field) for axis in axes[:2]]
        point["named"] = False
        if len(points) > MANY or not point["on"] or any(missing(end) for end in place):
            continue
        x, y = (float(end or 0) * pixels for end, pixels in zip(place, scales, strict=True))
        point["named"] = all(abs(x - a) >= NAME[0] or abs(y - b) >= NAME[1] for a, b in taken)
        if point["named"]:
            taken.append((x, y))
    scale = {"zero": False, "nice": False, "padding": 24}
    at = {
        channel: quantitative(axis.field, title=axis.title, scale=scale)
        for channel, axis in zip("xy", axes, strict=False)
    }
    layers: list[Spec] = []
    for channel, axis in zip("xy", axes, strict=False):
        if any(not missing(point.get(f"{axis.field}_low")) for point in points):
            low = {**at[channel], "field": f"{axis.field}_low"}
            ends = {**at, channel: low, f"{channel}2": {"field": f"{axis.field}_high"}}
            layers.append(layer("rule", ends, color=GREY, opacity=0.6))
    tooltip = names("variant", "standing")
    tooltip += [quantitative(axis.field, title=axis.title, format=".4g") for axis in axes]
    size = 60 if len(points) > MANY else 200
    layers += [
        layer("point", {**at, "color": color, "tooltip": tooltip}, filled=True, size=size,
              opacity=0.9),
        layer("text", at, where="datum.on", text="×", fontSize=22, baseline="middle"),
        layer("point", at, where="datum.chosen", size=480, color=ORANGE, strokeWidth=2),
        layer("text", {**at, "text": {"field": "variant"}}, where="datum.named", align="right",
              dx=-9, dy=-9, limit=NAME[0]),
    ]  # fmt: skip
    return {"width": WIDTH, "height": HEIGHT, "data": {"values": points}, "layer": layers}


@dataclass(frozen=True)
class DistancePanel:
    """CEV of variants against the distance of their representations in one block."""

    axis: str
    title: Spec
    top: float  # of the axis of CEV
    color: Spec
    floor: float  # the distance that retraining alone gives
    line: Values  # the fitted line with its band; empty where none was fitted


def distance_panel(points: Values, form: DistancePanel) -> Spec:
    """Variants as points; those without a sparsity are grey."""
    x = quantitative("distance", title=form.axis, scale={"zero": False, "padding": 14},
                     axis={"tickCount": 5})  # fmt: skip
    y = quantitative("cev", title="CEV", scale={"domain": [0, form.top]})
    layers: list[Spec] = []
    if form.line:
        band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        layers = [
            layer("area", band, values=form.line, color=GREY, opacity=0.25, clip=True),
            layer("line", {"x": x, "y": y}, values=form.line, color=GREY, strokeWidth=2, clip=True),
        ]
    if not missing(form.floor):
        layers.append(
            layer("rule", {"x": x}, values=[{"distance": form.floor}], strokeDash=DASHED,
                  color=GREY)
        )  # fmt: skip
    tooltip = [
        *names("variant"),
        quantitative("sparsity"),
        *numbers(".4g", "distance"),
        *numbers(".4g", cev="CEV"),
    ]
    for bare in (False, True):
        color = {"value": GREY} if bare and "field" in form.color else form.color
        own = [p for p in points if (p["sparsity"] is None) == bare]
        at = {"x": x, "y": y, "color": color, "tooltip": tooltip}
        layers.append(layer("point", at, values=own, filled=True, size=70, opacity=1))
    return {"width": 270, "height": 210, "title": form.title, "layer": layers}


def share_plane(values: Values, data: str, tooltip: list[Spec], height: int) -> Spec:
    """The share among exemplars against that in the data, on logarithmic axes."""
    fields = ("source", "exemplars")
    known = [v[k] for v in values for k in fields if v[k] is not None and v[k] > 0]
    ends = [min(known) / 1.3, max(known) * 1.3] if known else [1.0, 100.0]
    axis = {
        "axis": {"format": ".2~r", "tickCount": 4},
        "scale": {"type": "log", "domain": ends},
    }
    x = quantitative("source", title=f"share of the {data} data, %", **axis)
    y = quantitative("exemplars", title="share of exemplars, %", **axis)
    positive = "datum.source > 0 && datum.exemplars > 0"
    return {
        "width": 240,
        "height": height,
        "layer": [
            diagonal(x, y, ends),
            layer("circle", {"x": x, "y": y, "tooltip": tooltip}, where=positive, size=55,
                  color=ORANGE, opacity=0.85),
        ],
    }  # fmt: skip
