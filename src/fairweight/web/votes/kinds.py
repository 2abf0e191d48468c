"""What is kept of an example in single bits: kinds of exemplars, and how sure a side is."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

# The order is that of the pages: from the plainest definition to the strictest cut.
KINDS: Mapping[str, int] = {
    "modal": 1 << 0,
    "unanimous": 1 << 1,
    "taxicab-90": 1 << 2,
    "taxicab-95": 1 << 3,
    "taxicab-99": 1 << 4,
    "surrogate-90": 1 << 5,
    "surrogate-95": 1 << 6,
    "surrogate-99": 1 << 7,
}
UNSURE = 1 << 8  # the mean score is in the middle
SCORED = 1 << 9  # there is one
BITS = np.uint16


def kind_name(kind: str, percentile: float | None) -> str:
    """How a set of exemplars is called in a filter.

    >>> kind_name("modal", None), kind_name("taxicab", 95.0)
    ('modal', 'taxicab-95')
    """
    return kind if percentile is None else f"{kind}-{percentile:g}"


def kinds_in(bits: int) -> list[str]:
    """The kinds whose bits are set.

    >>> kinds_in(5)
    ['modal', 'taxicab-90']
    """
    return [name for name, bit in KINDS.items() if bits & bit]
