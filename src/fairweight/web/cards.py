"""An example as it is shown: what it is, how both sides vote, and what people said of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fairweight.tables.annotations.verdict import Annotation
from fairweight.web.addresses import of_item
from fairweight.web.item import Item
from fairweight.web.site import Site
from fairweight.web.votes.example import examples

SMALL, LARGE = 160, 480  # pixels of the longer side


# Bars and members are made by the thousand for one page, and freezing would take half of the time.
@dataclass(slots=True)
class Bar:
    """How many members give one answer; `begin` and `width` are shares of the whole bar."""

    answer: str
    votes: int
    right: bool
    begin: float
    width: float


@dataclass(slots=True)
class Member:
    """The answer of one model."""

    seed: str
    answer: str
    right: bool
    score: float | None


@dataclass(frozen=True)
class Votes:
    """The answers of one side; what only compressed variants have is null for the baseline."""

    variant: str
    n_members: int
    n_right: int
    bars: list[Bar]
    modal: list[str]
    score: float | None
    confidence: str | None
    distance: float | None
    percentile: float | None
    kinds: list[str]
    members: list[Member]


@dataclass(frozen=True)
class Given:
    """What one person said."""

    verdict: str
    label: str
    note: str
    annotator: str
    time: str


@dataclass(frozen=True)
class Card:
    """One example."""

    id: str
    task: str | None
    label: str
    link: str
    image: str | None
    groups: dict[str, str | None]
    properties: dict[str, Any]
    baseline: Votes
    variants: list[Votes]
    annotations: list[Given]


def cards(
    site: Site,
    item: Item,
    task: str | None,
    places: Sequence[int],
    variants: Sequence[str] | None = None,
    *,
    size: int = SMALL,
) -> list[Card]:
    """The examples at these places; with the votes of these variants, by default of all."""
    votes = site.index(item).task(task)
    told = said_of(site.annotated.current(item.key), votes.head.name)
    pictured = site.pictures(item).available
    return [
        Card(
            id=shown["id"],
            task=shown["task"],
            label=shown["label"],
            link=of_item(item.key, "example", id=shown["id"], task=shown["task"]),
            image=of_item(item.key, "image", id=shown["id"], size=size) if pictured else None,
            groups=shown["groups"],
            properties=shown["properties"],
            baseline=_votes(shown["baseline"], shown["label"]),
            variants=[_votes(side, shown["label"]) for side in shown["variants"]],
            annotations=[
                Given(row.verdict, row.label, row.note, row.annotator, row.time)
                for row in told.get(shown["id"], ())
            ],
        )
        for shown in examples(site.index(item), list(places), task, variants)
    ]


def said_of(rows: Iterable[Annotation], task: str | None) -> dict[str, list[Annotation]]:
    """Example → what people said of it in this task."""
    found: dict[str, list[Annotation]] = {}
    for row in rows:
        if row.task == (task or ""):
            found.setdefault(row.example_id, []).append(row)
    return found


def _votes(side: dict[str, Any], label: str) -> Votes:
    return Votes(
        variant=side["variant"],
        n_members=side["n_members"],
        n_right=side["n_right"],
        bars=_bars(side["votes"], label),
        modal=side["modal"],
        score=side["score"],
        confidence=side["confidence"],
        distance=side.get("distance"),
        percentile=side.get("percentile"),
        kinds=side.get("kinds", []),
        members=[Member(m["seed"], m["answer"], m["right"], m["score"]) for m in side["members"]],
    )


def _bars(votes: dict[str, int], label: str) -> list[Bar]:
    """The right answer first, so that both sides begin with the same colour."""
    ranked = sorted(votes.items(), key=lambda vote: (vote[0] != label, -vote[1]))
    total = sum(votes.values())
    made: list[Bar] = []
    begun = 0
    for answer, number in ranked:
        made.append(Bar(answer, number, answer == label, begun / total, number / total))
        begun += number
    return made
