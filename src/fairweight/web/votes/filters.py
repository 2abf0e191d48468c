"""Which examples are asked for: what an address says, checked, and back to an address."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.exemplars.risk import unsure_scores
from fairweight.base.streams import stream
from fairweight.base.types import Mask
from fairweight.errors import InputError, UnknownNameError
from fairweight.web.votes.index import Array, SideVotes, TaskVotes, VoteIndex
from fairweight.web.votes.writer import KINDS, SCORED, UNSURE

Side: TypeAlias = Literal["compressed", "baseline"]

SIDES = ("compressed", "baseline")
CELLS = ("TP", "FN", "FP", "TN")
CONFIDENCES = ("high", "low")
CHANGES = ("yes", "no", "lost", "gained")
ANNOTATED = ("yes", "no", "label_wrong", "ambiguous", "model_harmful", "fine", "skip")
GROUP = "group."  # group.sex=female
CHOICES = {
    "side": SIDES,
    "cell": CELLS,
    "confidence": CONFIDENCES,
    "changed": CHANGES,
    "kind": tuple(KINDS),
    "annotated": ANNOTATED,
}
NAMES = ("task", "variant", "seed", "positive", "label", "prediction", "not_of")


@dataclass(frozen=True)
class Filters:
    """What examples must be; None asks for nothing.

    Parameters
    ----------
    task
        By default the first.
    variant
        The compressed variant that is looked at; by default the first.
    side
        Whose answers `seed`, `cell`, `confidence` and `prediction` speak of.
    seed
        One member of that side, in place of the most frequent answer of all.
    cell
        TP, FN, FP or TN: the class `positive` against the rest; by default the positive one of two.
    confidence
        `low`: the side is unsure (two classes: the mean score lies between .1 and .9; more: the
        mean score of the surest class is below .9). `high`: it is not.
    groups
        Columns and levels, `(("sex", "female"),)`.
    label, prediction
        A class.
    changed
        Whether the two sides answer differently: `yes`, `no`, `lost` (and the baseline was right),
        `gained` (and the compressed model is). Of a member: its answer and that of the member it
        comes from.
    percentile_min
        At least so many of 100 examples have a smaller distance between the sides' votes.
    kind
        An exemplar of the variant, of this kind.
    not_of
        And not of this other variant; of the kind `modal` where none is named.
    annotated
        `yes`, `no` or a verdict.
    """

    task: str | None = None
    variant: str | None = None
    side: Side = "compressed"
    seed: str | None = None
    cell: str | None = None
    positive: str | None = None
    confidence: str | None = None
    groups: tuple[tuple[str, str], ...] = ()
    label: str | None = None
    prediction: str | None = None
    changed: str | None = None
    percentile_min: float | None = None
    kind: str | None = None
    not_of: str | None = None
    annotated: str | None = None


def from_query(query: Mapping[str, str]) -> Filters:
    """Filters from the parameters of an address; others than filters are left alone.

    Empty values are those of fields that nobody filled in.

    >>> from_query({"cell": "FN", "group.sex": "female", "offset": "24", "label": ""})
    Filters(..., cell='FN', ..., groups=(('sex', 'female'),), ...)
    """
    held: dict[str, Any] = {}
    groups = []
    for name, value in query.items():
        if value == "":
            continue
        if name in CHOICES:
            if value not in CHOICES[name]:
                raise UnknownNameError(f"The filter {name} =", value, CHOICES[name])
            held[name] = value
        elif name in NAMES:
            held[name] = value
        elif name == "percentile_min":
            with suppress(ValueError):
                held[name] = float(value)
            if not 0 <= held.get(name, -1.0) <= 100:
                raise InputError(
                    f"The filter percentile_min = '{value[:40]}' is no percentile; give a number "
                    "from 0 to 100, such as 95."
                )
        elif name.startswith(GROUP) and name != GROUP:
            groups.append((name.removeprefix(GROUP), value))
    return Filters(**held, groups=tuple(sorted(groups)))


def to_query(filters: Filters) -> dict[str, str]:
    """The parameters of an address that says the same.

    >>> to_query(Filters(cell="FN", groups=(("sex", "female"),), percentile_min=95.0))
    {'cell': 'FN', 'percentile_min': '95', 'group.sex': 'female'}
    """
    texts = {name: getattr(filters, name) for name in (*NAMES, *CHOICES)}
    said = {name: cast(str, text) for name, text in texts.items() if text is not None}
    if filters.side == SIDES[0]:
        del said["side"]
    if filters.percentile_min is not None:
        said["percentile_min"] = f"{filters.percentile_min:.10g}"
    return said | {GROUP + column: level for column, level in filters.groups}


# Filters as masks over the examples of a task.

DEFAULT_KIND = "modal"


def mask_of(votes: TaskVotes, filters: Filters) -> Mask:
    """Which examples are asked for, whatever people said of them; not to be written to."""
    return _mask(votes, replace(filters, task=None, annotated=None))


def compressed_side(votes: TaskVotes, filters: Filters) -> SideVotes:
    """The compressed variant that the filters look at."""
    if filters.variant is None:
        return votes.side(votes.head.variants[0])
    if filters.variant == votes.head.baseline:
        raise InputError(
            f"The filter variant = '{filters.variant}' is the baseline; name a compressed variant, "
            "and use side = baseline for what the baseline answers."
        )
    return votes.side(filters.variant)


@lru_cache(maxsize=48)  # a byte per example each: pages of one selection ask for the same
def _mask(votes: TaskVotes, filters: Filters) -> Mask:
    mask = np.ones(votes.n_examples, dtype=bool)
    for column, level in filters.groups:
        if column not in votes.groups:
            known = ", ".join(f"'{name}'" for name in votes.groups) or "none"
            raise InputError(
                f"The filter group.{column[:60]} names no group column; there are: {known}."
            )
        group = votes.groups[column]
        mask &= group.codes == group.code(column, level)
    if filters.label is not None:
        mask &= votes.label == votes.class_code(filters.label)
    side = compressed_side(votes, filters)
    baseline = votes.side(votes.head.baseline)
    own = side if filters.side == "compressed" else baseline
    row = None if filters.seed is None else votes.member(own.variant, filters.seed)
    given = own.modal if row is None else votes.prediction[row]
    if filters.prediction is not None:
        mask &= given == votes.class_code(filters.prediction)
    if filters.cell is not None:
        positive = votes.head.positive
        if filters.positive is not None:
            positive = votes.class_code(filters.positive)
        if positive is None:
            raise InputError(
                f"The filter cell = '{filters.cell}' needs to know which class is positive; add "
                "positive=CLASS to take one class against the rest."
            )
        mask &= (votes.label == positive) == (filters.cell in ("TP", "FN"))
        mask &= (given == positive) == (filters.cell in ("TP", "FP"))
    if filters.confidence is not None:
        if votes.score is None:
            raise InputError(
                f"The filter confidence = '{filters.confidence}' needs scores, and these "
                "predictions have none; leave it out."
            )
        scored, unsure = (own.bits & SCORED) != 0, (own.bits & UNSURE) != 0
        if row is not None:
            score = np.asarray(votes.score[row], dtype=np.float32)
            scored = ~np.isnan(score)
            unsure = unsure_scores(score, votes.head.n_label_classes == 2)
        mask &= scored & (unsure if filters.confidence == "low" else ~unsure)
    if filters.changed is not None:
        mask &= _changed(votes, side, baseline, filters, row)
    if filters.percentile_min is not None:
        assert side.percentile is not None
        mask &= side.percentile >= np.float32(filters.percentile_min)
    if filters.kind is not None or filters.not_of is not None:
        bit = KINDS[filters.kind or DEFAULT_KIND]
        mask &= (side.bits & bit) != 0
        if filters.not_of is not None:
            mask &= (compressed_side(votes, Filters(variant=filters.not_of)).bits & bit) == 0
    mask.setflags(write=False)
    return mask


def _changed(
    votes: TaskVotes, side: SideVotes, baseline: SideVotes, filters: Filters, row: int | None
) -> Mask:
    """Where the two sides answer differently, or one member and its partner.

    Without a partner a member stands against the other side as a whole.
    """
    before, after = baseline.modal, side.modal
    differs: Mask = (side.bits & KINDS["modal"]) != 0
    if row is not None:
        partners = votes.head.partners
        if side.rows.start <= row < side.rows.stop:
            after, parent = votes.prediction[row], partners[row]
            before = before if parent is None else votes.prediction[parent]
        else:
            before = votes.prediction[row]
            children = [i for i in range(side.rows.start, side.rows.stop) if partners[i] == row]
            after = votes.prediction[children[0]] if children else after
        differs = before != after
    if filters.changed in ("yes", "no"):
        return differs if filters.changed == "yes" else ~differs
    right = before if filters.changed == "lost" else after
    found: Mask = differs & (right == votes.label)
    return found


# A page of the examples that are asked for, in an order.

ORDERS = ("distance", "random", "id", "uncertain")
MOST = 1000  # examples of one page
CHUNK = 65_536  # places of an order that are looked at together

# Example → the verdicts that people gave about it, in the task that is looked at.
Annotated = Mapping[str, Collection[str]]


@dataclass(frozen=True, eq=False)
class PlacesPage:
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
) -> PlacesPage:
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
        wanted, said = filters.annotated, annotated_ids or {}
        named = [name for name, verdicts in said.items() if wanted in ("yes", "no", *verdicts)]
        annotated = np.zeros(votes.n_examples, dtype=bool)
        annotated[[place for name in named if (place := votes.place(name)) is not None]] = True
        mask = mask & (~annotated if wanted == "no" else annotated)
    ordered: Array | None = None  # as they are stored
    if order == "random":
        ordered = _random_order(votes.n_examples, random_state)
    elif order == "distance":
        ordered = compressed_side(votes, filters).distance_order
    elif order == "uncertain":
        side = compressed_side(votes, filters)
        if filters.side == "baseline":
            side = votes.side(votes.head.baseline)
        ordered = side.uncertain_order
    total = int(np.count_nonzero(mask))
    return PlacesPage(total, _page(mask, ordered, total, offset, limit))


@lru_cache(maxsize=8)
def _random_order(n: int, random_state: int) -> Array:
    """All places in an order that depends on `random_state` alone."""
    if random_state < 0:
        raise InputError(f"random_state = {random_state} is below 0; give a number from 0.")
    return stream(random_state, "view").permutation(n).astype(np.uint32)


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


# An exemplar beside an example of the same class that is none.

TRIED = 256  # examples that are drawn before a class is listed


@dataclass(frozen=True)
class PairPage:
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
) -> PairPage:
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
    side = compressed_side(votes, filters)
    bit = KINDS[kind]
    found: list[tuple[int, int | None]] = []
    for place in chosen.places.tolist():
        label, other = int(votes.label[place]), None
        draw = stream(random_state, "view pairs", str(place))
        # Drawing until one fits is much quicker than listing a large class, and as random.
        tried = draw.integers(votes.n_examples, size=TRIED)
        good = tried[(votes.label[tried] == label) & ((side.bits[tried] & bit) == 0)]
        if len(good):
            other = int(good[0])
        else:
            every = np.flatnonzero((votes.label == label) & ((side.bits & bit) == 0))
            other = int(every[draw.integers(len(every))]) if len(every) else None
        found.append((place, other))
    return PairPage(chosen.total, tuple(found))
