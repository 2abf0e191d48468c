"""A figure as the page's template needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairweight.report.figures import Figure, Spec, draw
from fairweight.report.members import members_of, worded

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


@dataclass(frozen=True)
class DrawnFigure:
    """Where a figure stands and what is said about it; `reason` where there is none."""

    anchor: str
    id: str
    title: str
    caption: str
    alt: str
    reason: str | None
    more: bool


def drawn(
    result: AuditResult, figure: Figure, variant: str | None, anchor: str, specs: dict[str, Spec]
) -> DrawnFigure:
    """Draw one figure; its specification is added to those of the page."""
    drawing = draw(figure.id, result, variant)
    members = members_of(result)
    title = worded(figure.title, members)
    alt = title
    if drawing.spec is not None:
        alt = drawing.spec["description"]
        specs[anchor] = drawing.spec
    return DrawnFigure(
        anchor, figure.id, title, worded(figure.caption, members), alt, drawing.reason, figure.more
    )
