"""What retraining alone would make of these counts: dense against dense, and relabelled members.

A picture beside every count, never a veto. The number of exemplars depends on how many members
vote, so the floor is compared with `matched`: as many dense and compressed members as the splits
have on their two sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.compare.pairing import Pairing, pair_members
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.modal import TieRule
from fairweight.auditing.exemplars.redrawn import Redrawn, disputed, redrawn
from fairweight.auditing.intervals.bootstrap import exceedance_p
from fairweight.auditing.intervals.retraining import (
    FEWEST_MEMBERS,
    FEWEST_RELABELLINGS,
    MOST_SPLITS,
    regroupings,
    sign_flips,
)
from fairweight.auditing.streams import stream
from fairweight.tables.parents import parents

FEWEST_FOR_MEAN = 4  # two halves of two; limits need a few more splits
TAIL = 0.025


@dataclass(frozen=True)
class Context:
    """What one count is compared with; NaN where there is nothing to compare with."""

    floor: float = np.nan  # share of exemplars, dense against dense: the mean over splits
    floor_low: float = np.nan
    floor_high: float = np.nan
    matched: float = np.nan  # the same, dense against compressed at the sizes of the splits
    p_retraining: float = np.nan
    accuracy: float = np.nan  # the baseline's on the exemplars of dense against dense


@dataclass(frozen=True)
class Retraining:
    """All redrawn comparisons of one variant; None where there are too few members."""

    splits: Redrawn | None  # dense against dense
    matched: Redrawn | None
    relabelled: Redrawn | None  # the members as they are come first
    limits: bool  # whether there are splits enough for limits
    reasons: tuple[str, ...]  # why something is missing
    sampled: bool

    def context(self, kind: str, percentile: float = np.nan, threshold: float = np.nan) -> Context:
        """What the number of exemplars of a kind is compared with.

        For a percentile, whose number is fixed, the share is of examples at least as far apart as
        the cut: that of the populations for p, that of the matched sizes for the floor.

        For p every exemplar weighs as much as its squared distance. By number alone nothing would
        be found: where ten members change all their answers, a majority stays one when four of
        them change sides, and so do its exemplars.
        """
        found: dict[str, float] = {}
        by_distance = not np.isnan(percentile)
        if self.splits is not None and self.matched is not None:
            cut = _cut(self.matched, percentile) if by_distance else np.nan
            share = self.splits.exemplars.of(kind, cut)
            found["floor"] = float(share.mean())
            found["matched"] = float(self.matched.exemplars.of(kind, cut).mean())
            if share.sum() > 0:
                right = self.splits.correct.of(kind, cut)
                found["accuracy"] = float(right.sum() / share.sum())
            if self.limits:
                low, high = np.quantile(share, [TAIL, 1 - TAIL])
                found |= {"floor_low": float(low), "floor_high": float(high)}
        if self.relabelled is not None and not (by_distance and np.isnan(threshold)):
            force = self.relabelled.force.of(kind, threshold)
            found["p_retraining"] = float(exceedance_p(force[0], force[1:], two_sided=False))
        return Context(**found)


def _cut(drawn: Redrawn, percentile: float) -> float:
    """The furthest distance beyond which, on average over draws, the share asked for lies."""
    held = drawn.exemplars.distance.mean(axis=0)
    beyond = np.cumsum(held[::-1])[::-1]
    far = np.flatnonzero(beyond >= (100 - percentile) / 100 - 1e-12)
    return float(max(far[-1] if len(far) else 1, 1))


def retraining(
    answers: Answers, variant: str, correct: Floats, rule: TieRule, random_state: int
) -> Retraining:
    """Redraw the members of one comparison in every way that their numbers allow."""
    first, second = answers.of(answers.baseline), answers.of(variant)

    def rng(purpose: str) -> np.random.Generator:
        return stream(random_state, variant, answers.task or "", f"exemplars {purpose}")

    examples = disputed(first, second, correct, rng("disputed examples"))
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
        one, other = dense_splits(n_first, *sizes, rng("splits"))
        compressed = _standing(pairing, other, n_second, rng("matched"))
        one, other = (_beside(side, after=n_second) for side in (one, other))
        splits = redrawn(examples, one, other, rule, rng("ties of splits"))
        matched = redrawn(
            examples, one, _beside(compressed, before=n_first), rule, rng("ties of matched")
        )
    else:
        told = "1 baseline member" if n_first == 1 else f"{n_first} baseline members"
        reasons.append(f"no noise floor: {told}, {FEWEST_FOR_MEAN} are needed")
    chosen = relabellings(pairing, n_first, n_second, rng("relabelling"))
    if isinstance(chosen, str):
        reasons.append(f"no p_retraining: {chosen}")
    else:
        relabelled = redrawn(examples, chosen, ~chosen, rule, rng("ties of relabelling"))
    return Retraining(
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


def _standing(
    pairing: Pairing, dense: NDArray[np.bool_], n_second: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """The compressed members that stand where `dense` ones stand, (draws, compressed members).

    Children stand for their parents, so that nobody is compared with a parent, as no member of a
    split is compared with itself; where members belong to nobody, they are drawn.
    """
    if one_to_one(pairing, dense.shape[1]):
        return dense[:, pairing.parent]
    size = int(dense[0].sum())
    return _sets([tuple(rng.permutation(n_second)[:size]) for _ in dense], n_second)


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


def _beside(chosen: NDArray[np.bool_], *, before: int = 0, after: int = 0) -> NDArray[np.bool_]:
    return np.pad(chosen, ((0, 0), (before, after)))


def _sets(members: list[tuple[int, ...]], size: int) -> NDArray[np.bool_]:
    made = np.zeros((len(members), size), dtype=bool)
    for row, chosen in zip(made, members, strict=True):
        row[list(chosen)] = True
    return made
