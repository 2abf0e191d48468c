"""Single parts of an audit, called as the audit calls them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.estimands import Estimand, estimands
from fairweight.auditing.compare.estimate import Block
from fairweight.auditing.compare.harm import heterogeneity as heterogeneity_of
from fairweight.auditing.compare.replicates import Replicated, replicate
from fairweight.auditing.compare.rows import Built, build, drawn_rows, rates
from fairweight.auditing.metrics.registry import metric

from .latent import Floats


def rate(c: Comparison, name: str, kind: str) -> Built:
    """The rows of one rate and kind, with intervals, tests and corrections."""
    (family,) = rates(c, [(metric(name), kind)])
    assert family is not None
    return Built(family, "model", build(c, family))


def heterogeneity(c: Comparison, name: str = "heterogeneity") -> float:
    """p of the only group column; `heterogeneity_within_classes` likewise."""
    families = heterogeneity_of(c, [rate(c, "accuracy", "group")])
    p = {family.metric.name: family.compressed.p for family, _ in families}[name]
    assert p is not None
    return float(p[0])


def chosen(c: Comparison, wanted: Sequence[tuple[str, str]]) -> list[Estimand]:
    """What is drawn of these metrics and kinds, in this order."""
    made = {(q.metric.name, q.slots.kind): q for q in estimands(c, None)}
    return [made[key] for key in wanted]


def replicated(c: Comparison, wanted: Sequence[Estimand]) -> list[Replicated]:
    assert all(q.evaluate is not None for q in wanted)
    return replicate(c, wanted)


def value_block(c: Comparison, estimand: Estimand, found: Replicated) -> Block:
    """The rows of one estimand that is drawn, about these models."""
    return next(drawn_rows(c, [[(estimand, found)]]))


def covers(low: Floats, truth: Floats, high: Floats) -> Floats:
    """1 where the limits hold the truth, 0 where not, NaN where there are none."""
    slack = 1e-9
    inside = (low <= truth + slack) & (truth - slack <= high)
    return np.where(np.isnan(low) | np.isnan(high), np.nan, inside.astype(float))
