"""The chance of every example to be an exemplar, over many choices of who stands on either side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answer
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.distance import scale_of, taxicab
from fairweight.auditing.exemplars.modal import TieRule, modal
from fairweight.auditing.exemplars.redrawn import votes_of_draws
from fairweight.auditing.exemplars.votes import distinct_answers

EXAMPLES = 512  # at a time: a few megabytes per distinct answer


@dataclass(frozen=True)
class Definition:
    """A definition of exemplars: a kind, and the percentile of its cut where it has one."""

    kind: str  # modal, unanimous, taxicab, jaccard
    percentile: float = math.nan

    @property
    def by_distance(self) -> bool:
        return not math.isnan(self.percentile)


def chances(
    prediction: Answer,
    n_examples: int,
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    definitions: Sequence[Definition],
    rule: TieRule,
    rng: np.random.Generator,
) -> Floats:
    """Mean over draws of being an exemplar, (definitions, examples given).

    Ties at a percentile's cut count with the chance that a draw among them would take them, which
    is what random draws come to on average.

    Parameters
    ----------
    prediction
        (members, examples about which anybody differs).
    n_examples
        All examples, with those about which nobody differs: a percentile is a share of them.
    first, second
        (draws, members): who stands on either side, equally many in every draw.
    """
    n_first, n_second = int(first[0].sum()), int(second[0].sum())
    levels = 2 * scale_of(n_first, n_second) + 1
    draws, size = len(first), prediction.shape[1]
    level = np.zeros((draws, size), dtype=np.min_scalar_type(levels))
    found = np.zeros((len(definitions), size))
    for start in range(0, size, EXAMPLES):
        here = slice(start, start + EXAMPLES)
        block = prediction[:, here].copy()
        given = [
            (place, answer, members.astype(np.float32))
            for place, answer, members in distinct_answers(block.copy())
        ]
        votes = votes_of_draws(given, first, second, n_first, n_second, block.shape[1])
        level[:, here] = taxicab(votes)
        if all(one.by_distance for one in definitions):
            continue
        modes = modal(votes, rule, rng)
        for row, one in enumerate(definitions):
            if not one.by_distance:
                mask = modes.exemplar if one.kind == "modal" else modes.unanimous
                found[row, here] = mask.mean(axis=0)
    if not any(one.by_distance for one in definitions):
        return found
    number = np.stack([np.bincount(row, minlength=levels) for row in level])
    for row, one in enumerate(definitions):
        if one.by_distance:
            wanted = math.floor(n_examples * (100 - one.percentile) / 100 + 1e-9)
            taken = taken_at(number, wanted)
            found[row] = np.take_along_axis(taken, level.astype(np.intp), axis=1).mean(axis=0)
    return found


def taken_at(number: NDArray[np.integer], wanted: int) -> Floats:
    """The share of the examples at every distance that a cut takes, from the furthest on.

    Parameters
    ----------
    number
        (draws, distances): how many examples lie at each distance; those at 0 are never taken.
    wanted
        How many are asked for.

    Examples
    --------
    Two at distance 4, five at 2: asked for four, both of the first and 2/5 of the others.

    >>> taken_at(np.array([[9, 0, 5, 0, 2]]), 4).tolist()
    [[0.0, 0.0, 0.4, 1.0, 1.0]]
    """
    from_here = np.cumsum(number[:, ::-1], axis=1)[:, ::-1]
    left = wanted - (from_here - number)
    taken: Floats = np.where(
        number > 0, np.clip(left / np.maximum(number, 1), 0.0, 1.0), left > 0
    ).astype(np.float64)
    taken[:, 0] = 0.0
    return taken
