"""What an address of the gallery asks for: filters, an order, a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Query, Request

from fairweight.web.votes.filters import CHOICES, GROUP, Filters, from_query, to_query
from fairweight.web.votes.select import ORDERS

LIMIT, MOST = 24, 96
LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Asked:
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


async def asked(
    request: Request,
    task: Annotated[str | None, Query(description="A task; the first by default.")] = None,
    variant: Annotated[
        str | None, Query(description="The compressed variant; the first by default.")
    ] = None,
    side: Annotated[str | None, _one_of("side", "Whose answers the filters speak of.")] = None,
    seed: Annotated[str | None, Query(description="One member, in place of the majority.")] = None,
    cell: Annotated[str | None, _one_of("cell", "A cell of the confusion matrix.")] = None,
    positive: Annotated[
        str | None, Query(description="The class that `cell` sets against the rest.")
    ] = None,
    confidence: Annotated[str | None, _one_of("confidence", "How sure the side is.")] = None,
    label: Annotated[str | None, Query(description="The recorded class.")] = None,
    prediction: Annotated[str | None, Query(description="The class that is answered.")] = None,
    changed: Annotated[
        str | None, _one_of("changed", "Whether the two sides answer differently.")
    ] = None,
    percentile_min: Annotated[
        str | None, Query(description="Least percentile of the distance, from 0 to 100.")
    ] = None,
    kind: Annotated[str | None, _one_of("kind", "A kind of exemplar of the variant.")] = None,
    not_of: Annotated[str | None, Query(description="And no exemplar of this variant.")] = None,
    annotated: Annotated[str | None, _one_of("annotated", "What people said.")] = None,
    order: Annotated[str, Query(description=f"The order. One of {', '.join(ORDERS)}.")] = ORDERS[0],
    random_state: Annotated[
        int, Query(ge=0, le=LARGEST, description="Another number is another sample.")
    ] = 0,
    offset: Annotated[int, Query(ge=0, le=LARGEST, description="Where the page begins.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST, description="Examples on a page.")] = LIMIT,
) -> Asked:
    """Filters of an address; groups are given as `group.COLUMN=LEVEL`."""
    # All of them are in the query, with the groups, whose names are not known beforehand.
    filters = from_query(dict(request.query_params))
    return Asked(filters, order or ORDERS[0], random_state, offset, limit)


OfAsked = Annotated[Asked, Depends(asked)]


@dataclass(frozen=True)
class Chip:
    """An active filter and the address without it."""

    name: str
    value: str
    without: str


def chips(asked: Asked, address: Any) -> list[Chip]:
    """The active filters; `address` makes an address of a query."""
    return [
        Chip(name.removeprefix(GROUP), value, address(asked.query(**{name: None, "offset": None})))
        for name, value in to_query(asked.filters).items()
    ]
