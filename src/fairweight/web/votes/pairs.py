"""An exemplar beside an example of the same class that is none."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairweight.auditing.streams import stream
from fairweight.web.votes.filters import Filters
from fairweight.web.votes.kinds import KINDS
from fairweight.web.votes.masks import DEFAULT_KIND, compressed
from fairweight.web.votes.opened import Array, VoteIndex
from fairweight.web.votes.select import Annotated, select

TRIED = 256  # examples that are drawn before a class is listed


@dataclass(frozen=True)
class Pairs:
    """How many exemplars there are, and those of this page: (place, place of the other).

    The other is None where a class has nothing but exemplars.
    """

    total: int
    pairs: tuple[tuple[int, int | None], ...]


def pairs(
    index: VoteIndex,
    filters: Filters,
    random_state: int = 0,
    offset: int = 0,
    limit: int = 12,
    annotated_ids: Annotated | None = None,
) -> Pairs:
    """Exemplars that the filters ask for, the furthest apart first, each with one that is none.

    Exemplars are of the kind that is asked for, or modal ones. The other example has the same
    label; which one it is depends on `random_state` and the exemplar alone.
    """
    kind = filters.kind or DEFAULT_KIND
    chosen = select(
        index,
        replace(filters, kind=kind),
        random_state=random_state,
        offset=offset,
        limit=limit,
        annotated_ids=annotated_ids,
    )
    votes = index.task(filters.task)
    side = compressed(votes, filters)
    bit = KINDS[kind]

    def fits(places: Array | slice, label: int) -> Array:
        found: Array = (votes.label[places] == label) & ((side.bits[places] & bit) == 0)
        return found

    def other(place: int) -> int | None:
        label = int(votes.label[place])
        draw = stream(random_state, "view pairs", str(place))
        # Drawing until one fits is much quicker than listing a large class, and as random.
        tried = draw.integers(votes.n_examples, size=TRIED)
        good = np.flatnonzero(fits(tried, label))
        if len(good):
            return int(tried[good[0]])
        candidates = np.flatnonzero(fits(slice(None), label))
        return int(candidates[draw.integers(len(candidates))]) if len(candidates) else None

    return Pairs(chosen.total, tuple((place, other(place)) for place in chosen.places.tolist()))
