"""Which of the candidates stand out on the discovery half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.explain.slices.candidates import Candidates
from fairweight.auditing.explain.slices.testing import SCREEN, distance, screened_p_values
from fairweight.auditing.intervals.correction import benjamini_hochberg


@dataclass(frozen=True)
class Discoveries:
    """One entry per candidate."""

    excess: Floats
    p: Floats  # of the excess over everyone else
    p_decisive: Floats  # of a pair: the largest of that and of its p within both parents
    parent: NDArray[np.int64]  # of a pair: 0 or 1, the parent it differs less clearly from; else −1
    order: NDArray[np.intp]  # those found, the least p first
    threshold: float  # the p up to which something was found; 0 if nothing was


def discoveries(found: Candidates, alpha: float) -> Discoveries:
    """Test every candidate and correct for all of them.

    Notes
    -----
    A single level is tested against everyone else. A pair must also differ from both of its
    parents, so its p in the family is the largest of three (an intersection–union test); the p of
    its excess alone is what it is ranked by.
    """
    everyone = distance(found.everyone)
    pairs = slice(found.n_single, None)
    apart = [distance(contrast) for contrast in found.parents]
    least = np.abs(everyone)
    for one in apart:
        least[pairs] = np.minimum(least[pairs], np.abs(one))
    worth = least >= (SCREEN if alpha <= 0.05 else 0.0)
    p = screened_p_values(found.everyone, worth)
    within = np.array([screened_p_values(c, worth[pairs]) for c in found.parents])
    decisive = p.copy()
    parent = np.full(p.size, -1, dtype=np.int64)
    if len(within):
        parent[pairs] = np.argmax(within, axis=0)
        decisive[pairs] = np.maximum(decisive[pairs], within.max(axis=0))
    adjusted = benjamini_hochberg(decisive)
    passed = np.flatnonzero(adjusted <= alpha)
    # P-values have a floor, below which the distance ranks; of a level and its complement, which
    # have everything but the sign in common, the one that pays comes first.
    pays = everyone[passed] > 0
    order = passed[np.lexsort((pays, -np.abs(everyone[passed]).round(9), p[passed]))]
    threshold = float(decisive[passed].max()) if passed.size else 0.0
    return Discoveries(found.everyone.excess, p, decisive, parent, order, threshold)
