"""The gallery: examples that the filters ask for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from fairweight.errors import UnknownNameError
from fairweight.tables.names import MISSING
from fairweight.web.cards import LARGE, SMALL, ExampleCard, annotations_by_example, cards
from fairweight.web.items import Item
from fairweight.web.page import PROBLEMS, OfItem, OfSite, add_page
from fairweight.web.rendering import of_item
from fairweight.web.site import Site
from fairweight.web.votes.filters import (
    ANNOTATED,
    CELLS,
    CHANGES,
    CHOICES,
    CONFIDENCES,
    DEFAULT_KIND,
    GROUP,
    ORDERS,
    SIDES,
    Filters,
    compressed_side,
    from_query,
    select,
    to_query,
)
from fairweight.web.votes.filters import pairs as find_pairs
from fairweight.web.votes.index import TaskVotes
from fairweight.web.votes.writer import KINDS

# What the fields of the filter form offer.

MOST_CHOICES = 200  # beyond that a field is typed, not chosen


@dataclass(frozen=True)
class Field:
    """A field and its values; none: there are too many, and one is typed."""

    name: str
    title: str
    values: list[str]
    default: str | None = None  # what holds where nothing is asked for; None: anything


@dataclass(frozen=True)
class Choices:
    """All fields: those that everybody needs, and those that are folded away."""

    first: list[Field]
    more: list[Field]
    groups: list[Field]
    orders: list[str]
    classes: list[str]


def choices(site: Site, item: Item, task: str | None) -> Choices:
    """The fields of one task."""
    votes = site.index(item).task(task)
    name = votes.head.name
    return site.kept(item, ("choices", name), lambda: _choices_of(site, item, votes))


def _choices_of(site: Site, item: Item, votes: TaskVotes) -> Choices:
    head = votes.head
    tasks = [name for name in site.index(item).task_names if name is not None]
    tasks = tasks if len(tasks) > 1 else []
    classes = list(head.classes) if len(head.classes) <= MOST_CHOICES else []
    seeds = list(dict.fromkeys(seed for _, seed in head.members))
    held = 0  # bits of the kinds of exemplars that some variant has
    for variant in head.variants:
        held |= int(np.bitwise_or.reduce(votes.side(variant).bits, initial=0))
    kinds = [kind for kind, bit in KINDS.items() if held & bit]
    first = [
        Field("task", "task", tasks, head.name),
        Field("variant", "variant", list(head.variants), head.variants[0]),
        Field("changed", "prediction changed", list(CHANGES)),
        Field("kind", "exemplar kind", kinds),
        Field("label", "label", classes),
        Field("annotated", "annotated", list(ANNOTATED)),
    ]
    more = [
        Field("cell", "confusion cell", list(CELLS)),
        Field("positive", "cell of the class", classes),
        Field("side", "of which side", list(SIDES), SIDES[0]),
        Field("prediction", "answer", classes),
        Field("confidence", "confidence", list(CONFIDENCES) if head.scored else []),
        Field("seed", "one member (seed)", seeds if len(seeds) > 1 else []),
        Field("not_of", "no exemplar of", list(head.variants) if len(head.variants) > 1 else []),
    ]
    groups = []
    for name in head.groups:
        levels = votes.groups[name].levels
        few = levels[:] if len(levels) <= MOST_CHOICES else []
        values = [MISSING if level is None else level for level in few]
        groups.append(Field(f"group.{name}", name, values))
    # Forms cannot send a null character; links can, and lead to such groups all the same.
    first, more, groups = (
        [replace(f, values=[v for v in f.values if "\0" not in v]) for f in fields]
        for fields in (first, more, groups)
    )
    kept = {"label", "positive", "prediction"}  # with too many classes they are typed
    return Choices(
        [field for field in first if field.values or field.name in kept],
        [field for field in more if field.values or field.name in kept],
        groups,
        list(ORDERS),
        classes,
    )


# What an address of the gallery asks for: filters, an order, a page.

LIMIT, MOST = 24, 96
LARGEST = 2**31 - 1


@dataclass(frozen=True)
class GalleryQuery:
    """Filters with the order and the page."""

    filters: Filters
    order: str
    random_state: int
    offset: int
    limit: int

    def query(self, **changes: Any) -> dict[str, Any]:
        """The parameters of an address that asks the same but for `changes`."""
        held: dict[str, Any] = {**to_query(self.filters)}
        if self.order != ORDERS[0]:
            held["order"] = self.order
        if self.random_state:
            held["random_state"] = self.random_state
        if self.limit != LIMIT:
            held["limit"] = self.limit
        if self.offset:
            held["offset"] = self.offset
        return {name: value for name, value in (held | changes).items() if value not in (None, "")}


def _one_of(name: str, text: str) -> Any:
    return Query(description=f"{text} One of {', '.join(CHOICES[name])}.")


async def gallery_query(
    request: Request,
    task: Annotated[str | None, Query(description="A task; the first by default.")] = None,
    variant: Annotated[
        str | None, Query(description="The compressed variant; the first by default.")
    ] = None,
    side: Annotated[
        str | None, _one_of("side", "Which side's predictions the filters apply to.")
    ] = None,
    seed: Annotated[str | None, Query(description="One member, in place of the majority.")] = None,
    cell: Annotated[str | None, _one_of("cell", "A cell of the confusion matrix.")] = None,
    positive: Annotated[
        str | None, Query(description="The class that `cell` sets against the rest.")
    ] = None,
    confidence: Annotated[str | None, _one_of("confidence", "How confident that side is.")] = None,
    label: Annotated[str | None, Query(description="The recorded class.")] = None,
    prediction: Annotated[str | None, Query(description="The predicted class.")] = None,
    changed: Annotated[
        str | None, _one_of("changed", "Whether the two sides predict differently.")
    ] = None,
    percentile_min: Annotated[
        str | None, Query(description="Least percentile of the distance, from 0 to 100.")
    ] = None,
    kind: Annotated[str | None, _one_of("kind", "A kind of exemplar of the variant.")] = None,
    not_of: Annotated[str | None, Query(description="Leave out exemplars of this variant.")] = None,
    annotated: Annotated[str | None, _one_of("annotated", "What people said.")] = None,
    order: Annotated[str, Query(description=f"The order. One of {', '.join(ORDERS)}.")] = ORDERS[0],
    random_state: Annotated[
        int, Query(ge=0, le=LARGEST, description="A different number draws a different sample.")
    ] = 0,
    offset: Annotated[int, Query(ge=0, le=LARGEST, description="Where the page begins.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST, description="Examples on a page.")] = LIMIT,
) -> GalleryQuery:
    """Filters of an address; groups are given as `group.COLUMN=LEVEL`."""
    # All of them are in the query, with the groups, whose names are not known beforehand.
    filters = from_query(dict(request.query_params))
    return GalleryQuery(filters, order or ORDERS[0], random_state, offset, limit)


OfAsked = Annotated[GalleryQuery, Depends(gallery_query)]


@dataclass(frozen=True)
class Chip:
    """An active filter and the address without it."""

    name: str
    value: str
    without: str


@dataclass(frozen=True)
class Walk:
    """The pages before and after this one, and another sample."""

    previous: str | None
    next: str | None
    again: str


@dataclass(frozen=True)
class GalleryPage:
    """What pages of examples and of pairs share; `total` fit the filters."""

    key: str
    task: str | None
    baseline: str
    variant: str
    query: dict[str, Any]
    total: int
    offset: int
    limit: int
    chips: list[Chip]
    choices: Choices
    walk: Walk


@dataclass(frozen=True)
class ExamplesPage(GalleryPage):
    """A page of examples; `total` fit the filters."""

    n_examples: int
    order: str
    cards: list[ExampleCard]


def examples(site: OfSite, item: OfItem, asked: OfAsked) -> ExamplesPage:
    """Examples with the votes of both sides. Groups are asked for as `group.COLUMN=LEVEL`."""
    votes = site.index(item).task(asked.filters.task)
    variant = compressed_side(votes, asked.filters).variant
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
        **gallery(site, item, asked, chosen.total, "examples"),
        n_examples=votes.n_examples,
        order=asked.order,
        cards=cards(site, item, asked.filters.task, chosen.places.tolist(), [variant]),
    )


def verdicts(
    site: Site, item: Item, asked: GalleryQuery, task: str | None
) -> dict[str, list[str]] | None:
    """Example → verdicts, where the filters ask for them."""
    if asked.filters.annotated is None:
        return None
    told = annotations_by_example(site.annotated.current(item.key), task)
    return {name: [row.verdict for row in rows] for name, rows in told.items()}


def gallery(site: Site, item: Item, asked: GalleryQuery, total: int, page: str) -> dict[str, Any]:
    """What pages of examples and of pairs share: votes of whom, filters, the pages beside."""
    votes = site.index(item).task(asked.filters.task)
    chips = []
    for name, value in to_query(asked.filters).items():
        without = of_item(item.key, page, **asked.query(**{name: None, "offset": None}))
        chips.append(Chip(name.removeprefix(GROUP), value, without))
    after = asked.offset + asked.limit
    before, beyond, again = (
        of_item(item.key, page, **asked.query(**changes))
        for changes in (
            {"offset": max(asked.offset - asked.limit, 0) or None},
            {"offset": after},
            {"order": "random", "random_state": asked.random_state + 1, "offset": None},
        )
    )
    return {
        "key": item.key,
        "task": votes.head.name,
        "baseline": votes.head.baseline,
        "variant": compressed_side(votes, asked.filters).variant,
        "query": asked.query(),
        "total": total,
        "offset": asked.offset,
        "limit": asked.limit,
        "chips": chips,
        "choices": choices(site, item, asked.filters.task),
        "walk": Walk(before if asked.offset else None, beyond if after < total else None, again),
    }


router = APIRouter(tags=["examples"])
add_page(router, "/audit/{key}/examples", examples, "examples.html.j2", summary="Examples")


# One example: its image, what it is, and everybody's answer.

ExampleId = Annotated[str, Query(description="The example's identity.")]
OfTask = Annotated[str | None, Query(description="A task; the first by default.")]


@dataclass(frozen=True)
class ExamplePage:
    """One example with the votes of all variants."""

    key: str
    tasks: list[str]
    classes: list[str]
    card: ExampleCard


def example(site: OfSite, item: OfItem, id: ExampleId, task: OfTask = None) -> ExamplePage:
    """One example with every member's answer and score."""
    index = site.index(item)
    votes = index.task(task or None)
    place = place_of(votes, id)
    return ExamplePage(
        item.key,
        [name for name in index.task_names if name is not None],
        list(votes.head.classes[:MOST_CHOICES]),
        cards(site, item, task or None, [place], size=LARGE)[0],
    )


