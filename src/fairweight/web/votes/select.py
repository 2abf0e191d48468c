"""A page of the examples that are asked for, in an order."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.streams import stream
from fairweight.errors import InputError, UnknownNameError
from fairweight.web.votes.filters import Filters
from fairweight.web.votes.masks import Mask, compressed, mask_of
from fairweight.web.votes.opened import Array, TaskVotes, VoteIndex

ORDERS = ("distance", "random", "id", "uncertain")
MOST = 1000  # examples of one page
CHUNK = 65_536  # places of an order that are looked at together

# Example → the verdicts that people gave about it, in the task that is looked at.
Annotated = Mapping[str, Collection[str]]


@dataclass(frozen=True, eq=False)
class Selection:
    """How many examples there are, and the places of those of this page."""

    total: int
    places: NDArray[np.int64]


def select(
    index: VoteIndex,
    filters: Filters,
    order: str = "distance",
    random_state: int = 0,
    offset: int = 0,
    limit: int = 24,
    annotated_ids: Annotated | None = None,
) -> Selection:
    """The examples of a page.

    Parameters
    ----------
    order
        `distance`: those whose votes lie furthest apart first (single pairs: changed predictions,
        then divergence of scores). `uncertain`: where the side that the filters name is least
        sure. `random`: a draw that depends on `random_state` alone. `id`: by identity.
    annotated_ids
        Example → verdicts, for the filter `annotated`.
    """
    votes = index.task(filters.task)
    if order not in ORDERS:
        raise UnknownNameError("The order", order, ORDERS)
    if offset < 0:
        raise InputError(f"offset = {offset} is below 0; pages begin at 0.")
    if not 0 <= limit <= MOST:
        raise InputError(f"limit = {limit} cannot be shown; give a number from 0 to {MOST}.")
    mask = mask_of(votes, filters)
    if filters.annotated is not None:
        mask = mask & _annotated(votes, filters.annotated, annotated_ids or {})
    total = int(np.count_nonzero(mask))
    places = _page(mask, _order(votes, filters, order, random_state), total, offset, limit)
    return Selection(total, places)


def _order(votes: TaskVotes, filters: Filters, order: str, random_state: int) -> Array | None:
    """Places in their order; None: as they are stored."""
    if order == "random":
        return _drawn(votes.n_examples, random_state)
    if order == "distance":
        return compressed(votes, filters).distance_order
    if order == "uncertain":
        side = compressed(votes, filters)
        if filters.side == "baseline":
            side = votes.side(votes.head.baseline)
        return side.uncertain_order
    return None


@lru_cache(maxsize=8)
def _drawn(n: int, random_state: int) -> Array:
    if random_state < 0:
        raise InputError(f"random_state = {random_state} is below 0; give a number from 0.")
    return stream(random_state, "view").permutation(n).astype(np.uint32)


def _annotated(votes: TaskVotes, wanted: str, said: Annotated) -> Mask:
    given = [name for name, verdicts in said.items() if wanted in ("yes", "no", *verdicts)]
    found = np.zeros(votes.n_examples, dtype=bool)
    places = [place for name in given if (place := votes.place(name)) is not None]
    found[places] = True
    return ~found if wanted == "no" else found


def _page(
    mask: Mask, order: Array | None, total: int, offset: int, limit: int
) -> NDArray[np.int64]:
    """The places from `offset` on; the order is walked only as far as the page reaches."""
    if offset >= total or not limit:
        return np.zeros(0, dtype=np.int64)
    if total == len(mask):
        here = slice(offset, offset + limit)
        found = np.arange(len(mask))[here] if order is None else order[here]
        return found.astype(np.int64)
    if order is None:
        return np.flatnonzero(mask)[offset : offset + limit].astype(np.int64)
    taken: list[Array] = []
    seen = 0
    for start in range(0, len(order), CHUNK):
        part = np.asarray(order[start : start + CHUNK])
        part = part[mask[part]]
        if seen + len(part) > offset:
            taken.append(part[max(offset - seen, 0) : offset + limit - seen])
        seen += len(part)
        if seen >= offset + limit:
            break
    return np.concatenate(taken).astype(np.int64)
