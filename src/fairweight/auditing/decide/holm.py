"""Holm's step-down correction on limits that are known at a few levels only."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.result import DIVISORS


def divisor(endpoints: int) -> int | None:
    """The least available divisor of α that is not below `endpoints`; None beyond the last.

    A larger divisor means a wider limit, so rounding up never fails a model too easily.

    >>> [divisor(m) for m in (1, 4, 5, 11, 1000, 1001)]
    [1, 4, 6, 20, 1000, None]
    """
    at = bisect_left(DIVISORS, endpoints)
    return DIVISORS[at] if at < len(DIVISORS) else None


def rejected(strength: Sequence[int] | NDArray[np.int_]) -> NDArray[np.int_]:
    """At which divisor each endpoint is rejected; 0 where it is not.

    Parameters
    ----------
    strength
        The largest divisor of α at which the endpoint alone would be rejected; 0 for none. Every
        endpoint counts, so those that cannot be rejected are in it with 0.

    Notes
    -----
    The i-th strongest of m is compared at m − i + 1, and the first that does not hold ends it.

    Examples
    --------
    Three endpoints: 3 is needed first, then 2, then 1.

    >>> rejected([2, 4, 0]).tolist(), rejected([2, 2, 2]).tolist()
    ([2, 3, 0], [0, 0, 0])
    """
    found = np.zeros(len(strength), dtype=np.int_)
    order = np.argsort(-np.asarray(strength), kind="stable")
    for place, index in enumerate(order):
        needed = divisor(len(order) - place)
        if needed is None or strength[index] < needed:
            break
        found[index] = needed
    return found
