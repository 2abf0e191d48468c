"""A table of paired rates: both models, their shift and excess, and what limits them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.slots import Slots
from fairweight.auditing.counts.stats import Floats

Limits: TypeAlias = tuple[Floats, Floats]


@dataclass(frozen=True)
class RateEstimate:
    """Arrays over the rows of `slots`; limits are functions, so that any level can be asked for."""

    slots: Slots
    n: Floats
    n_clusters: Floats  # NaN without clusters
    baseline: Floats
    compressed: Floats
    shift: Floats
    p_value: Floats
    zero_p: Floats  # the smallest level at which `limits` exclude 0
    excess: Floats
    excess_p: Floats
    discordance: Floats
    design_effect: Floats
    baseline_limits: Callable[[float | Floats], Limits]
    compressed_limits: Callable[[float | Floats], Limits]
    limits: Callable[[float | Floats], Limits]
    excess_limits: Callable[[float], Limits]
    interval: str | None
    members: Floats  # (members, rows): every member's own rate
    assumed: NDArray[np.bool_] | None = None  # rows that take from others how changes clump

    @property
    def intervals(self) -> NDArray[np.object_] | str | None:
        """What the limits of each row are, and what they assume."""
        if self.interval is None or self.assumed is None:
            return self.interval
        longer = f"{self.interval}; assumes losses clump here as elsewhere"
        return np.where(self.assumed, longer, self.interval).astype(object)


def limits_where(
    rows: NDArray[np.bool_], limits: Callable[[float | Floats], Limits] | None
) -> Callable[[float | Floats], Limits]:
    """The limits of some rows, NaN of all others; of none, where there are no limits."""

    def at(alpha: float | Floats) -> Limits:
        if limits is None:
            missing = np.full(np.broadcast_shapes(np.shape(alpha), rows.shape), np.nan)
            return missing, missing
        low, high = limits(alpha)
        return np.where(rows, low, np.nan), np.where(rows, high, np.nan)

    return at


def without_limits(e: RateEstimate) -> RateEstimate:
    """The estimates alone, where nothing can be said about their precision."""
    nothing = np.full(len(e.n), np.nan)
    no_limits = limits_where(np.zeros(len(e.n), dtype=bool), None)
    return replace(
        e,
        p_value=nothing,
        zero_p=nothing,
        excess_p=nothing,
        baseline_limits=no_limits,
        compressed_limits=no_limits,
        limits=no_limits,
        excess_limits=no_limits,
        interval=None,
    )
