"""An example as it is shown: what it is, how both sides vote, and what people said of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairweight.auditing.exemplars.table import NO_ANSWER
from fairweight.tables.annotations import Annotation
from fairweight.web.items import Item
from fairweight.web.rendering import of_item
from fairweight.web.site import Site
from fairweight.web.votes.index import Array, SideVotes, TaskVotes, VoteIndex
from fairweight.web.votes.writer import SCORED, UNSURE, kinds_in

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
class MemberAnswer:
    """The answer of one model."""

    seed: str
    answer: str
    right: bool
    score: float | None


@dataclass(frozen=True)
class SideAnswers:
    """The answers of one side; what only compressed variants have is null for the baseline.

    `score` is the mean of the members' scores; `distance` is that from the baseline (0 to 1),
    `percentile` the share of examples that lie less far apart.
    """

    variant: str
    n_members: int
    n_right: int
    bars: list[Bar]  # the right answer first, so that both sides begin with the same colour
    modal: list[str]
    score: float | None
    confidence: str | None
    distance: float | None
    percentile: float | None
    kinds: list[str]
    members: list[MemberAnswer]


@dataclass(frozen=True)
class Given:
    """What one person said."""

    verdict: str
    label: str
    note: str
    annotator: str
    time: str

    @classmethod
    def of(cls, row: Annotation) -> Given:
        """What a row of annotations says."""
        return cls(row.verdict, row.label, row.note, row.annotator, row.time)


@dataclass(frozen=True)
class ExampleCard:
    """One example: what it is, how both sides vote, where it is shown, and what people said."""

    id: str
    task: str | None
    label: str
    groups: dict[str, str | None]
    properties: dict[str, Any]
    baseline: SideAnswers
    variants: list[SideAnswers]
    link: str = ""
    image: str | None = None
    annotations: list[Given] = field(default_factory=list)


def examples(
    index: VoteIndex,
    places: Sequence[int] | Array,
    task: str | None = None,
    variants: Sequence[str] | None = None,
) -> list[ExampleCard]:
    """The examples at these places; with the votes of these variants, by default of all."""
    votes = index.task(task)
    at = np.asarray(places, dtype=np.int64)
    names = votes.head.variants if variants is None else variants
    baseline, *others = (
        _votes(votes, votes.side(name), at) for name in (votes.head.baseline, *names)
    )
    return [
        ExampleCard(
            id=votes.example_id(place),
            task=votes.head.name,
            label=votes.head.classes[int(votes.label[place])],
            groups={
                name: group.levels[int(group.codes[place])] for name, group in votes.groups.items()
            },
            properties={name: _number(values[place]) for name, values in votes.numbers.items()}
            | {name: texts[place] for name, texts in votes.texts.items()},
            baseline=baseline[row],
            variants=[side[row] for side in others],
        )
        for row, place in enumerate(at.tolist())
    ]


def _votes(votes: TaskVotes, side: SideVotes, at: Array) -> list[SideAnswers]:
    """What one side says of each of these examples."""
    names = (*votes.head.classes, NO_ANSWER)
    given = np.asarray(votes.prediction[side.rows, at])  # (members, places)
    scores = np.full(given.shape, np.nan)
    if votes.score is not None:
        scores = np.asarray(votes.score[side.rows, at], np.float64)
    seeds = [seed for variant, seed in votes.head.members if variant == side.variant]
    made = []
    for i, place in enumerate(at.tolist()):
        codes, own = given[:, i].tolist(), scores[:, i].tolist()
        label, bits = int(votes.label[place]), int(side.bits[place])
        known = [score for score in own if not math.isnan(score)]
        counted = {code: codes.count(code) for code in codes}
        ranked = sorted(counted.items(), key=lambda vote: (-vote[1], vote[0]))
        bars: list[Bar] = []
        begun = 0
        for code, number in sorted(ranked, key=lambda vote: vote[0] != label):
            right, total = code == label, len(codes)
            bars.append(Bar(names[code], number, right, begun / total, number / total))
            begun += number
        distance, percentile, kinds = None, None, []
        if side.distance is not None and side.percentile is not None and side.scale is not None:
            distance = int(side.distance[place]) / (2 * side.scale)
            percentile, kinds = float(side.percentile[place]), kinds_in(bits)
        made.append(
            SideAnswers(
                variant=side.variant,
                n_members=len(codes),
                n_right=codes.count(label),
                bars=bars,
                modal=[names[code] for code, number in ranked if number == ranked[0][1]],
                score=sum(known) / len(known) if known else None,
                confidence=None if not bits & SCORED else "low" if bits & UNSURE else "high",
                distance=distance,
                percentile=percentile,
                kinds=kinds,
                members=[
                    MemberAnswer(seed, names[code], code == label, _number(score))
                    for seed, code, score in zip(seeds, codes, own, strict=True)
                ],
            )
        )
    return made


def _number(value: Any) -> float | None:
    """A number for JSON, which has no NaN and no infinity."""
    number = float(value)
    return number if math.isfinite(number) else None


def cards(
    site: Site,
    item: Item,
    task: str | None,
    places: Sequence[int],
    variants: Sequence[str] | None = None,
    *,
    size: int = SMALL,
) -> list[ExampleCard]:
    """The same with links, images and annotations."""
    index = site.index(item)
    told = annotations_by_example(site.annotated.current(item.key), index.task(task).head.name)
    pictured = site.pictures(item).available
    return [
        replace(
            card,
            link=of_item(item.key, "example", id=card.id, task=card.task),
            image=of_item(item.key, "image", id=card.id, size=size) if pictured else None,
            annotations=[Given.of(row) for row in told.get(card.id, ())],
        )
        for card in examples(index, list(places), task, variants)
    ]


def annotations_by_example(
    rows: Iterable[Annotation], task: str | None
) -> dict[str, list[Annotation]]:
    """Example → what people said of it in this task."""
    found: dict[str, list[Annotation]] = {}
    for row in rows:
        if row.task == (task or ""):
            found.setdefault(row.example_id, []).append(row)
    return found