def place_of(votes: TaskVotes, id: str) -> int:
    """Where an example is; an error where there is none."""
    place = votes.place(id)
    if place is None:
        raise UnknownNameError("Example", id[:80], [], remedy="Look for it in the gallery.")
    return place


add_page(router, "/audit/{key}/example", example, "example.html.j2", summary="One example")


# Exemplars beside examples of the same class that are none.


@dataclass(frozen=True)
class ExemplarPair:
    """An exemplar, and one of its class that is none (null where the class has none)."""

    exemplar: ExampleCard
    other: ExampleCard | None


@dataclass(frozen=True)
class PairsPage(GalleryPage):
    """A page of pairs; `total` exemplars fit the filters."""

    kind: str
    pairs: list[ExemplarPair]


def pairs(site: OfSite, item: OfItem, asked: OfAsked) -> PairsPage:
    """Pairs of exemplar and non-exemplar of one class, the furthest apart first."""
    index = site.index(item)
    votes = index.task(asked.filters.task)
    variant = compressed_side(votes, asked.filters).variant
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
        **gallery(site, item, asked, found.total, "pairs"),
        kind=asked.filters.kind or DEFAULT_KIND,
        pairs=[
            ExemplarPair(next(made), None if other is None else next(made))
            for _, other in found.pairs
        ],
    )


add_page(router, "/audit/{key}/pairs", pairs, "pairs.html.j2", summary="Pairs of examples")


# The image of one example, and no other file.


@router.get(
    "/audit/{key}/image",
    summary="An image",
    response_class=Response,
    responses=PROBLEMS | {200: {"content": {"image/png": {}, "image/jpeg": {}}}},
)
def image(
    site: OfSite,
    item: OfItem,
    id: ExampleId,
    size: Annotated[int, Query(ge=16, le=1024, description="Pixels of the longer side.")] = SMALL,
) -> Response:
    """The image of an example, from the study's own data."""
    found = site.pictures(item).encoded(id, size)
    if found is None:
        raise HTTPException(404, "This example has no image")
    content, media_type = found
    return Response(
        content, media_type=media_type, headers={"Cache-Control": "private, max-age=3600"}
    )
