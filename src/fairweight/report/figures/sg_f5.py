"""SG-F5: recall and precision of both classes of a binary label, and the gap between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import variant_of
from fairweight.base.wording import NOTHING, missing, real
from fairweight.report.figures.measured import (
    Pair,
    left_blank,
    measured,
    pairs_of,
    retrained,
    sizes,
    tooltip,
    whiskers,
)
from fairweight.report.figures.parts import label, labels, largest, selection
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import BLUE, GREY, ORANGE
from fairweight.report.numbers import count, signed

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

LIMIT = 20  # variants
WIDTH = 230
_METRICS = ("recall", "precision")


@figure(
    "SG-F5",
    title="Recall and precision of both classes, and the gap between them",
    caption=(
        "Both classes of a binary label in the baseline and every variant. Thick: interval of "
        "these models; thin: of the method. Grey band: where retraining alone could have put the "
        "class. At the right the gap in points, first class minus second, of what is drawn. The "
        "ring is the variant of this section. The table's class_gap has an interval for the gap in "
        "recall; it takes the size of the gap in every member and averages, which gives more where "
        "members lean to different sides."
    ),
    more=True,
)
def class_gaps(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    if len(result.classes) != 2:
        return Absent("the labels are not binary")
    first, second = _ordered(result)
    found = {
        metric: {
            own: rows
            for own, rows in pairs_of(result, result.variants, metric, "class", task).items()
            if {first, second} <= set(rows)
        }
        for metric in _METRICS
    }
    panels: list[Spec] = []
    drawn: list[dict[str, Any]] = []
    every = [v for v in result.variants if any(v in rows_of for rows_of in found.values())]
    kept = largest(every, [_importance(found, v, name) for v in every], LIMIT)
    order = labels([result.baseline, *kept])
    for metric, rows_of in found.items():
        values, gaps = _values(rows_of, (first, second), kept, order, name)
        if values:
            drawn += values
            panels.append(_panel(metric, values, gaps, order, (label(first), label(second))))
    if not panels:
        return Absent("there is no recall or precision of both classes")
    said = [
        f"{label(first)} minus {label(second)}",
        f"ring: {label(name)}",
        sizes(drawn, "value"),
        selection(len(kept), len(every), "variants"),
        left_blank(drawn),
    ]
    return {
        "title": "; ".join(part for part in said if part),
        "description": (
            f"Recall and precision of {label(first)} and {label(second)} in "
            f"{label(result.baseline)} and {count(len(kept))} variants, with the gap between the "
            f"two classes; {label(name)} is ringed."
        ),
        "hconcat": panels,
        "spacing": 60,
    }


def _ordered(result: AuditResult) -> tuple[str, str]:
    """The positive class first; without one, in the audit's order."""
    a, b = result.classes
    return (b, a) if result.positive == b else (a, b)


def _importance(
    found: dict[str, dict[str, dict[str | None, Pair]]], variant: str, name: str
) -> float:
    if variant == name:
        return float("inf")
    rows = [row for of in found.values() for row, _ in of.get(variant, {}).values()]
    return max((abs(real(r["shift"])) for r in rows if not missing(r["shift"])), default=0.0)


def _values(
    rows_of: dict[str, dict[str | None, Pair]],
    classes: tuple[str, str],
    kept: list[str],
    order: list[str],
    name: str,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Both classes of every model, and the text of the gap between them."""
    values: list[dict[str, Any]] = []
    gaps: list[dict[str, Any]] = []
    # The baseline as the variant of this section is compared with it.
    shown_ = [(order[0], name, "baseline")] if name in rows_of else []
    shown_ += [(order[i], v, "compressed") for i, v in enumerate(kept, 1) if v in rows_of]
    for model, variant, side in shown_:
        both = []
        for c in classes:
            here: dict[str, Any] = {"model": model, "class": label(c)}
            here["this"] = variant == name and side == "compressed"
            pair = rows_of[variant][c]
            band = retrained(pair) if side == "compressed" else {}
            here |= {"floor_low": None, "floor_high": None} | band
            here |= measured(pair, "baseline" if side == "baseline" else "compressed")
            both.append(here)
        values += both
        one, other = both[0]["value"], both[1]["value"]
        known = one is not None and other is not None
        gaps.append({"model": model, "gap": signed(one - other, 1) if known else NOTHING})
    return values, gaps


def _panel(
    metric: str,
    values: list[dict[str, Any]],
    gaps: list[dict[str, Any]],
    order: list[str],
    classes: tuple[str, str],
) -> Spec:
    y = {"field": "model", "type": "nominal", "title": None, "sort": order}
    place: Spec = {
        "y": y,
        "yOffset": {"field": "class", "type": "nominal", "sort": list(classes)},
        "color": {
            "field": "class",
            "type": "nominal",
            "title": None,
            "scale": {"domain": list(classes), "range": [ORANGE, BLUE]},
            "legend": {"symbolOpacity": 1},
        },
    }
    along = {"title": f"{metric}, %", "scale": {"zero": False, "nice": True}}
    at = {**place, "x": {"field": "value", "type": "quantitative", **along}}
    known = {"transform": [{"filter": "isValid(datum.value)"}]}
    return {
        "width": WIDTH,
        "height": {"step": 13},
        "data": {"values": values},
        "layer": [
            *whiskers(values, "x", place, along),
            {
                **known,
                "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
                "encoding": {
                    **at,
                    "tooltip": tooltip([("model", "model"), ("class", "class")], ".2f", "%"),
                },
            },
            {
                "transform": [{"filter": "isValid(datum.value) && datum.this"}],
                "mark": {"type": "point", "size": 110, "color": GREY, "strokeWidth": 1.5},
                "encoding": {k: v for k, v in at.items() if k != "color"},
            },
            {
                "transform": [
                    {"filter": "!isValid(datum.value)"},
                    {"calculate": "'× ' + datum.why", "as": "said"},
                ],
                "mark": {"type": "text", "align": "left", "fontSize": 10, "limit": WIDTH},
                "encoding": {**place, "x": {"value": 4}, "text": {"field": "said"}},
            },
            {
                "data": {"values": [{"text": "gap"}]},
                "mark": {"type": "text", "align": "right", "opacity": 0.8},
                "encoding": {
                    "y": {"value": -6},
                    "x": {"value": WIDTH + 44},
                    "text": {"field": "text"},
                },
            },
            {
                "data": {"values": gaps},
                "mark": {"type": "text", "align": "right"},
                "encoding": {"y": y, "x": {"value": WIDTH + 44}, "text": {"field": "gap"}},
            },
        ],
    }
