"""The gallery: examples that the filters ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter

from fairweight.web.addresses import of_item
from fairweight.web.asked import Asked, Chip, OfAsked, chips
from fairweight.web.cards import Card, cards, said_of
from fairweight.web.choices import Choices, choices
from fairweight.web.item import Item
from fairweight.web.page import OfItem, OfSite, add_page
from fairweight.web.site import Site
from fairweight.web.votes.masks import compressed
from fairweight.web.votes.select import select


@dataclass(frozen=True)
class Walk:
    """The pages before and after this one, and another sample."""

    previous: str | None
    next: str | None
    again: str


@dataclass(frozen=True)
class ExamplesPage:
    """A page of examples; `total` fit the filters."""

    key: str
    task: str | None
    baseline: str
    variant: str
    query: dict[str, Any]
    total: int
    n_examples: int
    offset: int
    limit: int
    order: str
    chips: list[Chip]
    choices: Choices
    walk: Walk
    cards: list[Card]


def examples(site: OfSite, item: OfItem, asked: OfAsked) -> ExamplesPage:
    """Examples with the votes of both sides. Groups are asked for as `group.COLUMN=LEVEL`."""
    votes = site.index(item).task(asked.filters.task)
    variant = compressed(votes, asked.filters).variant
    chosen = select(
        site.index(item),
        asked.filters,
        asked.order,
        asked.random_state,
        asked.offset,
        asked.limit,
        verdicts(site, item, asked, votes.head.name),
    )
    return ExamplesPage(
        key=item.key,
        task=votes.head.name,
        baseline=votes.head.baseline,
        variant=variant,
        query=asked.query(),
        total=chosen.total,
        n_examples=votes.n_examples,
        offset=asked.offset,
        limit=asked.limit,
        order=asked.order,
        chips=chips(asked, lambda query: of_item(item.key, "examples", **query)),
        choices=choices(site, item, asked.filters.task),
        walk=walk(item, asked, chosen.total, "examples"),
        cards=cards(site, item, asked.filters.task, chosen.places.tolist(), [variant]),
    )


def verdicts(site: Site, item: Item, asked: Asked, task: str | None) -> dict[str, list[str]] | None:
    """Example → verdicts, where the filters ask for them."""
    if asked.filters.annotated is None:
        return None
    told = said_of(site.annotated.current(item.key), task)
    return {name: [row.verdict for row in rows] for name, rows in told.items()}


def walk(item: Item, asked: Asked, total: int, page: str) -> Walk:
    """Where the pages beside this one are."""

    def address(**changes: Any) -> str:
        return of_item(item.key, page, **asked.query(**changes))

    before = max(asked.offset - asked.limit, 0)
    after = asked.offset + asked.limit
    return Walk(
        address(offset=before or None) if asked.offset else None,
        address(offset=after) if after < total else None,
        address(order="random", random_state=asked.random_state + 1, offset=None),
    )


router = APIRouter(tags=["examples"])
add_page(router, "/audit/{key}/examples", examples, "examples.html.j2", summary="Examples")
