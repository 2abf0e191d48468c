"""Which variants are far from others that lie together: they are not drawn towards each other.

One model that collapsed says nothing about how far the good ones differ. Shrunk together with them
it would make their true spread look large, and the leader among equals look sure.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats

FAR = 5.0  # standard deviations of those that lie together, or of the noise if that is more


def neighbourhoods(values: Floats, error: Floats) -> Iterator[NDArray[np.intp]]:
    """Places of variants that lie together, the lowest values first.

    Sorted values are cut where the gap between two parts is large beside the spread within one of
    them, again and again. One normal distribution is hardly ever cut.

    Parameters
    ----------
    values
        Estimates, (V,).
    error
        Errors of replicates that draw the same examples for all variants, (R, V).

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((500, 5))
    >>> [part.tolist() for part in neighbourhoods(np.array([0.0, 9.0, 0.5, 10.0, 9.5]), noise)]
    [[0, 2], [1, 4, 3]]
    """
    order = np.argsort(values, kind="stable")
    noise = np.diff(error[:, order], axis=1).std(axis=0)
    yield from _cut(order, values[order], noise)


def _cut(places: NDArray[np.intp], values: Floats, noise: Floats) -> Iterator[NDArray[np.intp]]:
    """Parts of sorted values; `noise` is that of the difference of neighbours."""
    gaps = np.diff(values)
    inside = np.minimum(_spreads(values)[:-1], _spreads(values[::-1])[::-1][1:])
    excess = gaps - FAR * np.maximum(inside, noise)
    if len(values) < 3 or not (excess > 0).any():
        yield places
        return
    at = int(excess.argmax()) + 1
    yield from _cut(places[:at], values[:at], noise[: at - 1])
    yield from _cut(places[at:], values[at:], noise[at:])


def _spreads(values: Floats) -> Floats:
    """Standard deviation of the first 1, 2, … values; without end where there is only one."""
    count = np.arange(1, len(values) + 1)
    centred = values - values.mean()
    squares = np.cumsum(centred**2) - np.cumsum(centred) ** 2 / count
    found: Floats = np.sqrt(np.maximum(squares, 0.0) / np.maximum(count - 1, 1))
    found[:1] = np.inf
    return found
