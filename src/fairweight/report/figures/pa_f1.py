"""PA-F1: accuracy of every individual before and after compression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import variant_of
from fairweight.report.figures.explained import explained
from fairweight.report.figures.individual_points import (
    fitted,
    group_colors,
    left_out,
    points,
    tooltip,
)
from fairweight.report.figures.parts import label, pair_title
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import GREY
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

WORST = 10  # whose intervals are drawn


@figure(
    "PA-F1",
    title="Accuracy of every individual, before and after",
    caption=(
        "A point is an individual, its area the number of examples; below the dashed line the "
        "compressed model is worse. Left: accuracies as counted, with the least-squares line of "
        "each group. Right: shrunken towards all others, because few examples scatter by chance; "
        f"intervals of the {WORST} with the largest shrunken loss. Who is worst is read on the "
        "right."
    ),
    explains=True,
)
def before_and_after(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    found = explained(result, "individuals", name, task)
    if isinstance(found, Absent):
        return found
    values = points(found, [])
    known = [v["shift_shrunk"] for v in values if v["shift_shrunk"] is not None]
    lost = sum(shift < 0 for shift in known)
    worst = sorted(
        (v for v in values if v["shift_shrunk"] is not None), key=lambda v: v["shift_shrunk"]
    )[:WORST]
    if not known:
        return Absent("no individual has an accuracy on both sides")
    domains = [_reach(values, side) for side in ("baseline", "compressed")]
    return {
        "title": pair_title(
            result, name, f"{count(len(values))} individuals", left_out(len(values), len(found))
        ),
        "description": (
            f"Accuracy of {count(len(values))} individuals in {label(result.baseline)} and "
            f"{label(name)}. The shrunken accuracy falls for {count(lost)} of {count(len(known))}."
        ),
        "data": {"values": values},
        "hconcat": [
            _panel(
                values, "", "as counted", domains, fits=fitted(values, "baseline", "compressed")
            ),
            _panel(values, "_shrunk", "shrunken", domains, spans=worst),
        ],
    }


def _reach(values: list[dict[str, Any]], side: str) -> list[float]:
    ends = [v[k] for v in values for k in (side, f"{side}_shrunk") if v[k] is not None]
    return [min(ends), max(ends)]


def _panel(
    values: list[dict[str, Any]],
    suffix: str,
    words: str,
    domains: list[list[float]],
    *,
    fits: list[dict[str, Any]] | None = None,
    spans: list[dict[str, Any]] | None = None,
) -> Spec:
    across, up = (
        {"type": "quantitative", "scale": {"domain": domain, "nice": True, "zero": False}}
        for domain in domains
    )
    x = {"field": f"baseline{suffix}", "title": f"accuracy before, % ({words})", **across}
    y = {"field": f"compressed{suffix}", "title": "accuracy after, %", **up}
    color = group_colors(values)
    diagonal = [{x["field"]: end, y["field"]: end} for end in (0, 100)]
    layers: list[Spec] = [
        {
            "data": {"values": diagonal},
            "mark": {"type": "line", "strokeDash": [4, 4], "color": GREY, "clip": True},
            "encoding": {"x": x, "y": y},
        },
        {
            "mark": {"type": "circle", "opacity": 0.6},
            "encoding": {
                "x": x,
                "y": y,
                "color": color,
                "size": {
                    "field": "n",
                    "type": "quantitative",
                    "legend": None,
                    "scale": {"range": [8, 60]},
                },
                "tooltip": tooltip([]),
            },
        },
    ]
    if fits:
        layers.append(
            {
                "data": {"values": fits},
                "mark": {"type": "line", "strokeWidth": 2, "clip": True},
                "encoding": {"x": x, "y": y, "color": color},
            }
        )
    if spans:
        layers.append(
            {
                "data": {"values": spans},
                "mark": {"type": "rule", "clip": True, "strokeWidth": 1.4},
                "encoding": {
                    "x": x,
                    "y": {**y, "field": "compressed_low"},
                    "y2": {"field": "compressed_high"},
                    "color": color,
                },
            }
        )
    return {"width": 280, "height": 280, "layer": layers}
