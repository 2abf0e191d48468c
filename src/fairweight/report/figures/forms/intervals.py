"""Values with their intervals: rows of shifts, pairs of models, small panels of groups.

Every row of data has a `value` (or `shift`) with `low` and `high`, may have a wider interval
(`wide_low`, `wide_high`, or `sim_low`, `sim_high`), and a band of what retraining alone does
(`floor_low`, `floor_high`). What is missing is null, with the reason in `why`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fairweight.report.figures.forms.encoding import (
    DASHED,
    Values,
    colors,
    ends,
    gaps,
    layer,
    names,
    nominal,
    numbers,
    quantitative,
    reference,
    span,
    valid,
)
from fairweight.report.figures.theme import BLUE, GREEN, GREY, ORANGE, PURPLE, Spec

INK = "currentColor"

# --- shifts of classes and groups ----------------------------------------------------------------


def cut_domain(values: Sequence[dict[str, Any]]) -> list[float]:
    """What the axis covers: every shift, and every limit except of far wider intervals.

    The interval of one tiny group would else squeeze all others into a line. Whoever loses or
    gains is drawn whole.

    >>> row = {"shift": -2.0, "sim_low": -4.0, "sim_high": 0.5}
    >>> cut_domain([row, row | {"sim_low": -90.0, "sim_high": 80.0}, row])
    [-4.0, 0.5]
    """
    spans = []
    for v in values:
        low = v["sim_low"] if v["sim_low"] is not None else v.get("low")
        high = v["sim_high"] if v["sim_high"] is not None else v.get("high")
        if low is not None and high is not None:
            spans.append((low, high))
    widths = sorted(high - low for low, high in spans)
    limit = 4 * widths[len(widths) // 2] if widths else 0.0
    shown_ = [(low, high) for low, high in spans if high - low <= limit or low > 0 or high < 0]
    ends = [end for span in shown_ for end in span]
    ends += [v["shift"] for v in values if v["shift"] is not None] + [0.0]
    return [min(ends), max(ends)]


def shift_rows(values: Values, title: str, domain: list[float], everyone: float | None) -> Spec:
    """A row per class or group: thick its own interval, thin the simultaneous limits.

    Parameters
    ----------
    title
        Of the axis.
    domain
        What the axis covers: `cut_domain` of all panels.
    everyone
        The shift of all examples, a dashed line.
    """
    along = {"title": title, "scale": {"domain": domain, "nice": True, "zero": True}}
    y = {"y": nominal("name", title=None, sort=None)}
    layers: list[Spec] = []
    if any(v["floor_high"] is not None for v in values):
        band = {"strokeWidth": 14, "color": GREY, "opacity": 0.25}
        layers.append(span("x", "floor_low", "floor_high", y, along, clip=True, **band))
    layers.append(reference("x", 0.0, strokeDash=[]))
    if everyone is not None:
        layers.append(reference("x", everyone, strokeDash=DASHED))
    point = {
        "x": quantitative("shift"),
        **y,
        "color": colors("verdict", {"loses": ORANGE, "gains": BLUE, "undecided": GREY}),
        "tooltip": [
            *names(name="who"),
            *numbers(",.0f", n="n"),
            *numbers("+.2f", shift="shift, points", low="interval from", high="to",
                     sim_low="simultaneous from", sim_high="to "),
        ],
    }  # fmt: skip
    layers += [
        span("x", "sim_low", "sim_high", y, along, clip=True, strokeWidth=1.2, color=INK),
        span("x", "low", "high", y, along, clip=True, strokeWidth=4, color=INK, opacity=0.6),
        layer("point", point, filled=True, size=80, opacity=1),
    ]
    return {"width": 420, "height": {"step": 20}, "data": {"values": values}, "layer": layers}


def scope_rows(values: Values, title: str, domain: list[float], scopes: Sequence[str]) -> Spec:
    """Two limits per class or group, one for each scope; filled where they exclude 0."""
    y = nominal("name", title=None, sort=None)
    color = colors("scope", dict(zip(scopes, (GREEN, PURPLE), strict=True)))
    offset = nominal("scope", sort=list(scopes))
    scale = {"domain": domain, "nice": True, "zero": True}
    along = {"title": title, "scale": scale}
    known = [v for v in values if v["sim_low"] is not None and v["sim_high"] is not None]
    bands = [v for v in values if v["floor_high"] is not None and v["scope"] == scopes[0]]
    shapes = {"domain": list(scopes), "range": ["circle", "diamond"]}
    point = {
        "x": quantitative("shift", **along),
        "y": y,
        "yOffset": offset,
        "stroke": color,
        "fill": color,
        "shape": nominal("scope", title=None, scale=shapes),
        "fillOpacity": filled("told"),
        "tooltip": [
            *names(name="who"),
            *names("scope"),
            *numbers("+.2f", shift="shift, points", sim_low="simultaneous from", sim_high="to",
                     floor_high="retraining, up to"),
        ],
    }  # fmt: skip
    layers: list[Spec] = []
    if bands:
        band: Spec = {"color": GREY, "opacity": 0.25, "clip": True}
        floor = {"y": y, **ends("x", "floor_low", "floor_high", along)}
        layers.append(layer("bar", floor, values=bands, **band))
    limits = {"y": y, **ends("x", "sim_low", "sim_high", along), "yOffset": offset, "stroke": color}
    layers += [
        reference("x", 0),
        layer("rule", limits, values=known, strokeWidth=2, clip=True),
        layer("point", point, values=values, size=60, strokeWidth=1.8, opacity=1),
    ]
    # Not a step: layers with and without an offset would not agree on it. A row has two points.
    return {"width": 420, "height": 28 * len(values) // 2, "layer": layers}


def filled(told: str) -> Spec:
    """A point is filled where a field says yes, and hollow where it says no."""
    return nominal(told, legend=None, scale={"domain": ["no", "yes"], "range": [0, 1]})


# --- several values per row ----------------------------------------------------------------------


@dataclass(frozen=True)
class PairedRows:
    """How rows lie below each other, with the values of several series in each."""

    row: str  # the field of the row's name
    series: str  # the field of the model or class, which has a colour
    color: Spec
    axis: str  # title
    tooltip: list[Spec]
    order: list[str] | None = None
    zero: bool = False  # whether the axis begins at 0
    size: int = 50  # of a point
    limit: int = 400  # pixels of the reason for a missing value
    said: Spec = field(default_factory=dict)  # more about the text of such a reason

    @property
    def place(self) -> Spec:
        """Where a value stands across the axis, and its colour."""
        return {
            "y": nominal(self.row, title=None, sort=self.order),
            "yOffset": nominal(self.series, sort=self.color["scale"]["domain"]),
            "color": {**self.color, "legend": {"symbolOpacity": 1}},
        }

    @property
    def along(self) -> Spec:
        """The axis of the values."""
        return {"title": self.axis, "scale": {"zero": self.zero, "nice": True}}


def paired_rows(
    values: Values, form: PairedRows, under: Sequence[Spec] = (), over: Sequence[Spec] = ()
) -> list[Spec]:
    """Layers of intervals, points and reasons; others lie under or over the points."""
    at = {**form.place, "x": quantitative("value", **form.along), "tooltip": form.tooltip}
    return [
        *whiskers(values, "x", form.place, form.along),
        *under,
        layer("point", at, where=valid("value"), filled=True, size=form.size, opacity=1),
        *over,
        gaps(form.place, form.limit, **form.said),
    ]


def whiskers(values: Values, axis: Literal["x", "y"], place: Spec, along: Spec) -> list[Spec]:
    """Layers of the grey band, the thin and the thick interval, as far as any value has them.

    Parameters
    ----------
    place
        The other encodings: where on the other axis, and the colour.
    along
        Title and scale of the axis along which the intervals lie.
    """
    plain = {k: v for k, v in place.items() if k != "color"}
    band = {"strokeWidth": 9, "color": GREY, "opacity": 0.3}
    layers = {
        "floor_low": span(axis, "floor_low", "floor_high", plain, along, clip=True, **band),
        "wide_low": span(axis, "wide_low", "wide_high", place, along, clip=True, strokeWidth=1.2),
        "low": span(axis, "low", "high", place, along, clip=True, strokeWidth=4, opacity=0.55),
    }
    return [made for end, made in layers.items() if any(v[end] is not None for v in values)]


def value_tooltip(first: Sequence[str], form: str, unit: str) -> list[Spec]:
    """What a reader sees on pointing at a value: its names, the value, both intervals, n."""
    return [
        *(nominal(name, title=name) for name in first),
        *numbers(form, value=unit, low="these models from", high="to",
                 wide_low="the method from", wide_high="to "),
        *numbers(",.0f", n="n"),
    ]  # fmt: skip


def odds_rows(values: Values, title: str, tooltip: list[Spec], height: int) -> Spec:
    """Odds ratios on a logarithmic axis, over those that retraining alone gives."""
    y = {"y": nominal("group", title=None, sort=None)}
    along: Spec = {
        "title": title,
        "scale": {"type": "log"},
        "axis": {"format": ".2~r", "tickCount": 5},
    }
    point = {
        **y,
        "x": quantitative("odds_ratio", **along),
        "fillOpacity": filled("told"),
        "tooltip": tooltip,
    }
    again = {**y, "x": quantitative("retraining_odds_ratio", **along)}
    band = {"strokeWidth": 9, "color": GREY, "opacity": 0.35}
    layers: list[Spec] = [
        layer("rule", {"x": quantitative("one", **along)}, values=[{"one": 1}],
              strokeDash=DASHED, color=GREY),
        span("x", "retraining_low", "retraining_high", y, along, **band),
        layer("tick", again, where=valid("retraining_odds_ratio"), thickness=2, color=GREY,
              size=12),
        span("x", "or_low", "or_high", y, along, strokeWidth=2, color=ORANGE),
        layer("point", point, where=valid("odds_ratio"), size=60, strokeWidth=1.8, color=ORANGE,
              fill=ORANGE, opacity=1),
    ]  # fmt: skip
    if any(v["why"] is not None for v in values):
        why = {**y, "x": {"value": 4}, "text": {"field": "why"}}
        layers.append(layer("text", why, where=valid("why"), align="left", fontSize=10, limit=200))
    return {"width": 260, "height": height, "layer": layers}


# --- small panels --------------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupPanels:
    """What small panels of groups show: metrics with their names and colours, and the axis."""

    metrics: Mapping[str, tuple[str, str]]  # metric → (name, colour)
    words: str  # in the alternative text
    axis: str
    scale: float
    form: str  # of numbers in tooltips
    zero: bool  # whether the axis begins at 0
    top: float  # what no value exceeds


WIDTH = 640  # of all panels of a line
NARROWEST = 130  # a panel whose heading can be read
HEIGHT = 130
SPACING = 20
FAR = 4  # times what three quarters of the values stay below: above it the frame ends


def group_panels(values: Values, form: GroupPanels, order: list[str]) -> Spec:
    """One panel per group, the models beside each other in it; a ring where a value is `this`."""
    several = len(form.metrics) > 1
    across = max(NARROWEST, len(order) * (22 if several else 18))
    inks = dict(form.metrics.values())
    color = colors("metric", inks, legend={"symbolOpacity": 1} if several else None)
    domain = group_domain(values, form)
    inside = f"isValid(datum.value) && datum.value <= {domain[1]!r}"
    tooltip = value_tooltip(("group", "model", "metric"), form.form, form.axis)
    groups: dict[tuple[str, str], Values] = {}
    for v in values:
        groups.setdefault((v["group"], v["size"]), []).append(v)
    # As many columns as fit, and no more than fill the lines evenly.
    lines = -(-len(groups) // max(1, WIDTH // (across + SPACING)))
    columns = -(-len(groups) // lines)
    panels = []
    for i, (heading, own) in enumerate(groups.items()):
        left = i % columns == 0
        bottom = i + columns >= len(groups)
        place: Spec = {"x": slanted("model", order, bottom, labelFontSize=11), "color": color}
        if several:
            place["xOffset"] = nominal("metric", sort=list(inks))
        along = {
            "title": form.axis if left else None,
            "scale": {"domain": domain, "zero": form.zero, "nice": form.zero},
            "axis": {"labels": left, "ticks": left, "grid": True, "tickCount": 5},
        }
        at = {**place, "y": quantitative("value", **along)}
        bare = {k: v for k, v in at.items() if k != "color"}
        layers: list[Spec] = [
            # The group above its panel; a title would move with the axis beside it.
            layer("text", {"x": {"value": across / 2}, "y": {"value": -36}}, values=[{}],
                  text=list(heading), limit=across + SPACING, baseline="top"),
            *whiskers(own, "y", place, along),
            layer("line", {**at, "order": quantitative("place")}, where=valid("value"),
                  strokeWidth=1, opacity=0.6, clip=True),
            layer("point", {**at, "tooltip": tooltip}, where=inside, filled=True, size=32,
                  opacity=1),
            layer("point", bare, where=f"{inside} && datum.this", size=110, color=GREY,
                  strokeWidth=1.5),
        ]  # fmt: skip
        if any(v["value"] is not None and v["value"] > domain[1] for v in own):
            said = {**place, "y": {"value": 0}, "text": nominal("said"), "tooltip": tooltip}
            mark: Spec = {"baseline": "top", "fontSize": 10, "align": "right", "dx": 6}
            above = {"filter": f"isValid(datum.value) && datum.value > {domain[1]!r}"}
            written = {"calculate": "'▲' + format(datum.value, '.0f')", "as": "said"}
            layers.append({**layer("text", said, **mark), "transform": [above, written]})
        if any(v["value"] is None for v in own):
            cross = {**place, "y": {"value": HEIGHT}, "tooltip": names(why="missing")}
            layers.append(
                layer("text", cross, where="!isValid(datum.value)", text="×", baseline="bottom")
            )
        panels.append({"width": across, "height": HEIGHT, "data": {"values": own}, "layer": layers})
    return {"concat": panels, "columns": columns, "spacing": SPACING, "align": "each"}


def group_domain(values: Values, form: GroupPanels) -> list[float]:
    """What the axis covers: all, except what is far above nearly everything else.

    One level of pruning that ruins a model would else press all others into a line.
    """
    limit = float("inf")
    if form.zero:
        by_metric: dict[str, list[float]] = {}
        for v in values:
            by_metric.setdefault(v["metric"], [])
            by_metric[v["metric"]] += [] if v["value"] is None else [v["value"]]
        limit = max(
            FAR * sorted(own)[(3 * (len(own) - 1)) // 4] if own else 0.0
            for own in by_metric.values()
        )
    near = [v for v in values if v["value"] is not None and v["value"] <= limit]
    reached = [
        v[end]
        for v in near
        for end in ("value", "low", "high", "wide_low", "wide_high", "floor_low", "floor_high")
        if v[end] is not None
    ]
    low, high = min(reached, default=0.0), max(reached, default=0.0)
    if form.zero:
        return [0.0, min(high, form.top) or form.top]
    return [max(0.0, min(low - 0.04 * (high - low), 0.9 * form.top)), form.top]


def slanted(field: str, order: Sequence[str], labelled: bool, **axis: Any) -> Spec:
    """Names of models below a narrow panel; only the lowest panels are labelled."""
    shown = {"labels": labelled, "ticks": labelled, "labelAngle": -60, "labelLimit": 110,
             "grid": False, **axis}  # fmt: skip
    return nominal(field, title=None, sort=order, scale={"domain": order}, axis=shown)


SIDE = 96  # of a small panel
LINE = 13  # of its heading


@dataclass(frozen=True)
class Corner:
    """Where a small panel stands in its grid, which decides what is written beside it."""

    heading: str | None  # above the first row
    left: bool
    bottom: bool


def change_panel(values: Values, order: list[str], title: str, corner: Corner, top: float) -> Spec:
    """Changes of one rate, a point per variant, cut at ± `top` with signs for what lies beyond."""
    x = slanted("at", order, corner.bottom, labelFontSize=10)
    y = {
        "title": title if corner.left else None,
        "scale": {"domain": [-top, top]},
        "axis": {"labels": corner.left, "ticks": corner.left, "tickCount": 5},
    }
    tooltip = [
        *names(at="variant"),
        *numbers("+.1f", value="change, %", low="from", high="to",
                 floor_high="retraining, up to"),
        *numbers(",.0f", "n"),
        *names(why="missing"),
    ]  # fmt: skip
    at = {"x": x, "y": quantitative("value", **y), "tooltip": tooltip}
    band = {"strokeWidth": 9, "color": GREY, "opacity": 0.3}
    inside = f"isValid(datum.value) && abs(datum.value) <= {top}"
    layers: list[Spec] = [
        span("y", "floor_low", "floor_high", {"x": x}, y, clip=True, **band),
        layer("rule", {"y": quantitative("zero", **y)}, values=[{"zero": 0}], color=GREY),
        span("y", "low", "high", {"x": x}, y, clip=True, strokeWidth=1.5, color=ORANGE),
        layer("point", at, where=inside, filled=True, size=36, color=ORANGE, opacity=1),
    ]
    known = [v["value"] for v in values if v["value"] is not None]
    signs = (
        ("▲", f"isValid(datum.value) && datum.value > {top}", 6, any(v > top for v in known)),
        ("▼", f"isValid(datum.value) && datum.value < {-top}", SIDE - 6,
         any(v < -top for v in known)),
        ("×", "!isValid(datum.value)", SIDE / 2, len(known) < len(values)),
    )  # fmt: skip
    layers += [
        layer("text", {"x": x, "y": {"value": place}, "tooltip": tooltip}, where=which, text=sign,
              fontSize=11)
        for sign, which, place, there in signs
        if there
    ]  # fmt: skip
    if corner.heading is not None:
        lines = corner.heading.split(" & ")
        above = {"x": {"value": SIDE / 2}, "y": {"value": -LINE * len(lines) - 4}}
        layers.append(
            layer("text", above, values=[{}], text=lines, baseline="top", fontSize=11,
                  lineHeight=LINE, limit=SIDE + 4)
        )  # fmt: skip
    return {"width": SIDE, "height": SIDE, "data": {"values": values}, "layer": layers}
