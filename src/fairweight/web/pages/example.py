"""One example: its image, what it is, and everybody's answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query

from fairweight.errors import UnknownNameError
from fairweight.web.cards import LARGE, Card, cards
from fairweight.web.choices import MOST
from fairweight.web.page import OfItem, OfSite, add_page
from fairweight.web.votes.opened import TaskVotes

ExampleId = Annotated[str, Query(description="The example's identity.")]
OfTask = Annotated[str | None, Query(description="A task; the first by default.")]


@dataclass(frozen=True)
class ExamplePage:
    """One example with the votes of all variants."""

    key: str
    tasks: list[str]
    classes: list[str]
    card: Card


def example(site: OfSite, item: OfItem, id: ExampleId, task: OfTask = None) -> ExamplePage:
    """One example with every member's answer and score."""
    index = site.index(item)
    votes = index.task(task or None)
    place = place_of(votes, id)
    return ExamplePage(
        item.key,
        [name for name in index.task_names if name is not None],
        list(votes.head.classes[:MOST]),
        cards(site, item, task or None, [place], size=LARGE)[0],
    )


def place_of(votes: TaskVotes, id: str) -> int:
    """Where an example is; an error where there is none."""
    place = votes.place(id)
    if place is None:
        raise UnknownNameError("Example", id[:80], [], remedy="Look for it in the gallery.")
    return place


router = APIRouter(tags=["examples"])
add_page(router, "/audit/{key}/example", example, "example.html.j2", summary="One example")
