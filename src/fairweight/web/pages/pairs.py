"""Exemplars beside examples of the same class that are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter

from fairweight.web.addresses import of_item
from fairweight.web.asked import Chip, OfAsked, chips
from fairweight.web.cards import Card, cards
from fairweight.web.choices import Choices, choices
from fairweight.web.page import OfItem, OfSite, add_page
from fairweight.web.pages.examples import Walk, verdicts, walk
from fairweight.web.votes.masks import DEFAULT_KIND, compressed
from fairweight.web.votes.pairs import pairs as find_pairs


@dataclass(frozen=True)
class Pair:
    """An exemplar, and one of its class that is none (null where the class has none)."""

    exemplar: Card
    other: Card | None


@dataclass(frozen=True)
class PairsPage:
    """A page of pairs; `total` exemplars fit the filters."""

    key: str
    task: str | None
    baseline: str
    variant: str
    kind: str
    query: dict[str, Any]
    total: int
    offset: int
    limit: int
    chips: list[Chip]
    choices: Choices
    walk: Walk
    pairs: list[Pair]


def pairs(site: OfSite, item: OfItem, asked: OfAsked) -> PairsPage:
    """Pairs of exemplar and non-exemplar of one class, the furthest apart first."""
    index = site.index(item)
    votes = index.task(asked.filters.task)
    variant = compressed(votes, asked.filters).variant
    found = find_pairs(
        index,
        asked.filters,
        asked.random_state,
        asked.offset,
        asked.limit,
        verdicts(site, item, asked, votes.head.name),
    )
    both = [place for pair in found.pairs for place in pair if place is not None]
    made = iter(cards(site, item, asked.filters.task, both, [variant]))
    return PairsPage(
        key=item.key,
        task=votes.head.name,
        baseline=votes.head.baseline,
        variant=variant,
        kind=asked.filters.kind or DEFAULT_KIND,
        query=asked.query(),
        total=found.total,
        offset=asked.offset,
        limit=asked.limit,
        chips=chips(asked, lambda query: of_item(item.key, "pairs", **query)),
        choices=choices(site, item, asked.filters.task),
        walk=walk(item, asked, found.total, "pairs"),
        pairs=[Pair(next(made), None if other is None else next(made)) for _, other in found.pairs],
    )


router = APIRouter(tags=["examples"])
add_page(router, "/audit/{key}/pairs", pairs, "pairs.html.j2", summary="Pairs of examples")
