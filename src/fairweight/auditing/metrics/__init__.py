"""Every number of an audit, as registered pure functions; importing this fills the registry."""

from __future__ import annotations

# Importing a module registers its metrics; tables show them in this order.
# isort: off
from fairweight.auditing.metrics import rates, amplification, changes, gaps, scores, harm, outcomes

# isort: on
from fairweight.auditing.metrics.registry import (
    Event,
    Metric,
    confirmatory,
    metric,
    metrics,
    register,
    unregister,
)

__all__ = [
    "Event",
    "Metric",
    "amplification",
    "changes",
    "confirmatory",
    "gaps",
    "harm",
    "metric",
    "metrics",
    "outcomes",
    "rates",
    "register",
    "scores",
    "unregister",
]
