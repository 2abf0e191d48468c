"""PA-F6: how many examples each class has, coloured by its accuracy before compression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import at_task, records, variant_of
from fairweight.report.figures.parts import label, labels, largest, selection, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import GREY
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

LIMIT = 60


@figure(
    "PA-F6",
    title="Examples of each class",
    caption=(
        "Number of examples of every class in the training data (in the test data where the "
        "training counts are not known), coloured by the baseline's accuracy on the class. That "
        "rare classes are weaker is an association; difficulty differs between classes too."
    ),
    more=True,
    explains=True,
    once=True,
)
def class_sizes(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    data = at_task(result.data, result, task)
    data = data[data["by"] == "class"]
    split = "train" if (data["split"] == "train").any() else "test"
    place = {name: i for i, name in enumerate(result.classes)}
    rows = sorted(
        records(data[data["split"] == split]),
        key=lambda row: place.get(str(row["class"]), len(place)),
    )
    if not rows:
        return Absent("the data have no classes")
    before = _before(result, task)
    kept = largest(rows, [float(row["n"]) for row in rows], LIMIT)
    values = []
    for text, row in zip(labels([row["class"] for row in kept]), kept, strict=True):
        values.append(
            {
                "class": text,
                "n": value(row["n"]),
                "share": value(row["share"], 100),
                "before": value(before.get(str(row["class"])), 100),
            }
        )
    sizes = [float(row["n"]) for row in rows]
    words = {"train": "training", "test": "test"}[split]
    chosen = selection(len(kept), len(rows), "classes", "the most examples")
    names = [v["class"] for v in values]
    at: Spec = {
        "x": {"field": "class", "type": "nominal", "title": "class", "sort": names},
        "y": {"field": "n", "type": "quantitative", "title": "examples"},
        "tooltip": [
            {"field": "class", "type": "nominal"},
            {"field": "n", "type": "quantitative", "format": ",.0f"},
            {"field": "share", "type": "quantitative", "format": ".2f", "title": "share, %"},
            {
                "field": "before",
                "type": "quantitative",
                "format": ".1f",
                "title": "accuracy before, %",
            },
        ],
    }
    color = {
        "field": "before",
        "type": "quantitative",
        "title": "accuracy before compression, %",
        "scale": {"scheme": "viridis", "zero": False},
    }
    return {
        "title": "; ".join(part for part in (f"{words} data", chosen) if part),
        "description": (
            f"Histogram of {count(len(kept))} classes in the {words} data, from "
            f"{count(min(sizes))} to {count(max(sizes))} examples, coloured by accuracy in "
            f"{label(result.baseline)}."
        ),
        "width": {"step": 26 if len(kept) <= 24 else 12},
        "height": 200,
        "data": {"values": values},
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.before)"}],
                "mark": {"type": "bar"},
                "encoding": {**at, "color": color},
            },
            {
                "transform": [{"filter": "!isValid(datum.before)"}],
                "mark": {"type": "bar", "color": GREY},
                "encoding": at,
            },
        ],
    }


def _before(result: AuditResult, task: str | None) -> dict[str, float]:
    """The baseline's accuracy on every class: of its members, so that sweeps have it too."""
    seeds = at_task(result.per_seed, result, task)
    own = seeds[(seeds["metric"] == "recall") & (seeds["by"] == "class")]
    own = own[own["variant"] == result.baseline]
    return {str(name): float(mean) for name, mean in own.groupby("class")["value"].mean().items()}
