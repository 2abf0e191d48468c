"""FW-7: the shift of every class and group in both scopes, over what retraining alone moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import Scope, at_task, is_ok, records, select, variant_of
from fairweight.base.wording import missing, real, text
from fairweight.report.figures.parts import (
    cut_domain,
    label,
    labels,
    largest,
    pair_title,
    selection,
    value,
)
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import GREEN, GREY, PURPLE
from fairweight.report.finding import CONFIRMATORY
from fairweight.report.numbers import count
from fairweight.report.sentences import SIDES

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

ROW = 28  # height of a class or group: two points
LIMIT = 25  # rows per panel: each holds two intervals
SCOPES: tuple[Scope, Scope] = ("model", "method")


@figure(
    "FW-7",
    title="These models, and the method beyond retraining",
    caption=(
        "Shift in percentage points with simultaneous limits, twice: for these models as they are "
        "(circle) and for the method, where members are a sample too (diamond). Filled: the limits "
        "exclude 0. Grey band: what retraining alone moves at matched numbers of members; it is "
        "context and decides nothing. Far wider limits than the others' are cut at the frame."
    ),
)
def scopes(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    panels: list[tuple[list[dict[str, Any]], str]] = []
    said: list[str] = []
    reason = "there is one model on each side"
    for metric, by in CONFIRMATORY:
        model, method = (
            at_task(select(result, name, metric, by, scope), result, task) for scope in SCOPES
        )
        limits = {row[by]: row for row in records(method[is_ok(method)])}
        if len(method) and not limits:
            reason = f"nothing is known about the method ({text(method['status'].iloc[0])})"
        known = [row for row in records(model[model["shift"].notna()]) if row[by] in limits]
        if not known:
            continue
        kept = largest(known, [abs(row["shift"]) for row in known], LIMIT)
        said.append(selection(len(kept), len(known), "classes" if by == "class" else "groups"))
        texts = labels([row[by] for row in kept])
        values = [
            _value(name_, row, scope)
            for name_, own in zip(texts, kept, strict=True)
            for scope, row in zip(SCOPES, (own, limits[own[by]]), strict=True)
        ]
        panels.append((values, f"{metric} by {by}, points"))
    if not panels:
        return Absent(reason)
    drawn = [v for values, _ in panels for v in values]
    domain = cut_domain(drawn)
    beyond = {
        scope: sum(v["scope"] == SIDES[scope] and v["told"] == "yes" for v in drawn)
        for scope in SCOPES
    }
    return {
        "title": pair_title(result, name, *said),
        "description": (
            f"Shifts of {count(len(drawn) // 2)} classes and groups, {label(name)} against "
            f"{label(result.baseline)}, with simultaneous limits in both scopes. They exclude 0 in "
            f"{count(beyond['model'])} for these models and in {count(beyond['method'])} for the "
            "method."
        ),
        "vconcat": [_panel(values, title, domain) for values, title in panels],
    }


def _value(name: str, row: dict[str, Any], scope: Scope) -> dict[str, Any]:
    low, high = real(row["sim_low"]), real(row["sim_high"])
    floor = value(row["noise_floor"], 100)
    return {
        "name": name,
        "scope": SIDES[scope],
        "shift": value(row["shift"], 100),
        "sim_low": value(low, 100),
        "sim_high": value(high, 100),
        "floor_low": None if floor is None else -floor,
        "floor_high": floor,
        "told": "yes" if not missing(low) and (low > 0 or high < 0) else "no",
    }


def _panel(values: list[dict[str, Any]], title: str, domain: list[float]) -> Spec:
    y = {"field": "name", "type": "nominal", "title": None, "sort": None}
    names = [SIDES[scope] for scope in SCOPES]
    color = {
        "field": "scope",
        "type": "nominal",
        "title": None,
        "scale": {"domain": names, "range": [GREEN, PURPLE]},
    }
    offset = {"field": "scope", "type": "nominal", "sort": names}
    scale = {"domain": domain, "nice": True, "zero": True}

    def across(low: str, high: str | None = None) -> Spec:
        x: Spec = {"x": {"field": low, "type": "quantitative", "title": title, "scale": scale}}
        return {**x, "y": y, **({} if high is None else {"x2": {"field": high}})}

    known = [v for v in values if v["sim_low"] is not None and v["sim_high"] is not None]
    bands = [v for v in values if v["floor_high"] is not None and v["scope"] == names[0]]
    point = {
        **across("shift"),
        "yOffset": offset,
        "stroke": color,
        "fill": color,
        "shape": {
            "field": "scope",
            "type": "nominal",
            "title": None,
            "scale": {"domain": names, "range": ["circle", "diamond"]},
        },
        "fillOpacity": {
            "field": "told",
            "type": "nominal",
            "legend": None,
            "scale": {"domain": ["no", "yes"], "range": [0, 1]},
        },
        "tooltip": [
            {"field": "name", "type": "nominal", "title": "who"},
            {"field": "scope", "type": "nominal"},
            *(
                {"field": field, "type": "quantitative", "format": "+.2f", "title": text_}
                for field, text_ in (
                    ("shift", "shift, points"),
                    ("sim_low", "simultaneous from"),
                    ("sim_high", "to"),
                    ("floor_high", "retraining, up to"),
                )
            ),
        ],
    }
    layers: list[Spec] = []
    if bands:
        layers.append(
            {
                "data": {"values": bands},
                "mark": {"type": "bar", "color": GREY, "opacity": 0.25, "clip": True},
                "encoding": across("floor_low", "floor_high"),
            }
        )
    layers += [
        {
            "data": {"values": [{"at": 0}]},
            "mark": {"type": "rule", "color": GREY},
            "encoding": {"x": {"field": "at", "type": "quantitative"}},
        },
        {
            "data": {"values": known},
            "mark": {"type": "rule", "strokeWidth": 2, "clip": True},
            "encoding": {**across("sim_low", "sim_high"), "yOffset": offset, "stroke": color},
        },
        {
            "data": {"values": values},
            "mark": {"type": "point", "size": 60, "strokeWidth": 1.8, "opacity": 1},
            "encoding": point,
        },
    ]
    # Not a step: layers with and without an offset would not agree on it.
    return {"width": 420, "height": ROW * len(values) // 2, "layer": layers}
