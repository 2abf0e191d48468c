"""What most members of either side answer, and who wins where answers have equally many votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.exemplars.votes import Counts, Votes
from fairweight.errors import InputError, UnknownNameError

Rule: TypeAlias = Literal["disjoint", "max", "min", "negative", "random", "baseline"]
RULES: tuple[Rule, ...] = get_args(Rule)

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class TieRule:
    """How a tie for the most votes is decided.

    disjoint   not at all: an exemplar has no modal answer in common between the two sides
    max, min   the largest (Hooker's code) or the smallest place in the list of classes
    negative   the negative one of two classes (Iofinova's code)
    random     a seeded draw
    baseline   the baseline's smallest; the compressed side takes the baseline's where it can
    """

    name: Rule = "disjoint"
    negative: int | None = None  # the code of the negative class


def tie_rule(name: str, answers: Answers) -> TieRule:
    """The rule of that name for these answers."""
    if name not in RULES:
        raise UnknownNameError("Tie rule", name, RULES)
    if name != "negative":
        return TieRule(name)
    if answers.n_label_classes != 2:
        raise InputError(
            f"tie_rule='negative' needs two classes, but there are {answers.n_label_classes}; "
            "use 'disjoint', 'max', 'min', 'random' or 'baseline'."
        )
    if answers.positive is None:
        raise InputError(
            "tie_rule='negative' needs to know the positive class, which cannot be told from "
            f"{', '.join(answers.classes[:2])}; name it with --positive (positive=)."
        )
    return TieRule("negative", 1 - answers.positive)


@dataclass(frozen=True)
class Modal:
    """Of every example: whether the two sides' most frequent answers differ, and how surely.

    exemplar    they differ, by the rule
    unanimous   no compressed member gives any of the baseline's modal answers
    undecided   one of the sides has more than one modal answer
    """

    exemplar: Mask
    unanimous: Mask
    undecided: Mask


def modal(votes: Votes, rule: TieRule, rng: np.random.Generator) -> Modal:
    """Compare modal answers; shapes are those of the counts.

    `rng` is used by the rule `random` alone.
    """
    if not votes.first:
        nobody = np.zeros(0, dtype=bool)
        return Modal(nobody, nobody, nobody)
    shape = votes.first[0].shape
    top = [_largest(side) for side in (votes.first, votes.second)]
    common, followed = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    leaders = [np.zeros(shape, dtype=np.uint8) for _ in top]
    for first, second in zip(votes.first, votes.second, strict=True):
        leads, follows = first == top[0], second == top[1]
        leaders[0] += leads
        leaders[1] += follows
        common |= leads & follows
        followed |= leads & (second > 0)
    undecided = (leaders[0] > 1) | (leaders[1] > 1)
    differs = ~common
    if rule.name != "disjoint":
        where = np.nonzero(undecided)  # elsewhere every rule says the same
        differs[where] = _differs(
            _at(votes, where), rule, [t[where] for t in top], [c[where] for c in leaders], rng
        )
    return Modal(differs, ~followed, undecided)


def _at(votes: Votes, where: tuple[NDArray[np.intp], ...]) -> Votes:
    return Votes(
        [a if isinstance(a, int) else a[where[-1]] for a in votes.answers],
        [count[where] for count in votes.first],
        [count[where] for count in votes.second],
        votes.n_first,
        votes.n_second,
    )


def _largest(counts: list[Counts]) -> Counts:
    top = counts[0].copy()
    for count in counts[1:]:
        np.maximum(top, count, out=top)
    return top


def _differs(
    votes: Votes,
    rule: TieRule,
    top: list[Counts],
    leaders: list[NDArray[np.uint8]],
    rng: np.random.Generator,
) -> Mask:
    sides = (votes.first, votes.second)
    if rule.name == "random":
        one, other = (_drawn(votes, *side, rng) for side in zip(sides, top, leaders, strict=True))
    elif rule.name == "max":
        one, other = (_last(votes, *side, backwards=False) for side in zip(sides, top, strict=True))
    else:
        one, other = (_last(votes, *side, backwards=True) for side in zip(sides, top, strict=True))
    if rule.name == "negative":
        for answer, first, second in zip(votes.answers, votes.first, votes.second, strict=True):
            chosen = answer == rule.negative
            one[(first == top[0]) & chosen] = rule.negative
            other[(second == top[1]) & chosen] = rule.negative
    elif rule.name == "baseline":
        for answer, second in zip(votes.answers, votes.second, strict=True):
            agrees = (second == top[1]) & (one == answer)
            other[agrees] = one[agrees]
    found: Mask = one != other
    return found


def _last(votes: Votes, counts: list[Counts], top: Counts, *, backwards: bool) -> NDArray[Any]:
    """The last of the modal answers in this order."""
    found = np.zeros(top.shape, dtype=np.uint32)
    order = list(zip(votes.answers, counts, strict=True))
    for answer, count in reversed(order) if backwards else order:
        np.copyto(found, answer, where=count == top)
    return found


def _drawn(
    votes: Votes,
    counts: list[Counts],
    top: Counts,
    leaders: NDArray[np.uint8],
    rng: np.random.Generator,
) -> NDArray[Any]:
    """One of the modal answers at random."""
    wanted = (rng.random(top.shape) * leaders).astype(np.uint8)
    seen = np.zeros(top.shape, dtype=np.uint8)
    found = np.zeros(top.shape, dtype=np.uint32)
    for answer, count in zip(votes.answers, counts, strict=True):
        leads = count == top
        np.copyto(found, answer, where=leads & (seen == wanted))
        seen += leads
    return found
