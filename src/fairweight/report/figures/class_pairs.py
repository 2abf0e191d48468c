"""A rate per class in both models, side by side: what SG-F1 and SG-F2 share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import variant_of
from fairweight.base.wording import missing
from fairweight.report.figures.measured import (
    left_blank,
    measured,
    pairs,
    retrained,
    sizes,
    tooltip,
    whiskers,
)
from fairweight.report.figures.parts import label, labels, largest, models, pair_title, selection
from fairweight.report.figures.registry import Absent, Spec
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

LIMIT = 40


@dataclass(frozen=True)
class Rate:
    """Which metric is drawn, and how it is called on the axis and in the alternative text."""

    metric: str
    axis: str
    words: str
    zero: bool  # whether the axis begins at 0


def class_pairs(
    result: AuditResult, variant: str | None, task: str | None, rate: Rate
) -> Spec | Absent:
    """The rate of every class in the baseline and the variant, with intervals."""
    name = variant_of(result, variant)
    found = {
        str(c): pair
        for c, pair in pairs(result, name, rate.metric, "class", task).items()
        if not (missing(pair[0]["baseline"]) and missing(pair[0]["compressed"]))
    }
    if not found:
        return Absent(f"there is no {rate.words} by class")
    kept = largest(list(found), [_change(pair[0]) for pair in found.values()], LIMIT)
    values: list[dict[str, Any]] = []
    for text, c in zip(labels(kept), kept, strict=True):
        here = {"class": text}
        before = {**here, "model": label(result.baseline), "floor_low": None, "floor_high": None}
        values.append(before | measured(found[c], "baseline"))
        values.append(
            {**here, "model": label(name)} | retrained(found[c]) | measured(found[c], "compressed")
        )
    higher = sum(found[c][0]["compressed"] > found[c][0]["baseline"] for c in kept)
    chosen = selection(len(kept), len(found), "classes")
    return {
        "title": pair_title(result, name, chosen, sizes(values, "class"), left_blank(values)),
        "description": (
            f"{rate.words.capitalize()} of {count(len(kept))} classes in {label(result.baseline)} "
            f"and {label(name)}; it is higher in {label(name)} for {count(higher)} of them."
        ),
        "width": 420,
        "height": {"step": 12},
        "data": {"values": values},
        "layer": _layers(values, models(result, name), rate),
    }


def _change(row: dict[str, Any]) -> float:
    """How far a rate moved; what became undefined comes first, because it must be seen."""
    if missing(row["baseline"]) or missing(row["compressed"]):
        return float("inf")
    return abs(float(row["compressed"]) - float(row["baseline"]))


def _layers(values: list[dict[str, Any]], color: Spec, rate: Rate) -> list[Spec]:
    place = {
        "y": {"field": "class", "type": "nominal", "title": None, "sort": None},
        "yOffset": {"field": "model", "type": "nominal", "sort": color["scale"]["domain"]},
        "color": {**color, "legend": {"symbolOpacity": 1}},
    }
    along = {"title": rate.axis, "scale": {"zero": rate.zero, "nice": True}}
    return [
        *whiskers(values, "x", place, along),
        {
            "transform": [{"filter": "isValid(datum.value)"}],
            "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1},
            "encoding": {
                **place,
                "x": {"field": "value", "type": "quantitative", **along},
                "tooltip": tooltip([("class", "class"), ("model", "model")], ".2f", "%"),
            },
        },
        {
            "transform": [
                {"filter": "!isValid(datum.value)"},
                {"calculate": "'× ' + datum.why", "as": "said"},
            ],
            "mark": {"type": "text", "align": "left", "fontSize": 10, "limit": 400},
            "encoding": {**place, "x": {"value": 4}, "text": {"field": "said", "type": "nominal"}},
        },
    ]
