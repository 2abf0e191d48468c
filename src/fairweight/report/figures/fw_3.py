"""FW-3: change of the confusion matrix, compressed minus baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import at_task, variant_of
from fairweight.report.figures.parts import label, labels, largest, pair_title, selection, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import DIVERGING
from fairweight.report.numbers import count

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

LIMIT = 30
NO_ANSWER = "no answer"
OTHER = "other answers"


@figure(
    "FW-3",
    title="Change of the confusion matrix",
    caption=(
        "Share of each label's examples that received each answer, compressed minus baseline, in "
        "percentage points. Blue: more often than before; orange: less often. On the diagonal "
        "orange is a loss; off it blue is a new error."
    ),
)
def confusion_change(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    frame = result.confusion
    frame = at_task(frame[frame["variant"].isin([result.baseline, name])], result, task)
    if frame["variant"].nunique() < 2:
        return Absent("there is no confusion matrix of both models")
    before, after = (_shares(frame, model) for model in (result.baseline, name))
    before, after = before.align(after, fill_value=0.0)
    change = after - before
    sizes = (
        change.abs()
        .groupby("label")
        .sum()
        .add(change.abs().groupby("prediction").sum(), fill_value=0.0)
    )
    in_order = [c for c in result.classes if c in sizes.index]
    kept = largest(in_order, [float(sizes[c]) for c in in_order], LIMIT)
    places = {c: i for i, c in enumerate(kept)}
    texts = labels(kept)
    cells: dict[tuple[int, str], float] = {}
    for (true, given), points in zip(change.index.tolist(), change.tolist(), strict=True):
        if true not in places:
            continue
        answer = texts[places[given]] if given in places else given
        if given not in places and given != NO_ANSWER:
            answer = OTHER
        key = (places[true], answer)
        cells[key] = cells.get(key, 0.0) + float(points)
    columns = texts + [
        extra for extra in (OTHER, NO_ANSWER) if any(answer == extra for _, answer in cells)
    ]
    values: list[dict[str, Any]] = [
        {"label": texts[i], "answer": answer, "change": value(points, 100)}
        for (i, answer), points in cells.items()
        if abs(points) > 1e-12
    ]
    if not values:
        return Absent("both models give the same answers")
    reach = max(abs(v["change"]) for v in values)
    cell = max(14, min(44, 480 // max(1, len(columns))))
    y = {"field": "label", "type": "nominal", "title": "label", "scale": {"domain": texts}}
    x = {
        "field": "answer",
        "type": "nominal",
        "title": "answer",
        "scale": {"domain": columns},
        "axis": {"labelAngle": -45, "labelLimit": 90},
    }
    layers: list[Spec] = [
        {
            "mark": {"type": "rect"},
            "encoding": {
                "x": x,
                "y": y,
                "color": {
                    "field": "change",
                    "type": "quantitative",
                    "title": "points",
                    "scale": {"domain": [-reach, 0, reach], "range": DIVERGING},
                    "legend": {"orient": "right", "gradientLength": 120},
                },
                "tooltip": [
                    {"field": "label", "type": "nominal"},
                    {"field": "answer", "type": "nominal"},
                    {
                        "field": "change",
                        "type": "quantitative",
                        "format": "+.2f",
                        "title": "points",
                    },
                ],
            },
        }
    ]
    if len(columns) <= 12:
        layers.append(
            {
                "transform": [{"filter": "abs(datum.change) >= 0.05"}],
                "mark": {"type": "text", "fontSize": 10},
                "encoding": {
                    "x": x,
                    "y": y,
                    "text": {"field": "change", "type": "quantitative", "format": "+.1f"},
                },
            }
        )
    return {
        "title": pair_title(result, name, selection(len(kept), len(in_order), "classes")),
        "description": (
            f"Heat map of the change of the confusion matrix for {count(len(kept))} classes, "
            f"{label(name)} minus {label(result.baseline)}; no cell changes by more than "
            f"{reach:.1f} points."
        ),
        "width": {"step": cell},
        "height": {"step": cell},
        "data": {"values": values},
        "layer": layers,
    }


def _shares(frame: pd.DataFrame, model: str) -> pd.Series:
    """Share of each label's examples (members pooled) that were given each answer."""
    rows = frame[frame["variant"] == model]
    rows = rows.assign(prediction=rows["prediction"].astype(object).fillna(NO_ANSWER))
    counted = rows.groupby(["label", "prediction"])["count"].sum().astype(float)
    return counted / counted.groupby("label").transform("sum")
