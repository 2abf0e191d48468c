"""Single parts of an audit, called as the audit calls them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.estimands import Quantity, quantities
from fairweight.auditing.compare.estimate import Block
from fairweight.auditing.compare.harm import heterogeneity_rows
from fairweight.auditing.compare.replicates import Replicated, replicate
from fairweight.auditing.compare.rows import RateRows, family_blocks, rate_block, rates
from fairweight.auditing.metrics.registry import metric

from .latent import Floats


def rate(c: Comparison, name: str, kind: str) -> RateRows:
    """The rows of one rate and kind, with intervals, tests and corrections."""
    estimate = rates(c, metric(name), kind)
    assert estimate is not None
    return RateRows(name, "model", rate_block(c, metric(name), estimate, {}), estimate)


def heterogeneity(c: Comparison, name: str = "heterogeneity") -> float:
    """p of the only group column; `heterogeneity_within_classes` likewise."""
    blocks = {str(b["metric"][0]): b for b in heterogeneity_rows(c, [rate(c, "accuracy", "group")])}
    return float(blocks[name]["p_value"][0])


def chosen(c: Comparison, wanted: Sequence[tuple[str, str]]) -> list[Quantity]:
    """The bootstrapped quantities with these metrics and kinds, in this order."""
    made = {(q.metric, q.slots.kind): q for q in quantities(c, None)}
    return [made[key] for key in wanted]


def replicated(c: Comparison, wanted: Sequence[Quantity]) -> list[Replicated]:
    assert all(q.evaluate is not None for q in wanted)
    return replicate(c, wanted)


def value_block(c: Comparison, quantity: Quantity, found: Replicated) -> Block:
    """The rows of one bootstrapped quantity, about these models."""
    return next(family_blocks(c, [(quantity, found)]))


def covers(low: Floats, truth: Floats, high: Floats) -> Floats:
    """1 where the limits hold the truth, 0 where not, NaN where there are none."""
    slack = 1e-9
    inside = (low <= truth + slack) & (truth - slack <= high)
    return np.where(np.isnan(low) | np.isnan(high), np.nan, inside.astype(float))
