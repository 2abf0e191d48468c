"""Division that says when there is nothing to divide by."""

from __future__ import annotations

import numpy as np

from fairweight.auditing.counts.stats import Floats


def ratio(part: Floats, whole: Floats) -> Floats:
    """`part / whole`, NaN where `whole` is not above 0.

    >>> ratio(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, nan]
    """
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        quotient: Floats = np.asarray(part / whole)
    undefined = ~(whole > 0)
    return np.where(undefined, np.nan, quotient) if undefined.any() else quotient
