"""SG-F1: false positive rate per class, baseline and compressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.report.figures.parts import (
    label,
    labels,
    largest,
    models,
    pair_title,
    selection,
    value,
)
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.numbers import count
from fairweight.report.rows import at_task, records, select, variant_of

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

LIMIT = 40


@figure(
    "SG-F1",
    title="False positive rate per class",
    caption=(
        "How often examples of other classes are taken for this one, before and after, each with "
        "its own interval. Whether the change is beyond chance is a matter of the paired shift in "
        "the tables, not of whether these intervals overlap."
    ),
)
def fpr_per_class(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    rows = at_task(select(result, name, "fpr", "class"), result, task)
    known = records(rows[rows["baseline"].notna() & rows["compressed"].notna()])
    if not known:
        return Absent("there is no false positive rate by class")
    kept = largest(known, [abs(r["compressed"] - r["baseline"]) for r in known], LIMIT)
    values = [
        {
            "class": text,
            "model": label(model),
            "fpr": value(row[side], 100),
            "low": value(row[f"{side}_low"], 100),
            "high": value(row[f"{side}_high"], 100),
        }
        for text, row in zip(labels([r["class"] for r in kept]), kept, strict=True)
        for side, model in (("baseline", result.baseline), ("compressed", name))
    ]
    higher = sum(row["compressed"] > row["baseline"] for row in kept)
    y = {"field": "class", "type": "nominal", "title": None, "sort": None}
    apart = {"field": "model", "type": "nominal", "sort": None}
    color = models(result, name)
    return {
        "title": pair_title(result, name, selection(len(kept), len(known), "classes")),
        "description": (
            f"False positive rate of {count(len(kept))} classes in {label(result.baseline)} and "
            f"{label(name)}; it is higher in {label(name)} for {count(higher)} of them."
        ),
        "width": 420,
        "height": {"step": 12},
        "data": {"values": values},
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
                "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.7},
                "encoding": {
                    "x": {"field": "low", "type": "quantitative", "title": "FPR, %"},
                    "x2": {"field": "high"},
                    "y": y,
                    "yOffset": apart,
                    "color": color,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1},
                "encoding": {
                    "x": {"field": "fpr", "type": "quantitative"},
                    "y": y,
                    "yOffset": apart,
                    "color": color,
                    "tooltip": [
                        {"field": "class", "type": "nominal"},
                        {"field": "model", "type": "nominal"},
                        {"field": "fpr", "type": "quantitative", "format": ".2f", "title": "%"},
                    ],
                },
            },
        ],
    }
