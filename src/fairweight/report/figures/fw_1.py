"""FW-1: shifts of every class and group with pointwise and simultaneous intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import at_task, records, select, variant_of
from fairweight.base.wording import real
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
from fairweight.report.figures.theme import BLUE, GREY, ORANGE
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

LIMIT = 40  # rows per panel that a reader can still tell apart


@figure(
    "FW-1",
    title="Shift of every class and group",
    caption=(
        "Compressed minus baseline in percentage points. Thick: interval of that row alone. Thin: "
        "simultaneous limits, which hold for all rows of the family at once; a row loses when they "
        "lie left of 0 (orange). Dashed: the shift of all examples. Grey band, where there is one: "
        "what retraining alone moves. Far wider intervals than the others' are cut at the frame."
    ),
)
def shifts(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    overall = at_task(select(result, name, "accuracy", "overall"), result, task)
    everyone = real(overall["shift"].iloc[0]) if len(overall) else float("nan")
    panels: list[tuple[list[dict[str, Any]], str]] = []
    said: list[str] = []
    for metric, by, what in (("accuracy", "group", "groups"), ("recall", "class", "classes")):
        rows = at_task(select(result, name, metric, by), result, task)
        known = records(rows[rows["shift"].notna()])
        if not known:
            continue
        kept = largest(known, [abs(row["shift"]) for row in known], LIMIT)
        said.append(selection(len(kept), len(known), what))
        values = _values(kept, by)
        panels.append((values, f"{metric} by {by}, points"))
    if not panels:
        return Absent("there is no class or group with a shift")
    drawn = [v for values, _ in panels for v in values]
    losing = sum(v["verdict"] == "loses" for v in drawn)
    domain = cut_domain(drawn)
    return {
        "title": pair_title(result, name, *said),
        "description": (
            f"Shifts with intervals of {count(len(drawn))} classes and groups, {label(name)} "
            f"against {label(result.baseline)}; in {count(losing)} of them the simultaneous "
            "limits lie below 0."
        ),
        "vconcat": [
            _panel(values, title, value(everyone, 100), domain) for values, title in panels
        ],
    }


def _values(rows: list[dict[str, Any]], by: str) -> list[dict[str, Any]]:
    names = labels([row[by] for row in rows])
    values = []
    for text, row in zip(names, rows, strict=True):
        low, high = real(row["sim_low"]), real(row["sim_high"])
        floor = value(row["noise_floor"], 100)
        values.append(
            {
                "name": text,
                "n": value(row["n"]),
                "shift": value(row["shift"], 100),
                "low": value(row["ci_low"], 100),
                "high": value(row["ci_high"], 100),
                "sim_low": value(low, 100),
                "sim_high": value(high, 100),
                "floor_low": None if floor is None else -floor,
                "floor_high": floor,
                "verdict": "loses" if high < 0 else "gains" if low > 0 else "undecided",
            }
        )
    return values


def _panel(
    values: list[dict[str, Any]], title: str, everyone: float | None, domain: list[float]
) -> Spec:
    scale = {"domain": domain, "nice": True, "zero": True}
    y = {"field": "name", "type": "nominal", "title": None, "sort": None}
    tooltip = [{"field": "name", "type": "nominal", "title": "who"}] + [
        {"field": field, "type": "quantitative", "format": form, "title": text}
        for field, form, text in (
            ("n", ",.0f", "n"),
            ("shift", "+.2f", "shift, points"),
            ("low", "+.2f", "interval from"),
            ("high", "+.2f", "to"),
            ("sim_low", "+.2f", "simultaneous from"),
            ("sim_high", "+.2f", "to "),
        )
    ]

    def span(low: str, high: str, **mark: Any) -> Spec:
        return {
            "transform": [{"filter": f"isValid(datum.{low}) && isValid(datum.{high})"}],
            "mark": {"type": "rule", "clip": True, **mark},
            "encoding": {
                "x": {"field": low, "type": "quantitative", "title": title, "scale": scale},
                "x2": {"field": high},
                "y": y,
            },
        }

    layers: list[Spec] = []
    if any(v["floor_high"] is not None for v in values):
        layers.append(span("floor_low", "floor_high", strokeWidth=14, color=GREY, opacity=0.25))
    layers.append(_rule(0.0, []))
    if everyone is not None:
        layers.append(_rule(everyone, [4, 4]))
    layers += [
        span("sim_low", "sim_high", strokeWidth=1.2, color="currentColor"),
        span("low", "high", strokeWidth=4, color="currentColor", opacity=0.6),
        {
            "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
            "encoding": {
                "x": {"field": "shift", "type": "quantitative"},
                "y": y,
                "color": {
                    "field": "verdict",
                    "type": "nominal",
                    "title": None,
                    "scale": {
                        "domain": ["loses", "gains", "undecided"],
                        "range": [ORANGE, BLUE, GREY],
                    },
                },
                "tooltip": tooltip,
            },
        },
    ]
    return {
        "width": 420,
        "height": {"step": 20},
        "data": {"values": values},
        "layer": layers,
    }


def _rule(at: float, dash: list[int]) -> Spec:
    return {
        "data": {"values": [{"at": at}]},
        "mark": {"type": "rule", "strokeDash": dash, "color": GREY},
        "encoding": {"x": {"field": "at", "type": "quantitative"}},
    }
