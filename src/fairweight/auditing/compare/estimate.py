"""A table of paired rates: both models, their shift and excess, and what limits them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

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
    baseline_limits: Callable[[float], Limits]
    compressed_limits: Callable[[float], Limits]
    limits: Callable[[float | Floats], Limits]
    excess_limits: Callable[[float], Limits]
    interval: str
