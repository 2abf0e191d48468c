"""What the fields of the filter form offer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairweight.auditing.counts.groupings import MISSING
from fairweight.web.item import Item
from fairweight.web.site import Site
from fairweight.web.votes.filters import ANNOTATED, CELLS, CHANGES, CONFIDENCES, SIDES
from fairweight.web.votes.kinds import KINDS
from fairweight.web.votes.opened import TaskVotes
from fairweight.web.votes.select import ORDERS

MOST = 200  # beyond that a field is typed, not chosen


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
    return site.kept(item, ("choices", name), lambda: _made(site, item, votes))


def _made(site: Site, item: Item, votes: TaskVotes) -> Choices:
    head = votes.head
    tasks = [name for name in site.index(item).task_names if name is not None]
    tasks = tasks if len(tasks) > 1 else []
    classes = list(head.classes) if len(head.classes) <= MOST else []
    seeds = list(dict.fromkeys(seed for _, seed in head.members))
    held = {int(bit) for variant in head.variants for bit in _bits(votes, variant)}
    kinds = [kind for kind, bit in KINDS.items() if bit in held]
    first = [
        Field("task", "task", tasks, head.name),
        Field("variant", "variant", list(head.variants), head.variants[0]),
        Field("changed", "answer changed", list(CHANGES)),
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
    first, more = _without_nulls(first), _without_nulls(more)
    kept = {"label", "positive", "prediction"}  # with too many classes they are typed
    return Choices(
        [field for field in first if field.values or field.name in kept],
        [field for field in more if field.values or field.name in kept],
        _without_nulls(
            [Field(f"group.{name}", name, _levels(votes, name)) for name in head.groups]
        ),
        list(ORDERS),
        classes,
    )


def _without_nulls(fields: list[Field]) -> list[Field]:
    """Forms cannot send a null character; links can, and lead to such groups all the same."""
    return [replace(f, values=[v for v in f.values if "\0" not in v]) for f in fields]


def _bits(votes: TaskVotes, variant: str) -> list[int]:
    """The kinds of exemplars that a variant has at all."""
    import numpy as np

    joined = int(np.bitwise_or.reduce(votes.side(variant).bits, initial=0))
    return [bit for bit in KINDS.values() if joined & bit]


def _levels(votes: TaskVotes, column: str) -> list[str]:
    levels = votes.groups[column].levels
    if len(levels) > MOST:
        return []
    return [MISSING if level is None else level for level in levels[:MOST]]
