"""What retraining alone gives: two populations compared for many choices of their members."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.exemplars.selection import Selection
from fairweight.auditing.exemplars.votes import (
    TieRule,
    Votes,
    distinct_answers,
    modal,
    scale_of,
    taxicab,
)
from fairweight.auditing.intervals.bootstrap import exceedance_p
from fairweight.auditing.pairing import (
    FEWEST_MEMBERS,
    FEWEST_RELABELLINGS,
    MOST_SPLITS,
    Pairing,
    pair_members,
    regroupings,
    sign_flips,
)
from fairweight.auditing.prediction_matrix import Answer, Answers
from fairweight.base.streams import stream
from fairweight.base.types import Floats
from fairweight.tables.companions import parents

MOST_EXAMPLES = 20_000  # beyond this many with any disagreement, a random part stands for all
DRAWS, EXAMPLES = 250, 512  # at a time: a few megabytes per distinct answer


@dataclass(frozen=True)
class Disputed:
    """The examples on which members disagree; on the others no choice of members differs."""

    prediction: Answer  # (members, m): the baseline's first
    weight: Floats  # (m,): what share of all examples each stands for
    correct: Floats  # (m,): share of the baseline's members that are right
    sampled: bool


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


# What retraining alone would make of these counts: dense against dense, and relabelled members.
#
# A picture beside every count, never a veto. The number of exemplars depends on how many members
# vote, so the floor is compared with `matched`: as many dense and compressed members as the splits
# have on their two sides.

FEWEST_FOR_MEAN = 4  # two halves of two; limits need a few more splits
TAIL = 0.025


@dataclass(frozen=True)
class RetrainingContext:
    """What one count is compared with; NaN where there is nothing to compare with."""

    floor: float = np.nan  # share of exemplars, dense against dense: the mean over splits
    floor_low: float = np.nan
    floor_high: float = np.nan
    matched: float = np.nan  # the same, dense against compressed at the sizes of the splits
    p_retraining: float = np.nan
    accuracy: float = np.nan  # the baseline's on the exemplars of dense against dense


@dataclass(frozen=True)
class RedrawnComparisons:
    """All redrawn comparisons of one variant; None where there are too few members."""

    splits: Redrawn | None  # dense against dense
    matched: Redrawn | None
    relabelled: Redrawn | None  # the members as they are come first
    limits: bool  # whether there are splits enough for limits
    reasons: tuple[str, ...]  # why something is missing
    sampled: bool

    def context(self, chosen: Selection) -> RetrainingContext:
        """What the number of exemplars of a set is compared with.

        For a percentile, whose number is fixed, the share is of examples at least as far apart as
        the cut: that of the populations for p, that of the matched sizes for the floor.

        For p every exemplar weighs as much as its squared distance. By number alone nothing would
        be found: where ten members change all their answers, a majority stays one when four of
        them change sides, and so do its exemplars.
        """
        found: dict[str, float] = {}
        kind, cut, threshold = chosen.kind, np.nan, np.nan
        if chosen.cut is not None:
            # Fillers have no distance: the cut among those that differ is the smallest there is.
            threshold = max(chosen.cut.threshold, 1.0)
        if self.splits is not None and self.matched is not None:
            if chosen.percentile is not None:
                # The furthest distance beyond which the share asked for lies, on average.
                held = self.matched.exemplars.distance.mean(axis=0)
                beyond = np.cumsum(held[::-1])[::-1]
                far = np.flatnonzero(beyond >= (100 - chosen.percentile) / 100 - 1e-12)
                cut = float(max(far[-1] if len(far) else 1, 1))
            share = self.splits.exemplars.of(kind, cut)
            found["floor"] = float(share.mean())
            found["matched"] = float(self.matched.exemplars.of(kind, cut).mean())
            if share.sum() > 0:
                right = self.splits.correct.of(kind, cut)
                found["accuracy"] = float(right.sum() / share.sum())
            if self.limits:
                low, high = np.quantile(share, [TAIL, 1 - TAIL])
                found |= {"floor_low": float(low), "floor_high": float(high)}
        if self.relabelled is not None and not (chosen.cut is not None and np.isnan(threshold)):
            force = self.relabelled.force.of(kind, threshold)
            found["p_retraining"] = float(exceedance_p(force[0], force[1:], two_sided=False))
        return RetrainingContext(**found)


def retraining(
    answers: Answers, variant: str, correct: Floats, rule: TieRule, random_state: int
) -> RedrawnComparisons:
    """Redraw the members of one comparison in every way that their numbers allow."""
    first, second = answers.of(answers.baseline), answers.of(variant)
    rng = partial(stream, random_state, variant, answers.task or "")
    examples = disputed(first, second, correct, rng("exemplars disputed examples"))
    n_first, n_second = len(first), len(second)
    pairing = pair_members(
        answers.members[answers.rows(answers.baseline)],
        answers.members[answers.rows(variant)],
        parents(answers.variants_table),
    )
    reasons = []
    splits = matched = relabelled = None
    if n_first >= FEWEST_FOR_MEAN:
        sizes = matched_sizes(n_first, n_second)
        one, other = dense_splits(n_first, *sizes, rng("exemplars splits"))
        # Children stand for their parents, so that nobody is compared with a parent, as no member
        # of a split is compared with itself; members that belong to nobody are drawn.
        if one_to_one(pairing, n_first):
            compressed = other[:, pairing.parent]
        else:
            draw, size = rng("exemplars matched"), int(other[0].sum())
            drawn = [tuple(draw.permutation(n_second)[:size]) for _ in other]
            compressed = _sets(drawn, n_second)
        compressed = np.pad(compressed, ((0, 0), (n_first, 0)))
        one, other = (np.pad(side, ((0, 0), (0, n_second))) for side in (one, other))
        splits = redrawn(examples, one, other, rule, rng("exemplars ties of splits"))
        matched = redrawn(examples, one, compressed, rule, rng("exemplars ties of matched"))
    else:
        told = "1 baseline member" if n_first == 1 else f"{n_first} baseline members"
        reasons.append(f"no noise floor: {told}, {FEWEST_FOR_MEAN} are needed")
    chosen = relabellings(pairing, n_first, n_second, rng("exemplars relabelling"))
    if isinstance(chosen, str):
        reasons.append(f"no p_retraining: {chosen}")
    else:
        relabelled = redrawn(examples, chosen, ~chosen, rule, rng("exemplars ties of relabelling"))
    return RedrawnComparisons(
        splits,
        matched,
        relabelled,
        n_first >= FEWEST_MEMBERS,
        tuple(reasons),
        examples.sampled,
    )


def matched_sizes(n_first: int, n_second: int) -> tuple[int, int]:
    """Sizes of two disjoint sets of baseline members, in the ratio of the populations.

    >>> matched_sizes(10, 10), matched_sizes(5, 5), matched_sizes(10, 5), matched_sizes(4, 1)
    ((5, 5), (2, 2), (6, 3), (3, 1))
    """
    second = max(1, n_first * n_second // (n_first + n_second))
    first = min(n_first - second, max(1, round(second * n_first / n_second)))
    return first, second


def dense_splits(
    n: int, n_first: int, n_second: int, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Two disjoint sets of the baseline's n members: every pair of sets, or 200 random ones.

    >>> one, other = dense_splits(4, 2, 2, np.random.default_rng(0))
    >>> len(one), bool((one & other).any())
    (6, False)
    """
    if comb(n, n_first) * comb(n - n_first, n_second) <= MOST_SPLITS:
        chosen = [
            (one, other)
            for one in combinations(range(n), n_first)
            for other in combinations([m for m in range(n) if m not in one], n_second)
        ]
    else:
        found: dict[tuple[tuple[int, ...], tuple[int, ...]], None] = {}
        while len(found) < MOST_SPLITS:
            order = [int(m) for m in rng.permutation(n)[: n_first + n_second]]
            found[tuple(sorted(order[:n_first])), tuple(sorted(order[n_first:]))] = None
        chosen = list(found)
    return _sets([one for one, _ in chosen], n), _sets([other for _, other in chosen], n)


