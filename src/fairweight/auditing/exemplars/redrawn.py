"""The comparison of two populations again, for many choices of who stands on either side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answer
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.distance import scale_of, taxicab
from fairweight.auditing.exemplars.modal import TieRule, modal
from fairweight.auditing.exemplars.votes import Votes, distinct_answers

MOST_EXAMPLES = 20_000  # beyond this many with any disagreement, a random part stands for all
DRAWS, EXAMPLES = 250, 512  # at a time: a few megabytes per distinct answer


@dataclass(frozen=True)
class Disputed:
    """The examples on which members disagree; on the others no choice of members differs."""

    prediction: Answer  # (members, m): the baseline's first
    weight: Floats  # (m,): what share of all examples each stands for
    correct: Floats  # (m,): share of the baseline's members that are right
    sampled: bool

    @property
    def n_members(self) -> int:
        return len(self.prediction)


def disputed(first: Answer, second: Answer, correct: Floats, rng: np.random.Generator) -> Disputed:
    """The examples on which not all members of both sides agree, or a random part of them."""
    n = first.shape[1]
    agree = np.ones(n, dtype=bool)
    for row in (*first[1:], *second):
        agree &= row == first[0]
    places = np.flatnonzero(~agree)
    found = len(places)
    if sampled := found > MOST_EXAMPLES:
        places = np.sort(rng.choice(places, MOST_EXAMPLES, replace=False))
    weight = np.full(len(places), found / (max(len(places), 1) * n))
    block = np.concatenate([first[:, places], second[:, places]])
    return Disputed(block, weight, correct[places], sampled)


@dataclass(frozen=True)
class Shares:
    """Of every draw, a share of all examples: at each distance, and of the other kinds."""

    distance: Floats  # (draws, 2 · scale + 1)
    modal: Floats  # (draws,)
    unanimous: Floats

    def of(self, kind: str, threshold: float = np.nan) -> Floats:
        """The share of exemplars; of a distance, those at the threshold or further."""
        if kind == "modal":
            return self.modal
        if kind == "unanimous":
            return self.unanimous
        beyond: Floats = self.distance[:, round(threshold) :].sum(axis=1)
        return beyond


@dataclass(frozen=True)
class Redrawn:
    """What many choices of members find."""

    scale: int
    exemplars: Shares
    correct: Shares  # the same, times how often the baseline's members are right there
    force: Shares  # the same, times the square of the distance (as a share of the largest)


def redrawn(
    examples: Disputed,
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    rule: TieRule,
    rng: np.random.Generator,
) -> Redrawn:
    """Compare the members of `first` with those of `second`, (draws, members) each.

    Every draw has equally many members on the first side, and on the second.
    """
    n_first, n_second = int(first[0].sum()), int(second[0].sum())
    scale = scale_of(n_first, n_second)
    levels = 2 * scale + 1
    shapes = (len(first), levels), (len(first),), (len(first),)
    found = Shares(*(np.zeros(shape) for shape in shapes))
    correct = Shares(*(np.zeros(shape) for shape in shapes))
    force = Shares(*(np.zeros(shape) for shape in shapes))
    for start in range(0, examples.prediction.shape[1], EXAMPLES):
        here = slice(start, start + EXAMPLES)
        block, weight = examples.prediction[:, here], examples.weight[here]
        given = [
            (place, answer, members.astype(np.float32))
            for place, answer, members in distinct_answers(block.copy())
        ]
        right = examples.correct[here] * weight
        for begin in range(0, len(first), DRAWS):
            draws = slice(begin, begin + DRAWS)
            votes = votes_of_draws(
                given, first[draws], second[draws], n_first, n_second, len(weight)
            )
            level = taxicab(votes).astype(np.int64)
            modes = modal(votes, rule, rng)
            for shares, each in ((found, weight), (correct, right)):
                shares.distance[draws] += _by_level(level, each, levels)
                shares.modal[draws] += modes.exemplar @ each
                shares.unanimous[draws] += modes.unanimous @ each
            squared = (level / (2 * scale)) ** 2
            force.modal[draws] += (modes.exemplar * squared) @ weight
            force.unanimous[draws] += (modes.unanimous * squared) @ weight
    force.distance[:] = found.distance * (np.arange(levels) / (2 * scale)) ** 2
    return Redrawn(scale, found, correct, force)


def votes_of_draws(
    given: list[tuple[NDArray[np.intp], Answer, NDArray[np.float32]]],
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    n_first: int,
    n_second: int,
    n: int,
) -> Votes:
    """Votes of many draws at once, as matrix products."""
    votes = Votes([], [], [], n_first, n_second)
    sides = first.astype(np.float32), second.astype(np.float32)
    for place, answer, members in given:
        whole = np.full(n, np.iinfo(answer.dtype).max, dtype=answer.dtype)
        whole[place] = answer
        votes.answers.append(whole)
        for weights, held in zip(sides, (votes.first, votes.second), strict=True):
            if len(place) == n:
                held.append(weights @ members)
                continue
            count = np.zeros((len(weights), n), dtype=np.float32)
            count[:, place] = weights @ members
            held.append(count)
    return votes


def _by_level(level: NDArray[np.int64], weight: Floats, levels: int) -> Floats:
    """Weights summed by draw and level."""
    draws = len(level)
    key = (level + levels * np.arange(draws)[:, None]).ravel()
    summed = np.bincount(key, np.broadcast_to(weight, level.shape).ravel(), draws * levels)
    return summed.astype(np.float64).reshape(draws, levels)
