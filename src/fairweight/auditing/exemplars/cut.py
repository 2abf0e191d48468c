"""The examples that lie furthest apart: a share of them, ties drawn, none without a difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.modal import Mask
from fairweight.errors import InputError

Fill = Literal["random"]


@dataclass(frozen=True)
class Cut:
    """The exemplars of a percentile."""

    mask: Mask
    n_asked: int
    threshold: float  # the smallest value among those chosen; NaN where none is
    reason: str | None  # why there are fewer than asked for; None where there are not


def checked_percentiles(given: Sequence[float]) -> tuple[float, ...]:
    """Percentiles in ascending order, each once."""
    for value in given:
        if isinstance(value, bool) or not 0 < float(value) < 100:
            raise InputError(
                f"percentiles: {value!r} cannot be used; give numbers between 0 and 100, such as "
                "90, 95, 99."
            )
    return tuple(sorted({float(value) for value in given}))


def checked_fill(fill: str | None) -> Fill | None:
    if fill is None or fill == "random":
        return fill  # type: ignore[return-value]
    raise InputError(
        f"fill={fill!r} cannot be used; give 'random' (examples without any difference fill up "
        "what is missing, as Hooker's code does) or leave it out."
    )


def top_share(
    value: NDArray[Any], percentile: float, priority: Floats, fill: Fill | None = None
) -> Cut:
    """The share 1 − percentile / 100 of examples with the largest values, rounded down.

    Parameters
    ----------
    value
        (n,) from 0: how much differs.
    priority
        (n,) random numbers; among equal values the smallest come first. The same numbers at every
        percentile make the cuts nested.
    fill
        `"random"`: where fewer examples than asked for differ at all, take others at random.

    Examples
    --------
    >>> found = top_share(np.array([0, 2, 4, 2, 0]), 40, np.array([0.1, 0.9, 0.5, 0.2, 0.3]))
    >>> found.mask.tolist(), found.n_asked, found.threshold
    ([False, True, True, True, False], 3, 2.0)
    >>> found = top_share(np.array([0, 2, 0, 0]), 50, np.array([0.1, 0.9, 0.5, 0.2]))
    >>> found.mask.tolist(), found.n_asked, found.reason
    ([False, True, False, False], 2, 'fewer than asked for: only 1 example differs at all')
    """
    n = len(value)
    wanted = math.floor(n * (100 - percentile) / 100 + 1e-9)
    if wanted == 0:
        told = f"too few examples for a percentile of {percentile:g}"
        return Cut(np.zeros(n, dtype=bool), 0, math.nan, told)
    edge = np.partition(value, n - wanted)[n - wanted]
    mask: Mask = value > edge
    above = int(np.count_nonzero(mask))
    reason = None
    if edge > 0:
        mask[_first(np.flatnonzero(value == edge), priority, wanted - above)] = True
    elif above < wanted:
        verb = "example differs" if above == 1 else "examples differ"
        reason = f"only {above:,} {verb} at all" if above else "no example differs"
        if fill == "random":
            mask[_first(np.flatnonzero(value == 0), priority, wanted - above)] = True
            reason = f"filled at random: {reason}"
        else:
            reason = f"fewer than asked for: {reason}"
    chosen = value[mask]
    return Cut(mask, wanted, float(chosen.min()) if len(chosen) else math.nan, reason)


def _first(places: NDArray[np.intp], priority: Floats, number: int) -> NDArray[np.intp]:
    if number >= len(places):
        return places
    return places[np.argpartition(priority[places], number)[:number]]
