"""How far apart two populations answer: the Taxicab distance, and Jaccard's from it.

Distances are kept as whole numbers, so that ties at a cut are ties: with populations of n and m
members, label counts are multiplied until both add up to lcm(n, m), the `scale`.
"""

from __future__ import annotations

from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.votes import Counts, Votes


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
        same += np.minimum(_times(first, times_first, kind), _times(second, times_second, kind))
    return 2 * (scale - same)


def _times(count: Counts, factor: int, kind: Any) -> Counts:
    return count if factor == 1 else count.astype(kind) * factor


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
