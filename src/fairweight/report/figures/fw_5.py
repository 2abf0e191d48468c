"""FW-5: how probably each variant is the best, or on the frontier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import missing
from fairweight.report.figures.explained import explained
from fairweight.report.figures.parts import label, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import BLUE, GREY, ORANGE
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

LIMIT = 30
PANELS = (
    ("p_within_margin", None, "probability of being within the margin of the best, %"),
    ("p_best", "bootstrap_best", "probability of being the best, %"),
    ("p_frontier", "bootstrap_frontier", "probability of being on the frontier, %"),
)


@figure(
    "FW-5",
    title="Selection probabilities",
    caption=(
        "Bars: the probability that a variant is truly within the margin of the best, the best, or "
        "on the frontier, of those that qualify. Ticks: the raw bootstrap frequency, which is too "
        "sure of the leader. Orange: in the 95 % set that contains the best."
    ),
    explains=True,
    once=True,
)
def selection_probabilities(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    if variant is not None:
        variant_of(result, variant)  # all variants are shown together, but it must exist
    found = explained(result, "choice")
    if isinstance(found, Absent):
        return found
    rows = [row for row in records(found) if row["qualifies"]]
    if len(rows) < 2:
        return Absent("fewer than two variants qualify")
    shown = rows[:LIMIT]
    panels = [panel for panel in PANELS if any(not missing(row[panel[0]]) for row in shown)]
    if not panels:
        return Absent("no probabilities were computed")
    cut = f"; the first {LIMIT}" if len(rows) > LIMIT else ""
    return {
        "title": f"{count(len(rows))} variants that qualify{cut}",
        "description": (
            f"Probabilities of {count(len(rows))} variants of being the best or on the frontier, "
            f"highest rank first: {label(shown[0]['variant'])}."
        ),
        "hconcat": [_panel(shown, *panel, first=i == 0) for i, panel in enumerate(panels)],
    }


def _panel(
    rows: list[dict[str, Any]], probability: str, frequency: str | None, title: str, *, first: bool
) -> Spec:
    names = [label(row["variant"]) for row in rows]
    values = [
        {
            "variant": label(row["variant"]),
            "probability": value(row[probability], 100.0),
            "frequency": None if frequency is None else value(row[frequency], 100.0),
            "possible": "in the 95 % set" if row["in_best_set"] is True else "not in it",
        }
        for row in rows
    ]
    y = {
        "field": "variant",
        "type": "nominal",
        "title": None,
        "sort": names,
        "axis": {"labels": first, "ticks": first},
    }
    scale = {"domain": [0, 100]}
    x = {"field": "probability", "type": "quantitative", "title": title, "scale": scale}
    marked = any(not missing(row["in_best_set"]) for row in rows) and probability != "p_frontier"
    color: Spec = {"value": BLUE}
    if marked:
        color = {
            "field": "possible",
            "type": "nominal",
            "title": None,
            "scale": {"domain": ["in the 95 % set", "not in it"], "range": [ORANGE, BLUE]},
        }
    tooltip = [
        {"field": "variant", "type": "nominal"},
        {"field": "probability", "type": "quantitative", "format": ".1f", "title": title},
    ]
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "height": 12},
            "encoding": {"x": x, "y": y, "color": color, "tooltip": tooltip},
        }
    ]
    if frequency is not None:
        told = "bootstrap frequency, %"
        tooltip.append(
            {"field": "frequency", "type": "quantitative", "format": ".1f", "title": told}
        )
        layers.append(
            {
                "mark": {"type": "tick", "color": GREY, "thickness": 3, "height": 16},
                "encoding": {"x": {**x, "field": "frequency"}, "y": y},
            }
        )
    return {"width": 260, "height": {"step": 20}, "data": {"values": values}, "layer": layers}
