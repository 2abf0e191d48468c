"""An example as it is shown: what it is, how both sides vote, and what people said of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairweight.auditing.exemplars.table import NO_ANSWER
from fairweight.tables.annotations import Annotation
from fairweight.web.items import Item
from fairweight.web.rendering import of_item
from fairweight.web.site import Site
from fairweight.web.votes.index import Array, SideVotes, TaskVotes, VoteIndex
from fairweight.web.votes.writer import SCORED, UNSURE, kinds_in

# What is shown of an example: what it is, and who answered what, ready to be written as JSON.


def example(index: VoteIndex, place: int, task: str | None = None) -> dict[str, Any]:
    """All that is known of one example, with the votes of all variants."""
    return examples(index, [place], task)[0]


def examples(
    index: VoteIndex,
    places: Sequence[int] | Array,
    task: str | None = None,
    variants: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """The same of several examples; only of these variants, by default of all.

    Every side (`baseline` and the entries of `variants`) has the votes, most first, the members'
    answers and scores, the mean of their scores, and how sure they are; the variants also have
    their distance from the baseline (0 to 1), in votes where both sides have equally many members,
    its percentile, and the kinds of exemplars that the example is.
    """
    votes = index.task(task)
    at = np.asarray(places, dtype=np.int64)
    names = votes.head.variants if variants is None else tuple(variants)
    baseline = votes.side(votes.head.baseline)
    asked = [votes.side(name) for name in names]
    first, *others = (_side(votes, side, at) for side in (baseline, *asked))
    for side, shown in zip(asked, others, strict=True):
        _add_distance(side, baseline, at, shown)
    return [
        {
            "id": votes.example_id(place),
            "place": place,
            "task": votes.head.name,
            "label": votes.head.classes[int(votes.label[place])],
            "groups": {
                name: group.levels[int(group.codes[place])] for name, group in votes.groups.items()
            },
            "properties": _properties(votes, place),
            "baseline": first[row],
            "variants": [shown[row] for shown in others],
        }
        for row, place in enumerate(at.tolist())
    ]


def _properties(votes: TaskVotes, place: int) -> dict[str, Any]:
    found: dict[str, Any] = {name: _number(v[place]) for name, v in votes.numbers.items()}
    return found | {name: texts[place] for name, texts in votes.texts.items()}


def _side(votes: TaskVotes, side: SideVotes, at: Array) -> list[dict[str, Any]]:
    names = (*votes.head.classes, NO_ANSWER)
    given = np.asarray(votes.prediction[side.rows, at])  # (members, places)
    scores = None if votes.score is None else np.asarray(votes.score[side.rows, at], np.float64)
    seeds = [seed for variant, seed in votes.head.members if variant == side.variant]
    return [
        _answers(
            names,
            seeds,
            given[:, i].tolist(),
            None if scores is None else scores[:, i].tolist(),
            int(votes.label[place]),
            int(side.bits[place]),
        )
        | {"variant": side.variant}
        for i, place in enumerate(at.tolist())
    ]


def _answers(
    names: Sequence[str],
    seeds: Sequence[str],
    given: list[int],
    scores: list[float] | None,
    label: int,
    bits: int,
) -> dict[str, Any]:
    counted = {code: given.count(code) for code in given}
    ranked = sorted(counted.items(), key=lambda vote: (-vote[1], vote[0]))
    known = [] if scores is None else [score for score in scores if not math.isnan(score)]
    shown = scores or [math.nan] * len(given)
    return {
        "votes": {names[code]: number for code, number in ranked},
        "modal": [names[code] for code, number in ranked if number == ranked[0][1]],
        "n_members": len(given),
        "n_right": given.count(label),
        "score": sum(known) / len(known) if known else None,
        "confidence": None if not bits & SCORED else "low" if bits & UNSURE else "high",
        "members": [
            {"seed": seed, "answer": names[code], "right": code == label, "score": _number(score)}
            for seed, code, score in zip(seeds, given, shown, strict=True)
        ],
    }


def _add_distance(
    side: SideVotes, baseline: SideVotes, at: Array, shown: list[dict[str, Any]]
) -> None:
    assert side.distance is not None
    assert side.percentile is not None
    assert side.scale is not None
    members, others = (s.rows.stop - s.rows.start for s in (side, baseline))
    for row, place in zip(shown, at.tolist(), strict=True):
        distance = int(side.distance[place])
        row["distance"] = distance / (2 * side.scale)
        row["distance_votes"] = distance if members == others else None
        row["percentile"] = float(side.percentile[place])
        row["kinds"] = kinds_in(int(side.bits[place]))


def _number(value: Any) -> float | None:
    """A number for JSON, which has no NaN and no infinity."""
    number = float(value)
    return number if math.isfinite(number) else None


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
