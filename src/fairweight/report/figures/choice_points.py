"""Variants as points between objectives: what PA-F4a and PA-F4b share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import missing, shown, text
from fairweight.report.figures.explained import explained
from fairweight.report.figures.parts import label, value
from fairweight.report.figures.registry import Absent, Spec
from fairweight.report.figures.theme import GREY, ORANGE
from fairweight.report.numbers import is_share

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

AIMS = {"max": "higher is better", "min": "lower is better"}
ON = "frontier"
WIDTH, HEIGHT = 420, 300
NAME = (130, 14)  # the room of a name, in pixels
MANY = 40  # variants above which points are small and have no names


@dataclass(frozen=True)
class Axis:
    """An objective as an axis: its field in the points, its title, and which way is better."""

    field: str
    term: str
    title: str


@dataclass(frozen=True)
class Points:
    """Variants with their values of every objective."""

    axes: tuple[Axis, ...]
    values: list[dict[str, Any]]


def choice_points(result: AuditResult, variant: str | None, least: int) -> Points | Absent:
    """The variants of a choice between at least so many objectives."""
    if variant is not None:
        variant_of(result, variant)  # all variants are shown together, but it must exist
    found = explained(result, "choice_values")
    ranked = explained(result, "choice")
    if isinstance(found, Absent):
        return found
    if isinstance(ranked, Absent):
        return ranked
    rows = [row for row in records(found) if not missing(row["aim"])]
    terms = {str(row["term"]): row for row in rows}
    if len(terms) < least:
        return Absent(f"there are fewer than {'two' if least == 2 else 'three'} objectives")
    axes = tuple(_axis(f"o{i}", row) for i, row in enumerate(_papers_order(list(terms.values()))))
    by_variant: dict[str, dict[str, Any]] = {}
    for row in records(ranked):
        by_variant[str(row["variant"])] = {
            "variant": label(row["variant"]),
            "standing": text(row["frontier"]) or "does not qualify",
            "on": row["frontier"] == ON,
            "chosen": bool(row["chosen"]),
        }
    fields = {axis.term: axis.field for axis in axes}
    for row in rows:
        scale = 100.0 if is_share(str(row["metric"])) else 1.0
        point, field = by_variant[str(row["variant"])], fields[str(row["term"])]
        point[field] = value(row["value"], scale)
        point[f"{field}_low"] = value(row["low"], scale)
        point[f"{field}_high"] = value(row["high"], scale)
    values = list(by_variant.values())
    _name(values, axes)
    return Points(axes, values)


def _name(points: list[dict[str, Any]], axes: tuple[Axis, ...]) -> None:
    """Mark those of the frontier whose names have room: one upon another nobody reads any."""
    room = len(points) <= MANY
    reach = []
    for axis, pixels in zip(axes[:2], (WIDTH, HEIGHT), strict=True):
        held = [p[axis.field] for p in points if not missing(p.get(axis.field))]
        reach.append(pixels / ((max(held) - min(held)) or 1.0) if held else 0.0)
    taken: list[tuple[float, float]] = []
    for point in points:
        at: list[Any] = [point.get(axis.field) for axis in axes[:2]]
        point["named"] = False
        if not room or not point["on"] or any(missing(value) for value in at):
            continue
        x, y = (float(value) * pixels for value, pixels in zip(at, reach, strict=True))
        point["named"] = all(abs(x - a) >= NAME[0] or abs(y - b) >= NAME[1] for a, b in taken)
        if point["named"]:
            taken.append((x, y))


def _papers_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sparsity across and a gap of classes upwards, as in the paper; else as they were named."""
    order = {"sparsity": 0, "class_gap": 1, "class_shortfall": 1}
    return sorted(rows, key=lambda row: order.get(text(row["metric"]) or str(row["term"]), 2))


def _axis(field: str, row: dict[str, Any]) -> Axis:
    unit = ", %" if is_share(str(row["metric"])) else ""
    aim = AIMS.get(str(row["aim"]))
    better = f" ({aim})" if aim else ""
    return Axis(field, str(row["term"]), f"{shown(row['term'])}{unit}{better}")


def plane(points: Points, color: Spec) -> list[Spec]:
    """Layers of the first two objectives: intervals, points, crosses on the frontier, names."""
    across, up = points.axes[0], points.axes[1]

    def encoded(axis: Axis, channel: str) -> dict[str, Any]:
        scale = {"zero": False, "nice": False, "padding": 24}
        found = {"field": axis.field, "type": "quantitative", "title": axis.title, "scale": scale}
        return {channel: found}

    at = {**encoded(across, "x"), **encoded(up, "y")}
    tooltip = [{"field": "variant", "type": "nominal"}, {"field": "standing", "type": "nominal"}]
    tooltip += [
        {"field": axis.field, "type": "quantitative", "title": axis.title, "format": ".4g"}
        for axis in points.axes
    ]
    size = 60 if len(points.values) > MANY else 200
    layers: list[Spec] = []
    for axis, channel in ((across, "x"), (up, "y")):
        if any(not missing(point.get(f"{axis.field}_low")) for point in points.values):
            ends = {**at[channel], "field": f"{axis.field}_low"}
            layers.append(
                {
                    "mark": {"type": "rule", "color": GREY, "opacity": 0.6},
                    "encoding": {
                        **at,
                        channel: ends,
                        f"{channel}2": {"field": f"{axis.field}_high"},
                    },
                }
            )
    layers.append(
        {
            "mark": {"type": "point", "filled": True, "size": size, "opacity": 0.9},
            "encoding": {**at, "color": color, "tooltip": tooltip},
        }
    )
    layers.append(
        {
            "transform": [{"filter": "datum.on"}],
            "mark": {"type": "text", "text": "×", "fontSize": 22, "baseline": "middle"},
            "encoding": at,
        }
    )  # fmt: skip
    layers.append(
        {
            "transform": [{"filter": "datum.chosen"}],
            "mark": {"type": "point", "size": 480, "color": ORANGE, "strokeWidth": 2},
            "encoding": at,
        }
    )
    layers.append(
        {
            "transform": [{"filter": "datum.named"}],
            "mark": {"type": "text", "align": "right", "dx": -9, "dy": -9, "limit": NAME[0]},
            "encoding": {**at, "text": {"field": "variant"}},
        }
    )
    return layers


def title_of(points: Points) -> str:
    """How many variants there are, and how many are on the frontier."""
    on = sum(point["on"] for point in points.values)
    chosen = [point["variant"] for point in points.values if point["chosen"]]
    ring = f"; ring: chosen, {chosen[0]}" if chosen else ""
    return f"{len(points.values)} variants, {on} on the frontier (crosses){ring}"
