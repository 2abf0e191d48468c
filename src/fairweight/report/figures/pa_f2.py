"""PA-F2: change of every individual's accuracy against what its examples are like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import variant_of
from fairweight.report.figures.explained import explained
from fairweight.report.figures.individual_points import (
    fitted,
    group_colors,
    in_words,
    left_out,
    points,
    properties,
    tooltip,
)
from fairweight.report.figures.parts import label, pair_title
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import GREY
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

PANELS = 6
NONE = "the individuals have no property that differs between them"
_FIRST = ("tilt", "ink", "distance")  # as in the paper


@figure(
    "PA-F2",
    title="Shift against properties of individuals",
    caption=(
        "A point is an individual: its shift as counted (pale) and shrunken (strong) against the "
        "mean of a property over its examples. The line is a least-squares fit to the shifts as "
        "counted. An association: individuals differ in more than this property."
    ),
    explains=True,
)
def shift_by_property(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    found = explained(result, "individuals", name, task)
    if isinstance(found, Absent):
        return found
    own = properties(found)
    if not own:
        return Absent(NONE)
    shown = sorted(own, key=lambda p: _FIRST.index(p) if p in _FIRST else len(_FIRST))[:PANELS]
    values = points(found, shown)
    cut = "" if len(own) <= PANELS else f"{PANELS} of {count(len(own))} properties"
    return {
        "title": pair_title(result, name, left_out(len(values), len(found)), cut),
        "description": (
            f"Shift of {count(len(values))} individuals, {label(name)} against "
            f"{label(result.baseline)}, against {', '.join(in_words(p) for p in shown)}."
        ),
        "data": {"values": values},
        "concat": [_panel(values, f"p{i}", in_words(p)) for i, p in enumerate(shown)],
        "columns": 2 if len(shown) in (2, 4) else 3,
    }


def _panel(values: list[dict[str, Any]], field: str, words: str) -> Spec:
    x = {"field": field, "type": "quantitative", "title": words, "scale": {"zero": False}}
    y = {"type": "quantitative", "title": "shift, points"}
    color = group_colors(values)
    return {
        "width": 220,
        "height": 200,
        "layer": [
            {
                "data": {"values": [{"zero": 0}]},
                "mark": {"type": "rule", "color": GREY},
                "encoding": {"y": {"field": "zero", **y}},
            },
            {
                "mark": {"type": "circle", "size": 14, "opacity": 0.25},
                "encoding": {"x": x, "y": {"field": "shift", **y}, "color": color},
            },
            {
                "mark": {"type": "circle", "size": 22, "opacity": 0.85},
                "encoding": {
                    "x": x,
                    "y": {"field": "shift_shrunk", **y},
                    "color": color,
                    "tooltip": tooltip([(field, words)]),
                },
            },
            {
                "data": {"values": fitted(values, field, "shift", by_group=False)},
                "mark": {"type": "line", "color": GREY, "strokeWidth": 2.5},
                "encoding": {"x": x, "y": {"field": "shift", **y}},
            },
        ],
    }
