"""What is shown of an example: what it is, and who answered what, ready to be written as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairweight.auditing.exemplars.rows import NO_ANSWER
from fairweight.web.votes.kinds import SCORED, UNSURE, kinds_in
from fairweight.web.votes.opened import Array, SideVotes, TaskVotes, VoteIndex


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
