"""HK-F4: accuracy on exemplars, by how far their answers moved, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import missing, real
from fairweight.report.figures.explained import at_cut, cut_name, cuts, explained, untold
from fairweight.report.figures.measured import left_blank, whiskers
from fairweight.report.figures.parts import label, models, pair_title, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import GREY
from fairweight.report.numbers import count

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult


@figure(
    "HK-F4",
    title="Accuracy on exemplars, before and after",
    caption=(
        "Mean accuracy of dense and compressed members with intervals over examples: on all, on "
        "those that are no exemplars, and on exemplars by each way of choosing them. Exemplars "
        "are examples on which answers differ, so that both models are worse on them by "
        "construction; what compression adds is the distance between the two colours. Grey tick: "
        "the dense accuracy on exemplars that retraining alone gives."
    ),
    explains=True,
)
def accuracy_by_cut(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    found = explained(result, "exemplar_accuracy", name, task)
    if isinstance(found, Absent):
        return found
    values: list[dict[str, Any]] = []
    for text, row in _rows(found):
        few = "" if untold(row) is None else "; cannot tell"
        heading = f"{text} (n {count(row['n'])}{few})"
        for side, model in (("baseline", result.baseline), ("compressed", name)):
            own = value(row[side], 100)
            values.append(
                {
                    "what": heading,
                    "model": label(model),
                    "value": own,
                    "low": value(row[f"{side}_low"], 100),
                    "high": value(row[f"{side}_high"], 100),
                    "wide_low": None,
                    "retrained": value(real(row.get("floor")), 100) if side == "baseline" else None,
                    "floor_low": None,
                    "n": value(row["n"]),
                    "why": (untold(row) or "no examples") if own is None else None,
                }
            )
    if all(v["value"] is None for v in values):
        return Absent("there is no exemplar on which an accuracy could be measured")
    order = list(dict.fromkeys(v["what"] for v in values))
    color = models(result, name)
    place = {
        "y": {"field": "what", "type": "nominal", "title": None, "sort": order},
        "yOffset": {"field": "model", "type": "nominal", "sort": color["scale"]["domain"]},
        "color": {**color, "legend": {"symbolOpacity": 1}},
    }
    along = {"title": "accuracy, %", "scale": {"zero": False, "nice": True}}
    tooltip = [
        {"field": "what", "type": "nominal", "title": "examples"},
        {"field": "model", "type": "nominal"},
        *(
            {"field": field, "type": "quantitative", "format": ".1f", "title": words}
            for field, words in (("value", "accuracy, %"), ("low", "from"), ("high", "to"))
        ),
    ]
    return {
        "title": pair_title(result, name, left_blank(values)),
        "description": (
            f"Accuracy of {label(result.baseline)} and {label(name)} on all examples, on those "
            f"that are no exemplars, and on {count(len(values) // 2 - 2)} kinds of exemplars."
        ),
        "width": 420,
        "height": {"step": 14},
        "data": {"values": values},
        "layer": [
            *whiskers(values, "x", place, along),
            {
                "transform": [{"filter": "isValid(datum.retrained)"}],
                "mark": {"type": "tick", "thickness": 2, "color": GREY, "size": 24},
                "encoding": {
                    "y": place["y"],
                    "x": {"field": "retrained", "type": "quantitative", **along},
                },
            },
            {
                "transform": [{"filter": "isValid(datum.value)"}],
                "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1},
                "encoding": {
                    **place,
                    "x": {"field": "value", "type": "quantitative", **along},
                    "tooltip": tooltip,
                },
            },
            {
                "transform": [
                    {"filter": "!isValid(datum.value)"},
                    {"calculate": "'× ' + datum.why", "as": "said"},
                ],
                "mark": {"type": "text", "align": "left", "fontSize": 10, "limit": 400},
                "encoding": {**place, "x": {"value": 4}, "text": {"field": "said"}},
            },
        ],
    }


def _rows(frame: pd.DataFrame) -> list[tuple[str, dict[str, Any]]]:
    """All examples, those that are no exemplars (of the first way), exemplars of every way."""
    known = cuts(frame)
    first = at_cut(frame, known[0])
    made = []
    for part, text in (("all", "all examples"), ("others", f"no exemplars ({known[0][0]})")):
        made += [(text, row) for row in records(first[first["part"] == part])]
    for cut in known:
        own = at_cut(frame, cut)
        made += [(cut_name(*cut), row) for row in records(own[own["part"] == "exemplars"])]
    return [(text, row) for text, row in made if not missing(row["n"])]
