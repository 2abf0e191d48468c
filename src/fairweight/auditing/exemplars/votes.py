"""How often each answer was given, by either side, on every example of a block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from math import gcd, lcm
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairweight.auditing.prediction_matrix import Answer, Answers
from fairweight.base.types import Floats, Mask
from fairweight.errors import InputError, UnknownNameError

Counts: TypeAlias = NDArray[Any]  # whole numbers, as unsigned integers or as floats

FEW = 32  # answers up to which counting each of them is quicker than finding those that were given


@dataclass(frozen=True)
class Votes:
    """The distinct answers in ascending order, and how many members of either side gave them.

    Entry j of the lists speaks of the j-th answer: a code for all examples, or one for each.
    """

    answers: list[int | Answer]  # scalars or (n,)
    first: list[Counts]  # (…, n): members of the baseline
    second: list[Counts]  # (…, n): members of the compressed variant
    n_first: int
    n_second: int


def count_votes(first: Answer, second: Answer) -> Votes:
    """Votes of two sides, (members, n) each, without an array of examples × classes.

    >>> votes = count_votes(np.array([[0, 1], [0, 2]], np.uint8), np.array([[1, 2]], np.uint8))
    >>> [count.tolist() for count in votes.first], [count.tolist() for count in votes.second]
    ([[2, 0], [0, 1], [0, 1]], [[0, 0], [1, 0], [0, 1]])
    """
    kind = np.uint8 if max(len(first), len(second)) < 2**8 else np.uint32
    if first.shape[1] == 0:
        return Votes([], [], [], len(first), len(second))
    if (last := int(max(first.max(), second.max()))) < FEW:
        room = np.empty((max(len(first), len(second)), first.shape[1]), dtype=bool)
        counts = [_few(answers, last, room[: len(answers)], kind) for answers in (first, second)]
        return Votes(list(range(last + 1)), counts[0], counts[1], len(first), len(second))
    votes = Votes([], [], [], len(first), len(second))
    n = first.shape[1]
    for place, answer, given in distinct_answers(np.concatenate([first, second])):
        whole = np.full(n, np.iinfo(answer.dtype).max, dtype=answer.dtype)
        whole[place] = answer
        votes.answers.append(whole)
        for side, rows in ((votes.first, given[: len(first)]), (votes.second, given[len(first) :])):
            count = np.zeros(n, dtype=kind)
            count[place] = _number(rows, kind)
            side.append(count)
    return votes


def distinct_answers(
    block: Answer,
) -> Iterator[tuple[NDArray[np.intp], Answer, NDArray[np.bool_]]]:
    """The smallest answer of every example, then the next, until none is left.

    Yields where there still is one (positions of examples), which it is, and which members gave
    it, (members, positions). `block` is (members, n) and is written over.
    """
    taken = np.iinfo(block.dtype).max  # no code is that large: abstentions come right after classes
    place = np.arange(block.shape[1])
    while True:
        answer: Answer = block.min(axis=0)
        left = answer != taken
        if not left.any():
            return
        if left.mean() < 0.75:  # copying costs less than looking at the finished ones again
            place, answer, block, left = place[left], answer[left], block[:, left], left[left]
        given = (block == answer) & left
        np.putmask(block, given, taken)
        yield place, answer, given


def _few(answers: Answer, last: int, room: NDArray[np.bool_], kind: Any) -> list[Counts]:
    """How many members gave each of the answers from 0 to `last`; `room` is written over.

    Two answers need not be looked for: they share the members that are left, and how many there are
    of the last follows from the sum of all answers, at half the cost of looking. Whole numbers wrap
    around, and no count is too large for its kind.
    """
    own = [_number(np.equal(answers, c, out=room), kind) for c in range(max(last - 1, 0))]
    left = np.full(answers.shape[1], len(answers), dtype=kind)
    left = reduce(np.subtract, own, left)
    if not last:
        return [left]
    above: Counts = np.add.reduce(answers, axis=0, dtype=kind) - kind(last - 1) * left
    for c, number in enumerate(own[1:], start=1):
        above -= kind(c) * number
    return [*own, left - above, above]


def _number(given: NDArray[np.bool_], kind: Any) -> Counts:
    """How many members, over rows that stand one after another in memory."""
    number: Counts = np.add.reduce(given.view(np.uint8), axis=0, dtype=kind)
    return number


# What most members of either side answer, and who wins where answers have equally many votes.

Rule: TypeAlias = Literal["disjoint", "max", "min", "negative", "random", "baseline"]
RULES: tuple[Rule, ...] = get_args(Rule)


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
    top = [reduce(np.maximum, side) for side in (votes.first, votes.second)]
    common, followed = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    leaders = [np.zeros(shape, dtype=np.uint8) for _ in top]
    for first, second in zip(votes.first, votes.second, strict=True):
        leads, follows = first == top[0], second == top[1]
        leaders[0] += leads.view(np.uint8)  # as it is: adding truth values would convert them
        leaders[1] += follows.view(np.uint8)
        followed |= leads & (second > 0)
        leads &= follows
        common |= leads
    undecided = (leaders[0] > 1) | (leaders[1] > 1)
    differs = ~common
    if rule.name != "disjoint":
        where = np.nonzero(undecided)  # elsewhere every rule says the same
        there = Votes(
            [a if isinstance(a, int) else a[where[-1]] for a in votes.answers],
            [count[where] for count in votes.first],
            [count[where] for count in votes.second],
            votes.n_first,
            votes.n_second,
        )
        differs[where] = _differs(
            there, rule, [t[where] for t in top], [c[where] for c in leaders], rng
        )
    return Modal(differs, ~followed, undecided)


def _differs(
    votes: Votes,
    rule: TieRule,
    top: list[Counts],
    leaders: list[NDArray[np.uint8]],
    rng: np.random.Generator,
) -> Mask:
    """Whether the two sides answer differently where votes are tied, by the rule."""
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


# How far apart two populations answer: the Taxicab distance, and Jaccard's from it.
#
# Distances are kept as whole numbers, so that ties at a cut are ties: with populations of n and m
# members, label counts are multiplied until both add up to lcm(n, m), the `scale`.


def scale_of(n_first: int, n_second: int) -> int:
    """What the label counts of either side add up to.

    >>> scale_of(10, 10), scale_of(10, 4)
    (10, 20)
    """
    return lcm(n_first, n_second)


def taxicab(votes: Votes) -> NDArray[Any]:
    """d_T = Σ_c |b_c − v_c| on label counts: even numbers from 0 to twice the scale.

    Source: Hooker et al., Characterising Bias in Compressed Models. For populations of equal size
    these are the paper's counts. For others b_c and v_c are first multiplied up to the scale;
    `per_member` divides by it.

    Examples
    --------
    Three dense members say cat, cat, dog; three compressed ones say dog, dog, dog:
    |2 − 0| + |1 − 3| = 4.

    >>> from fairweight.auditing.exemplars.votes import count_votes
    >>> cat, dog = 0, 1
    >>> votes = count_votes(np.array([[cat], [cat], [dog]], np.uint8), np.full((3, 1), dog, "u1"))
    >>> taxicab(votes).tolist()
    [4]
    """
    scale = scale_of(votes.n_first, votes.n_second)
    shared = gcd(votes.n_first, votes.n_second)
    times_first, times_second = votes.n_second // shared, votes.n_first // shared
    if not votes.first:
        return np.zeros(0, dtype=np.uint8)
    # Σ |b − v| = 2 (scale − Σ min(b, v)): two quick steps per class instead of three.
    narrow = votes.first[0].dtype.kind == "f" or (2 * scale < 2**8 and times_first == 1)
    kind: Any = votes.first[0].dtype if narrow else np.int64
    same = np.zeros(votes.first[0].shape, dtype=kind)
    for first, second in zip(votes.first, votes.second, strict=True):
        one = first if times_first == 1 else first.astype(kind) * times_first
        other = second if times_second == 1 else second.astype(kind) * times_second
        same += np.minimum(one, other)
    return 2 * (scale - same)


def per_member(distance: ArrayLike, scale: int) -> Floats:
    """Σ_c |b_c / N_b − v_c / N_v|, from 0 (the same votes) to 2 (no vote in common).

    >>> per_member([0, 4, 6], 3).tolist()
    [0.0, 1.3333333333333333, 2.0]
    """
    return np.asarray(distance, dtype=np.float64) / scale


def jaccard(distance: ArrayLike, scale: int) -> Floats:
    """Weighted Jaccard distance 1 − Σ min / Σ max = 2 d_T / (2 N + d_T), from 0 to 1.

    Source: Hooker et al. It rises with d_T, so it ranks examples alike. N is the scale: votes are
    multiplied up to equal sizes first, without which the identity would not hold.

    >>> jaccard([0, 4, 6], 3).tolist()  # of the example of `taxicab`: 1 − (0 + 1) / (2 + 3)
    [0.0, 0.8, 1.0]
    """
    d = np.asarray(distance, dtype=np.float64)
    found: Floats = 2 * d / (2 * scale + d)
    return found


# Two populations compared on every example, a block that fits the cache at a time.

BLOCK = 65_536  # examples; sixty members of one byte are four megabytes


@dataclass(frozen=True)
class Disagreement:
    """How two populations differ on every example, (n,) each."""

    distance: NDArray[Any]  # whole numbers, 0 to 2 · scale
    scale: int
    exemplar: Mask
    unanimous: Mask
    undecided: Mask


def disagreement(
    first: Answer, second: Answer, rule: TieRule, rng: np.random.Generator
) -> Disagreement:
    """Compare the baseline's answers with the compressed members', (members, n) each."""
    n = first.shape[1]
    scale = scale_of(len(first), len(second))
    distance = np.zeros(n, dtype=np.min_scalar_type(2 * scale))
    exemplar, unanimous, undecided = (np.zeros(n, dtype=bool) for _ in range(3))
    for start in range(0, n, BLOCK):
        here = slice(start, start + BLOCK)
        votes = count_votes(first[:, here], second[:, here])
        distance[here] = taxicab(votes)
        found = modal(votes, rule, rng)
        exemplar[here] = found.exemplar
        unanimous[here] = found.unanimous
        undecided[here] = found.undecided
    return Disagreement(distance, scale, exemplar, unanimous, undecided)
