"""Every number of an audit, as registered pure functions; importing this fills the registry."""

from __future__ import annotations

from fairweight.auditing.metrics import (
    agreement,
    amplification,
    change,
    groupings,
    rates,
    scores,
    spread,
    structure,
)
from fairweight.auditing.metrics.registry import (
    Event,
    Metric,
    metric,
    metrics,
    register,
    unregister,
)

__all__ = [
    "Event",
    "Metric",
    "agreement",
    "amplification",
    "change",
    "groupings",
    "metric",
    "metrics",
    "rates",
    "register",
    "scores",
    "spread",
    "structure",
    "unregister",
]
