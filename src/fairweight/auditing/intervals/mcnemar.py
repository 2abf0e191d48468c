"""McNemar's test: did one of two models win more of the examples on which they disagree?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from fairweight.auditing.counts.stats import Floats


def mcnemar(base_only: ArrayLike, compressed_only: ArrayLike, *, exact: bool = False) -> Floats:
    """Two-sided p-value that both kinds of discordant pair are equally likely.

    With m discordant pairs and X ~ Binomial(m, 1/2), k the rarer kind: mid-p is
    2 P(X < k) + P(X = k); with `exact` it is 2 P(X <= k), at most 1. Identical predictions
    (m = 0) give 1. The mid-p keeps its level in all but contrived cases and is less wasteful.

    References
    ----------
    Fagerland, Lydersen & Laake (2013), BMC Medical Research Methodology 13:91.

    Examples
    --------
    Four losses, no gain: mid-p (1/2)⁴ = 0.0625, exact 2 (1/2)⁴ = 0.125.

    >>> mcnemar([4, 0, 3], [0, 0, 3]).tolist()
    [0.0625, 1.0, 1.0]
    >>> float(mcnemar(4, 0, exact=True))
    0.125
    """
    base = np.asarray(base_only, dtype=np.float64)
    compressed = np.asarray(compressed_only, dtype=np.float64)
    total = base + compressed
    rarer = np.minimum(base, compressed)
    below = _at_most(rarer - 1, total)
    up_to = _at_most(rarer, total)
    p = np.minimum(2 * up_to, 1.0) if exact else np.minimum(up_to + below, 1.0)
    return np.where(np.isnan(total), np.nan, np.where(total == 0, 1.0, p))


def _at_most(k: Floats, m: Floats) -> Floats:
    """P(X <= k) for X ~ Binomial(m, 1/2); 0 below 0 and 1 from m on."""
    inner = (k >= 0) & (k < m)
    tail = betainc(np.where(inner, m - k, 1.0), np.where(inner, k + 1, 1.0), 0.5)
    return np.where(inner, tail, np.where(k < 0, 0.0, 1.0))
