"""How often each answer was given, by either side, on every example of a block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answer

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
        return _each(first, second, last + 1, kind)
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


def _each(first: Answer, second: Answer, n_codes: int, kind: Any) -> Votes:
    room = np.empty((max(len(first), len(second)), first.shape[1]), dtype=bool)

    def counted(side: Answer, code: int) -> Counts:
        return _number(np.equal(side, code, out=room[: len(side)]), kind)

    return Votes(
        list(range(n_codes)),
        [counted(first, code) for code in range(n_codes)],
        [counted(second, code) for code in range(n_codes)],
        len(first),
        len(second),
    )


def _number(given: NDArray[np.bool_], kind: Any) -> Counts:
    """How many members, over rows that stand one after another in memory."""
    number: Counts = np.add.reduce(given.view(np.uint8), axis=0, dtype=kind)
    return number
