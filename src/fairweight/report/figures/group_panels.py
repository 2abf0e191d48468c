"""One small panel per group, the baseline and all variants in it: what SG-F4 and SG-F6 share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import at_task, records, select
from fairweight.base.wording import missing
from fairweight.report.figures.measured import (
    Pair,
    left_blank,
    measured,
    pairs_of,
    retrained,
    tooltip,
    whiskers,
    why_missing,
)
from fairweight.report.figures.parts import label, labels, largest, selection
from fairweight.report.figures.registry import Absent, Spec
from fairweight.report.figures.theme import GREY
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

PANELS = 12
MODELS = 16  # beside each other in a panel
WIDTH = 640  # of all panels of a line
NARROWEST = 130  # a panel whose heading can be read
HEIGHT = 130
SPACING = 20
FAR = 4  # times what three quarters of the values stay below: above it the frame ends

Table = dict[str, dict[tuple[str, str], Pair]]  # group → (variant, metric) → rows


@dataclass(frozen=True)
class Shown:
    """What the panels show: metrics with their names and colours, and the axis."""

    metrics: Mapping[str, tuple[str, str]]  # metric → (name, colour)
    words: str  # in the alternative text
    axis: str
    scale: float
    form: str  # of numbers in tooltips
    zero: bool  # whether the axis begins at 0
    top: float  # what no value exceeds


def group_panels(result: AuditResult, name: str, task: str | None, what: Shown) -> Spec | Absent:
    """Every metric of every group in the baseline and all variants; `name` is ringed."""
    table = _by_group(result, what, task)
    if not table:
        return Absent(_why_nothing(result, name, what, task))
    variants = _variants(result, table, name)
    groups = largest(list(table), [_change(pairs_.values()) for pairs_ in table.values()], PANELS)
    order = labels([result.baseline, *variants])
    values: list[dict[str, Any]] = []
    for text, group in zip(labels(groups), groups, strict=True):
        size = _size(table[group], name, what)
        for (variant, metric), pair in table[group].items():
            here = {"group": text, "size": size, "metric": what.metrics[metric][0]}
            if variant == name:  # the baseline as this variant is compared with it
                before = {**here, "model": order[0], "place": 0, "this": False}
                before |= {"floor_low": None, "floor_high": None}
                values.append(before | measured(pair, "baseline", what.scale))
            if variant in variants:
                place = 1 + variants.index(variant)
                after = {**here, "model": order[place], "place": place, "this": variant == name}
                after |= retrained(pair, what.scale)
                values.append(after | measured(pair, "compressed", what.scale))
    said = [
        f"{count(len(variants))} {'variant' if len(variants) == 1 else 'variants'} against "
        f"{label(result.baseline)}",
        f"ring: {label(name)}",
        selection(len(groups), len(table), "groups"),
        selection(len(variants), len(result.variants), "variants"),
        left_blank(values),
    ]
    across = max(NARROWEST, len(order) * (22 if len(what.metrics) > 1 else 18))
    columns = _columns(len(groups), across)
    domain = _domain(values, what)
    panels: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for v in values:
        panels.setdefault((v["group"], v["size"]), []).append(v)
    return {
        "title": "; ".join(part for part in said if part),
        "description": (
            f"{what.words} of {count(len(groups))} groups in {label(result.baseline)} and "
            f"{count(len(variants))} variants, one panel per group; {label(name)} is ringed."
        ),
        "concat": [
            {
                "width": across,
                "height": HEIGHT,
                "data": {"values": own},
                "layer": [
                    _heading(heading, across),
                    *_layers(
                        own, what, order, domain, i % columns == 0, i + columns >= len(panels)
                    ),
                ],
            }
            for i, (heading, own) in enumerate(panels.items())
        ],
        "columns": columns,
        "spacing": SPACING,
        "align": "each",
    }


def _columns(panels: int, across: int) -> int:
    """As many as fit, and no more than fill the lines evenly.

    >>> _columns(7, 100), _columns(1, 900)
    (4, 1)
    """
    most = max(1, WIDTH // (across + SPACING))
    lines = -(-panels // most)
    return -(-panels // lines)


def _heading(lines: tuple[str, str], across: int) -> Spec:
    """The group above its panel; a title would move with the axis beside it."""
    return {
        "data": {"values": [{}]},
        "mark": {"type": "text", "text": list(lines), "limit": across + SPACING, "baseline": "top"},
        "encoding": {"x": {"value": across / 2}, "y": {"value": -36}},
    }


def _domain(values: list[dict[str, Any]], what: Shown) -> list[float]:
    """What the axis covers: all, except what is far above nearly everything else.

    One level of pruning that ruins a model would else press all others into a line.
    """
    limit = float("inf")
    if what.zero:
        limit = max(_far([v["value"] for v in values if v["metric"] == m])
                    for m in {v["metric"] for v in values})  # fmt: skip
    near = [v for v in values if v["value"] is not None and v["value"] <= limit]
    ends = [
        v[end]
        for v in near
        for end in ("value", "low", "high", "wide_low", "wide_high", "floor_low", "floor_high")
        if v[end] is not None
    ]
    low, high = min(ends, default=0.0), max(ends, default=0.0)
    if what.zero:
        return [0.0, min(high, what.top) or what.top]
    return [max(0.0, min(low - 0.04 * (high - low), 0.9 * what.top)), what.top]


def _far(values: list[float | None]) -> float:
    """Above this a value lies far from three quarters of the others.

    >>> _far([1.0, 2.0, 2.5, 80.0]), _far([None])
    (10.0, 0.0)
    """
    known = sorted(v for v in values if v is not None)
    return FAR * known[(3 * (len(known) - 1)) // 4] if known else 0.0


def _by_group(result: AuditResult, what: Shown, task: str | None) -> Table:
    """Rows of groups of single columns; of intersections only where there is nothing else."""
    from fairweight.auditing.gate.endpoints import column_of

    columns = result.single_columns or result.groupings
    table: Table = {}
    for metric in what.metrics:
        rows_of = pairs_of(result, result.variants, metric, "group", task)
        named = {str(group) for rows in rows_of.values() for group in rows}
        wanted = {group for group in named if column_of(group, result.groupings) in columns}
        for variant, rows in rows_of.items():
            for group, pair in rows.items():
                if group in wanted:
                    table.setdefault(str(group), {})[variant, metric] = pair
    known = {g for g, found in table.items() if any(_known(pair) for pair in found.values())}
    return {group: found for group, found in table.items() if group in known}


def _known(pair: Pair) -> bool:
    return not (missing(pair[0]["baseline"]) and missing(pair[0]["compressed"]))


def _why_nothing(result: AuditResult, name: str, what: Shown, task: str | None) -> str:
    if not result.groupings:
        return "there are no groups"
    for by in ("group", "grouping", "overall"):
        for metric in what.metrics:
            rows = records(at_task(select(result, name, metric, by), result, task))
            if rows:
                return why_missing(rows[0])
    return f"there is no {what.words} by group"


def _change(found: Any) -> float:
    """The largest change of a group in any variant."""
    changes = [abs(float(row["shift"])) for row, _ in found if not missing(row["shift"])]
    return max(changes, default=0.0)


def _variants(result: AuditResult, table: Table, name: str) -> list[str]:
    """The variants that fit: those that change most, and the one that the figure is about."""
    sizes = []
    for variant in result.variants:
        own = [pair for found in table.values() for (v, _), pair in found.items() if v == variant]
        sizes.append(float("inf") if variant == name else _change(own))
    return largest(list(result.variants), sizes, MODELS - 1)


def _size(found: dict[tuple[str, str], Pair], name: str, what: Shown) -> str:
    """The number of examples behind each metric, once where they are the same."""
    rows = [found.get((name, metric)) for metric in what.metrics]
    return "n " + " / ".join(dict.fromkeys(count(pair[0]["n"]) for pair in rows if pair))


def _layers(
    own: list[dict[str, Any]],
    what: Shown,
    order: list[str],
    domain: list[float],
    left: bool,
    bottom: bool,
) -> list[Spec]:
    names = [name for name, _ in what.metrics.values()]
    several = len(names) > 1
    place: Spec = {
        "x": {
            "field": "model",
            "type": "nominal",
            "title": None,
            "sort": order,
            "scale": {"domain": order},
            "axis": {
                "labels": bottom,
                "ticks": bottom,
                "labelAngle": -60,
                "labelLimit": 110,
                "labelFontSize": 11,
                "grid": False,
            },
        },
        "color": {
            "field": "metric",
            "type": "nominal",
            "title": None,
            "scale": {"domain": names, "range": [color for _, color in what.metrics.values()]},
            "legend": {"symbolOpacity": 1} if several else None,
        },
    }
    if several:
        place["xOffset"] = {"field": "metric", "type": "nominal", "sort": names}
    along = {
        "title": what.axis if left else None,
        "scale": {"domain": domain, "zero": what.zero, "nice": what.zero},
        "axis": {"labels": left, "ticks": left, "grid": True, "tickCount": 5},
    }
    at = {**place, "y": {"field": "value", "type": "quantitative", **along}}
    inside = f"isValid(datum.value) && datum.value <= {domain[1]!r}"
    above = f"isValid(datum.value) && datum.value > {domain[1]!r}"
    who = [("group", "group"), ("model", "model"), ("metric", "metric")]
    layers: list[Spec] = [
        *whiskers(own, "y", place, along),
        {
            "transform": [{"filter": "isValid(datum.value)"}],
            "mark": {"type": "line", "strokeWidth": 1, "opacity": 0.6, "clip": True},
            "encoding": {**at, "order": {"field": "place", "type": "quantitative"}},
        },
        {
            "transform": [{"filter": inside}],
            "mark": {"type": "point", "filled": True, "size": 32, "opacity": 1},
            "encoding": {**at, "tooltip": tooltip(who, what.form, what.axis)},
        },
        {
            "transform": [{"filter": f"{inside} && datum.this"}],
            "mark": {"type": "point", "size": 110, "color": GREY, "strokeWidth": 1.5},
            "encoding": {k: v for k, v in at.items() if k != "color"},
        },
    ]
    if any(v["value"] is not None and v["value"] > domain[1] for v in own):
        layers.append(
            {
                "transform": [
                    {"filter": above},
                    {"calculate": "'▲' + format(datum.value, '.0f')", "as": "said"},
                ],
                "mark": {
                    "type": "text",
                    "baseline": "top",
                    "fontSize": 10,
                    "align": "right",
                    "dx": 6,
                },
                "encoding": {
                    **place,
                    "y": {"value": 0},
                    "text": {"field": "said", "type": "nominal"},
                    "tooltip": tooltip(who, what.form, what.axis),
                },
            }
        )
    if any(v["value"] is None for v in own):
        layers.append(
            {
                "transform": [{"filter": "!isValid(datum.value)"}],
                "mark": {"type": "text", "text": "×", "baseline": "bottom"},
                "encoding": {
                    **place,
                    "y": {"value": HEIGHT},
                    "tooltip": [{"field": "why", "type": "nominal", "title": "missing"}],
                },
            }
        )
    return layers
