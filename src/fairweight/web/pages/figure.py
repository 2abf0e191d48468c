"""One figure: its specification for scripts, and a page of its own to share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query

from fairweight.report.figures import draw
from fairweight.report.members import members_of, worded
from fairweight.web.addresses import of_item
from fairweight.web.item import Item
from fairweight.web.page import OfItem, OfSite, add_page
from fairweight.web.site import Site


@dataclass(frozen=True)
class FigurePage:
    """A Vega-Lite specification, or the reason why there is none."""

    key: str
    id: str
    title: str
    caption: str
    variant: str | None
    task: str | None
    alt: str
    reason: str | None
    spec: dict[str, Any] | None
    source: str


def figure(
    site: OfSite,
    item: OfItem,
    id: Annotated[str, Query(description="The id of a figure, such as FW-1.")],
    variant: Annotated[str | None, Query(description="A variant; the first by default.")] = None,
    task: Annotated[str | None, Query(description="A task; by default the mean.")] = None,
) -> FigurePage:
    """A figure of the registry, drawn from this audit."""
    asked = (id, variant or None, task or None)
    return site.kept(item, ("figure", *asked), lambda: _made(site, item, *asked))


def _made(site: Site, item: Item, id: str, variant: str | None, task: str | None) -> FigurePage:
    result = site.audit(item)
    drawing, members = draw(id, result, variant, task), members_of(result)
    entry = drawing.figure
    title, caption = worded(entry.title, members), worded(entry.caption, members)
    alt = title if drawing.spec is None else str(drawing.spec["description"])
    source = of_item(item.key, "figure.json", id=id, variant=variant, task=task)
    return FigurePage(
        item.key, entry.id, title, caption, variant, task, alt, drawing.reason,
        drawing.spec, source,
    )  # fmt: skip


router = APIRouter(tags=["audit"])
add_page(router, "/audit/{key}/figure", figure, "figure.html.j2", summary="One figure", kept=True)
