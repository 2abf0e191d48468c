"""PA-F4b: the Pareto set of three objectives, the third as colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.report.figures.choice_points import HEIGHT, WIDTH, choice_points, plane, title_of
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import BLUE, ORANGE

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


@figure(
    "PA-F4b",
    title="The frontier of three objectives",
    caption=(
        "As PA-F4a with a third objective as colour. Crosses: no other variant is at least as good "
        "in all three (or more) objectives and better in one; such a variant may look beaten in "
        "this plane and be better in colour."
    ),
    explains=True,
    once=True,
)
def frontier_of_three(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    points = choice_points(result, variant, 3)
    if isinstance(points, Absent):
        return points
    across, up, third = points.axes[:3]
    color = {
        "field": third.field,
        "type": "quantitative",
        "title": third.title,
        "scale": {"range": [ORANGE, BLUE], "interpolate": "lab", "zero": False},
        "legend": {"gradientLength": 180, "tickCount": 4, "titleLimit": 300},
    }
    return {
        "title": title_of(points),
        "description": (
            f"{title_of(points)}: {up.title} against {across.title}, colour {third.title}."
        ),
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": points.values},
        "layer": plane(points, color),
    }
