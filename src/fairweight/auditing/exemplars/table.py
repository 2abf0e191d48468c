"""Exemplars as rows for people: who they are, what everybody answered, and how surely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.exemplars.risk import mean_score
from fairweight.auditing.prediction_matrix import Answers
from fairweight.base.types import Floats, Mask

NO_ANSWER = "no answer"


def top_name(percentile: float) -> str:
    """The column of a percentile.

    >>> top_name(90.0), top_name(97.5)
    ('top_10', 'top_2.5')
    """
    return f"top_{round(100 - percentile, 6):g}"


def exemplar_rows(
    answers: Answers,
    variant: str,
    distance: Floats,
    in_votes: bool,
    order: Floats,
    priority: Floats,
    exemplar: Mask,
    tops: Mapping[float, Mask],
) -> dict[str, Any]:
    """Columns of the examples that are exemplars of any kind, the furthest apart first.

    Parameters
    ----------
    distance
        (n,) from 0 to 1.
    in_votes
        Whether both sides have equally many members, so that distances are numbers of votes too.
    order
        (n,) what ranks the examples: the distance, or a pair's surrogate.
    priority
        (n,) random numbers that decide among equals, as in the cut.
    exemplar
        (n,) the modal ones.
    tops
        Percentile → the exemplars of its cut.
    """
    wanted = exemplar.copy()
    for mask in tops.values():
        wanted |= mask
    places = np.flatnonzero(wanted)
    places = places[np.lexsort((priority[places], -order[places]))]
    votes = len(answers.of(variant))
    counted = vote_columns(answers, variant, places)
    columns: dict[str, Any] = {
        "example_id": identities(answers)[places],
        "task": [answers.task] * len(places),
        "variant": [variant] * len(places),
        "label": counted.pop("label"),
        "distance": distance[places],
        "distance_votes": np.rint(distance[places] * 2 * votes)
        if in_votes
        else np.full(len(places), np.nan),
        "rank": np.arange(1, len(places) + 1),
        "modal": exemplar[places],
    }
    columns |= {top_name(q): mask[places] for q, mask in tops.items()}
    columns |= counted
    for side, name in (("baseline", answers.baseline), ("compressed", variant)):
        score = mean_score(answers, name)
        columns[f"score_{side}"] = np.full(len(places), np.nan) if score is None else score[places]
    columns |= {
        column.name: np.array(column.values, dtype=object)[column.code[places]]
        for column in answers.columns
        if column.name not in columns
    }
    if "image_path" in answers.texts and "image_path" not in columns:
        columns["image_path"] = answers.texts["image_path"][places]
    return columns


def identities(answers: Answers) -> NDArray[Any]:
    """Identities of the examples; their numbers where they have none."""
    return np.arange(answers.n_examples) if answers.example_id is None else answers.example_id


def vote_columns(answers: Answers, variant: str, places: NDArray[np.intp]) -> dict[str, list[str]]:
    """Label, most frequent answers ("cat | dog") and all votes ("cat 5, dog 5") of some examples.

    Of equally frequent answers the first class comes first.
    """
    names = (*answers.classes, NO_ANSWER)
    modal: dict[str, list[str]] = {}
    votes: dict[str, list[str]] = {}
    for side, name in (("baseline", answers.baseline), ("compressed", variant)):
        modal[f"modal_{side}"], votes[f"votes_{side}"] = [], []
        for given in answers.of(name)[:, places].T.tolist():
            ranked = sorted(Counter(given).items(), key=lambda vote: (-vote[1], vote[0]))
            most = [names[code] for code, number in ranked if number == ranked[0][1]]
            modal[f"modal_{side}"].append(" | ".join(most))
            votes[f"votes_{side}"].append(", ".join(f"{names[c]} {number}" for c, number in ranked))
    return {"label": [names[code] for code in answers.label[places]], **modal, **votes}


# A few of many lists, so that none is forgotten.

Key = TypeVar("Key", bound=Hashable)


def in_turn(lists: Collection[Sequence[Key]], most: int) -> list[Key]:
    """The first of every list, then the second of every list, each only once, up to a number.

    >>> in_turn([["a", "b", "c"], ["b", "d"], []], 3)
    ['a', 'b', 'd']
    """
    longest = max((len(own) for own in lists), default=0)
    found = dict.fromkeys(own[i] for i in range(longest) for own in lists if i < len(own))
    return list(found)[:most]
