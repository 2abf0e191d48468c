"""PA-F8: individuals before and after, coloured by a property, with its histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import variant_of
from fairweight.report.figures.bins import edges, histogram
from fairweight.report.figures.explained import explained
from fairweight.report.figures.individual_points import (
    in_words,
    left_out,
    points,
    properties,
    tooltip,
)
from fairweight.report.figures.pa_f2 import NONE
from fairweight.report.figures.parts import label, pair_title
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import GREY
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

ROWS = 4
_FIRST = ("distance", "ink", "abs_tilt")  # as in the paper


@figure(
    "PA-F8",
    title="Individuals coloured by a property",
    caption=(
        "Accuracy of every individual after compression against before, as counted, coloured by "
        "the mean of a property over its examples; beside it how the property is distributed, in "
        "the same colours."
    ),
    more=True,
    explains=True,
)
def colored_by_property(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    found = explained(result, "individuals", name, task)
    if isinstance(found, Absent):
        return found
    own = properties(found)
    if not own:
        return Absent(NONE)
    shown = sorted(own, key=lambda p: _FIRST.index(p) if p in _FIRST else len(_FIRST))[:ROWS]
    values = points(found, shown)
    cut = "" if len(own) <= ROWS else f"{ROWS} of {count(len(own))} properties"
    return {
        "title": pair_title(result, name, left_out(len(values), len(found)), cut),
        "description": (
            f"Accuracy of {count(len(values))} individuals in {label(result.baseline)} and "
            f"{label(name)}, coloured by {', '.join(in_words(p) for p in shown)}, each with its "
            "histogram."
        ),
        "data": {"values": values},
        "vconcat": [_row(values, f"p{i}", in_words(p)) for i, p in enumerate(shown)],
        "resolve": {"scale": {"color": "independent"}},
    }


def _row(values: list[dict[str, Any]], field: str, words: str) -> Spec:
    known = [v[field] for v in values if v[field] is not None]
    bars = histogram(known, edges(known))
    scale = {"scheme": "viridis", "domain": [min(known), max(known)]}
    x, y = (
        {"field": side, "type": "quantitative", "title": words, "scale": _scale(values, side)}
        for side, words in (("baseline", "accuracy before, %"), ("compressed", "accuracy after, %"))
    )
    color = {"type": "quantitative", "title": words, "scale": scale}
    diagonal = [{"baseline": end, "compressed": end} for end in (0, 100)]
    return {
        "hconcat": [
            {
                "width": 260,
                "height": 220,
                "layer": [
                    {
                        "data": {"values": diagonal},
                        "mark": {"type": "line", "strokeDash": [4, 4], "color": GREY, "clip": True},
                        "encoding": {"x": x, "y": y},
                    },
                    {
                        "transform": [{"filter": f"isValid(datum.{field})"}],
                        "mark": {"type": "circle", "size": 30, "opacity": 0.85},
                        "encoding": {
                            "x": x,
                            "y": y,
                            "color": {"field": field, **color},
                            "tooltip": tooltip([(field, words)]),
                        },
                    },
                ],
            },
            {
                "width": 260,
                "height": 220,
                "data": {"values": bars},
                "mark": {"type": "bar"},
                "encoding": {
                    "x": {"field": "low", "type": "quantitative", "title": words,
                          "bin": {"binned": True}, "axis": {"tickCount": 6}},
                    "x2": {"field": "high"},
                    "y": {"field": "n", "type": "quantitative", "title": "individuals"},
                    "color": {"field": "middle", **color, "legend": None},
                    "tooltip": [
                        {"field": "low", "type": "quantitative", "format": ".4g", "title": "from"},
                        {"field": "high", "type": "quantitative", "format": ".4g", "title": "to"},
                        {"field": "n", "type": "quantitative", "title": "individuals"},
                    ],
                },
            },
        ],
        "resolve": {"scale": {"color": "shared"}},
    }  # fmt: skip


def _scale(values: list[dict[str, Any]], side: str) -> Spec:
    ends = [v[side] for v in values if v[side] is not None]
    return {"domain": [min(ends), max(ends)], "nice": True, "zero": False}
