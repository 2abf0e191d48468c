"""Two populations compared on every example, a block that fits the cache at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answer
from fairweight.auditing.exemplars.distance import scale_of, taxicab
from fairweight.auditing.exemplars.modal import Mask, TieRule, modal
from fairweight.auditing.exemplars.votes import count_votes

BLOCK = 32_768  # examples; sixty members of one byte are two megabytes


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
    distance = np.zeros(n, dtype=_narrowest(2 * scale))
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


def _narrowest(largest: int) -> Any:
    return np.uint8 if largest < 2**8 else np.uint16 if largest < 2**16 else np.uint32
