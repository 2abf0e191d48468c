"""PA-F13: accuracy of individuals against their tilt, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import missing, real
from fairweight.report.figures.explained import explained
from fairweight.report.figures.individual_points import (
    EVERYONE,
    group_colors,
    in_words,
    left_out,
    points,
    properties,
    tooltip,
)
from fairweight.report.figures.pa_f2 import NONE
from fairweight.report.figures.parts import label, pair_title
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

_PREFERRED = "abs_tilt"
_SIDES = {"baseline": "before", "compressed": "after"}


@figure(
    "PA-F13",
    title="Accuracy of individuals against tilt, before and after",
    caption=(
        "Accuracy of every individual as counted against the mean absolute tilt of its examples "
        "(the first property where there is no tilt), with the least-squares line of each group; "
        "their coefficients are in PA-T1. A line that becomes steeper is an association of the "
        "loss with the property."
    ),
    more=True,
    explains=True,
)
def accuracy_by_tilt(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    found = explained(result, "individuals", name, task)
    if isinstance(found, Absent):
        return found
    own = properties(found)
    if not own:
        return Absent(NONE)
    chosen = _PREFERRED if _PREFERRED in own else own[0]
    values = points(found, [chosen])
    across = [v["p0"] for v in values if v["p0"] is not None]
    if not across:
        return Absent(NONE)
    lines = _lines(result, name, chosen, min(across), max(across))
    ends = [v[side] for v in values for side in _SIDES if v[side] is not None]
    domain = [min(ends), max(ends)]
    return {
        "title": pair_title(result, name, left_out(len(values), len(found))),
        "description": (
            f"Accuracy of {count(len(values))} individuals against {in_words(chosen)}, in "
            f"{label(result.baseline)} and in {label(name)}, with {count(len(lines) // 2)} fitted "
            "lines."
        ),
        "data": {"values": values},
        "hconcat": [
            _panel(values, [v for v in lines if v["side"] == side], side, in_words(chosen), domain)
            for side in _SIDES
        ],
    }


def _lines(
    result: AuditResult, name: str, chosen: str, low: float, high: float
) -> list[dict[str, Any]]:
    fits = explained(result, "individual_fits", name)
    if isinstance(fits, Absent):
        return []
    made = []
    for row in records(fits[fits["property"] == chosen]):
        slope, start = real(row["slope"]), real(row["intercept"])
        if missing(slope) or missing(start):
            continue
        group = EVERYONE if missing(row["group"]) else label(row["group"])
        made += [
            {"side": row["side"], "group": group, "p0": x, row["side"]: 100 * (start + slope * x)}
            for x in (low, high)
        ]
    return made


def _panel(
    values: list[dict[str, Any]],
    lines: list[dict[str, Any]],
    side: str,
    words: str,
    domain: list[float],
) -> Spec:
    x = {"field": "p0", "type": "quantitative", "title": words, "scale": {"zero": False}}
    y = {
        "field": side,
        "type": "quantitative",
        "title": f"accuracy {_SIDES[side]}, %",
        "scale": {"domain": domain, "nice": True, "zero": False},
    }
    color = group_colors(values + lines)
    return {
        "width": 280,
        "height": 240,
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.p0)"}],
                "mark": {"type": "circle", "size": 20, "opacity": 0.5},
                "encoding": {"x": x, "y": y, "color": color, "tooltip": tooltip([("p0", words)])},
            },
            {
                "data": {"values": lines},
                "mark": {"type": "line", "strokeWidth": 2.5, "clip": True},
                "encoding": {"x": x, "y": y, "color": color},
            },
        ],
    }
