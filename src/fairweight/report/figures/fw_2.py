"""FW-2: reliability diagrams, baseline against compressed, by both definitions of ECE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import at_task, records, variant_of
from fairweight.report.figures.parts import label, models, pair_title, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import GREY
from fairweight.report.numbers import number

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

_DEFINITIONS = {"ece": "probability of the positive class", "ece_top_label": "top label"}


@figure(
    "FW-2",
    title="Reliability",
    caption=(
        "How often what was given a score comes true: the positive class (left) or the top label "
        "(right). On the diagonal a score of 80 % comes true in 80 % of cases; below it the model "
        "is surer than it should be. The area of a point is its number of examples."
    ),
)
def reliability(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    frame = result.reliability
    frame = frame[frame["variant"].isin([result.baseline, name]) & frame["group"].isna()]
    frame = at_task(frame, result, task)
    frame = frame[frame["n"] > 0]
    if frame.empty:
        return Absent(
            "there are no scores, or it is not known whose probability they are (binary labels "
            "without a positive class)"
        )
    panels: list[Spec] = []
    errors: list[str] = []
    for definition, meaning in _DEFINITIONS.items():
        values: list[dict[str, Any]] = []
        for model in (result.baseline, name):
            rows = frame[(frame["variant"] == model) & (frame["definition"] == definition)]
            if rows.empty:
                continue
            # Members of a population share the bins: their mean, weighted by examples.
            weight = rows["n"].astype(float)
            sums = rows.assign(
                n=weight,
                mean_score=rows["mean_score"] * weight,
                mean_outcome=rows["mean_outcome"] * weight,
            ).groupby("bin", sort=True)[["n", "mean_score", "mean_outcome"]]
            for row in records(sums.sum()):
                values.append(
                    {
                        "model": label(model),
                        "n": value(row["n"]),
                        "score": value(row["mean_score"] / row["n"]),
                        "right": value(row["mean_outcome"] / row["n"]),
                    }
                )
            members = max(1, rows["seed"].nunique())
            error = float(rows["contribution"].astype(float).sum()) / members
            errors.append(f"{label(model)} {number(error)} ({meaning})")
        if values:
            panels.append(_panel(result, name, values, f"{definition}: {meaning}"))
    return {
        "title": pair_title(result, name),
        "description": (
            "Reliability diagram of both models. Expected calibration error: "
            + ", ".join(errors)
            + "."
        ),
        "hconcat": panels,
    }


def _panel(result: AuditResult, name: str, values: list[dict[str, Any]], title: str) -> Spec:
    position: Spec = {
        "x": {
            "field": "score",
            "type": "quantitative",
            "title": "mean score",
            "scale": {"domain": [0, 1]},
            "axis": {"format": ".0%", "tickCount": 5},
        },
        "y": {
            "field": "right",
            "type": "quantitative",
            "title": "share observed",
            "scale": {"domain": [0, 1]},
            "axis": {"format": ".0%", "tickCount": 5},
        },
    }
    color = models(result, name)
    return {
        "title": {"text": title, "fontSize": 12},
        "width": 260,
        "height": 260,
        "data": {"values": values},
        "layer": [
            {
                "data": {"values": [{"score": 0, "right": 0}, {"score": 1, "right": 1}]},
                "mark": {"type": "line", "strokeDash": [4, 4], "color": GREY},
                "encoding": position,
            },
            {"mark": {"type": "line"}, "encoding": {**position, "color": color}},
            {
                "mark": {"type": "circle", "opacity": 0.85},
                "encoding": {
                    **position,
                    "color": color,
                    "size": {
                        "field": "n",
                        "type": "quantitative",
                        "scale": {"range": [15, 250]},
                        "legend": None,
                    },
                    "tooltip": [
                        {"field": "model", "type": "nominal"},
                        {"field": "n", "type": "quantitative", "format": ",.0f"},
                        {"field": "score", "type": "quantitative", "format": ".1%"},
                        {"field": "right", "type": "quantitative", "format": ".1%"},
                    ],
                },
            },
        ],
    }
