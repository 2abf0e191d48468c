"""PA-F4a: the Pareto set between two objectives, such as sparsity and the gap between classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.report.figures.choice_points import HEIGHT, WIDTH, choice_points, plane, title_of
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import AMBER, BLUE, GREY, SKY

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

STANDINGS = {"frontier": BLUE, "within noise": SKY, "dominated": GREY, "does not qualify": AMBER}


@figure(
    "PA-F4a",
    title="The frontier of two objectives",
    caption=(
        "A point is a variant (the mean over its members), lines are 95 % intervals over examples. "
        "Crosses: no other variant is at least as good in every objective and better in one. "
        "Within noise: off the frontier, but no variant is shown to be better in everything."
    ),
    explains=True,
    once=True,
)
def frontier_of_two(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    points = choice_points(result, variant, 2)
    if isinstance(points, Absent):
        return points
    held = [name for name in STANDINGS if any(p["standing"] == name for p in points.values)]
    color = {
        "field": "standing",
        "type": "nominal",
        "title": None,
        "scale": {"domain": held, "range": [STANDINGS[name] for name in held]},
    }
    across, up = points.axes[:2]
    return {
        "title": title_of(points),
        "description": f"{title_of(points)}: {up.title} against {across.title}.",
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": points.values},
        "layer": plane(points, color),
    }
