"""A table of paired rates: both models, their shift and excess, and what limits them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

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


def without_limits(e: RateEstimate) -> RateEstimate:
    """The estimates alone, where nothing can be said about their precision."""
    nothing = np.full(len(e.n), np.nan)

    def no_limits(alpha: float | Floats) -> Limits:
        missing = np.full(np.broadcast_shapes(np.shape(alpha), nothing.shape), np.nan)
        return missing, missing

    return replace(
        e,
        p_value=nothing,
        excess_p=nothing,
        baseline_limits=no_limits,
        compressed_limits=no_limits,
        limits=no_limits,
        excess_limits=no_limits,
        interval=None,
    )