def one_to_one(pairing: Pairing, n_first: int) -> bool:
    """Whether every baseline member has exactly one compressed one of its own."""
    return pairing.paired and sorted(pairing.parent.tolist()) == list(range(n_first))


def relabellings(
    pairing: Pairing, n_first: int, n_second: int, rng: np.random.Generator
) -> NDArray[np.bool_] | str:
    """Who stands for the baseline, (draws, members), as observed first; or why this cannot be.

    Children change places with their parents (equal seeds with equal seeds); members that belong
    to nobody are dealt out anew.
    """
    if pairing.paired and not one_to_one(pairing, n_first):
        return "members and parents are not one to one"
    if pairing.paired:
        flipped = sign_flips(n_first, rng)
        chosen = np.hstack([~flipped, flipped[:, pairing.parent]])
    else:
        chosen = regroupings(n_first, n_second, rng)
    if len(chosen) + 1 < FEWEST_RELABELLINGS:
        return f"{len(chosen) + 1} ways to relabel members, {FEWEST_RELABELLINGS} are needed"
    return np.vstack([np.arange(n_first + n_second) < n_first, chosen])


def _sets(members: list[tuple[int, ...]], size: int) -> NDArray[np.bool_]:
    """Sets of members as rows of truth values."""
    made = np.zeros((len(members), size), dtype=bool)
    for row, chosen in zip(made, members, strict=True):
        row[list(chosen)] = True
    return made
