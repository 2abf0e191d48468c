"""PA-F11: how tilted the examples of individuals are, by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import variant_of
from fairweight.report.figures.bins import edges, histogram
from fairweight.report.figures.explained import explained
from fairweight.report.figures.individual_points import group_colors, in_words, points
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

GROUPS = 6
_TILTS = ("tilt", "abs_tilt")


@figure(
    "PA-F11",
    title="Tilt by group of individuals",
    caption=(
        "How the mean tilt and the mean absolute tilt of individuals are distributed in each "
        "group, in percent of the group's individuals, so that groups of different size compare."
    ),
    more=True,
    explains=True,
    once=True,
)
def tilt_by_group(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    found = explained(result, "individuals", name, task)
    if isinstance(found, Absent):
        return found
    own = [tilt for tilt in _TILTS if tilt in found.columns and found[tilt].notna().any()]
    if not own:
        return Absent("the individuals have no tilt")
    values = points(found, own)
    sizes: dict[str, int] = {}
    for v in values:
        sizes[v["group"]] = sizes.get(v["group"], 0) + 1
    groups = sorted(sizes)[:GROUPS]
    said = "; ".join(f"{group}: {count(sizes[group])}" for group in groups)
    cut = "" if len(groups) == len(sizes) else f"; {count(GROUPS)} of {count(len(sizes))} groups"
    return {
        "title": f"individuals in {said}{cut}",
        "description": (
            f"Histograms of {' and '.join(in_words(tilt) for tilt in own)} of "
            f"{count(len(values))} individuals in {count(len(sizes))} groups."
        ),
        "concat": [
            _panel(values, f"p{i}", in_words(tilt), group, last=group == groups[-1])
            for group in groups
            for i, tilt in enumerate(own)
        ],
        "columns": len(own),
    }


def _panel(values: list[dict[str, Any]], field: str, words: str, group: str, *, last: bool) -> Spec:
    at = edges([v[field] for v in values if v[field] is not None])
    own = [v[field] for v in values if v["group"] == group and v[field] is not None]
    bars = [
        bar | {"group": group, "share": 100 * bar["n"] / max(len(own), 1)}
        for bar in histogram(own, at)
    ]
    return {
        "width": 280,
        "height": 90,
        "data": {"values": bars},
        "mark": {"type": "bar", "opacity": 0.8},
        "encoding": {
            "x": {
                "field": "low",
                "type": "quantitative",
                "title": f"{words}, mean per individual" if last else None,
                "bin": {"binned": True},
                "axis": {"tickCount": 6, "labels": last},
            },
            "x2": {"field": "high"},
            "y": {"field": "share", "type": "quantitative", "title": "% of the group"},
            "color": group_colors(values),
            "tooltip": [
                {"field": "group", "type": "nominal"},
                {"field": "low", "type": "quantitative", "format": ".3g", "title": "from"},
                {"field": "high", "type": "quantitative", "format": ".3g", "title": "to"},
                {"field": "n", "type": "quantitative", "title": "individuals"},
                {"field": "share", "type": "quantitative", "format": ".1f", "title": "%"},
            ],
        },
    }
