"""How far two models' class probabilities lie apart, where no label says who is right.

A divergence of every example is a numeric outcome of the pair: its mean, overall and by group, has
the limits of a ratio of sums. It is a distance, and never called a loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fairweight.auditing.compare.comparison import Comparison, groupings_of
from fairweight.auditing.compare.estimate import (
    Block,
    Estimate,
    Family,
    LimitsAt,
    joined,
    limits_where,
)
from fairweight.auditing.compare.flips import flip_families
from fairweight.auditing.compare.outcome import ratio_family
from fairweight.auditing.compare.rows import build
from fairweight.auditing.counts.cube import OutcomeCells
from fairweight.auditing.metrics.changes import kl_divergence, total_variation
from fairweight.auditing.metrics.outcomes import KINDS
from fairweight.auditing.metrics.registry import Metric, metric
from fairweight.base.types import Floats, Limits
from fairweight.tables.spec import Better, OutcomeRole

NO_DISTRIBUTIONS = (
    "Scores of the predicted class alone do not say how far the models' probabilities lie apart; "
    "give those of every class (--scores 'p_*', or a list column scores)."
)


def distributions(c: Comparison) -> Floats | None:
    """Probabilities of the classes, (cells, members, classes), each summing to 1.

    Of two classes the score of one is enough; None where probabilities are not known.
    """
    scores = c.cube.scores
    if scores is None:
        return None
    vector = scores.vector
    if vector is None and scores.score is not None:
        seen = np.unique(c.cube.prediction)
        if (seen >= 0).sum() > 2:
            return None
        vector = np.stack([1 - scores.score, scores.score], axis=-1)
    if vector is None:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        whole: Floats = vector / vector.sum(axis=-1, keepdims=True)
    return whole


def divergence_rows(c: Comparison) -> Iterator[Block]:
    """Kullback–Leibler, total variation and agreement on the first choice, with their limits."""
    p = distributions(c)
    if p is None:
        return
    for entry, function in (
        (metric("total_variation"), total_variation),
        (metric("kl_divergence"), kl_divergence),
    ):
        pairs = [function(p[:, first], p[:, second]) for first, second in c.pairing.pairs]
        yield from _means(c, entry, np.mean(pairs, axis=0))
    entry = metric("first_choice_agreement")
    chosen = replace(c, cube=replace(c.cube, prediction=p.argmax(axis=-1).astype(np.int32)))
    for family, scope in flip_families(chosen):
        if family.metric.pairs == "changed" and family.slots.kind != "class":
            yield build(chosen, _agreement(family, entry), scope)


def _means(c: Comparison, entry: Metric, distance: Floats) -> Iterator[Block]:
    """The mean distance, overall and by group: a number that is 0 for the baseline itself."""
    span = (0.0, 1.0) if entry.high == 1 else None
    role = OutcomeRole(entry.name, Better.LOWER, binary=False, range=span)
    infinite = np.isinf(distance)
    of_members = np.repeat(np.where(infinite, 0.0, distance)[:, None], len(c.cube.members), axis=1)
    of_members[:, : c.n_baseline] = 0.0
    numeric = replace(c, cube=replace(c.cube, outcome=OutcomeCells(role, of_members)))
    for kind in KINDS:
        chosen = groupings_of(numeric, kind)
        if not chosen:
            continue
        families = []
        for grouping in chosen:
            made = ratio_family(numeric, entry, grouping, kind)
            assert made.shift is not None
            value = Estimate.closed(made.shift.value, _cut(made.shift.limits, entry))
            state = made.status
            if infinite.any() and state is not None:
                lost = np.bincount(grouping.code[infinite], minlength=len(grouping.levels)) > 0
                state[lost & (state == "ok")] = (
                    "not_estimable: the compressed model gives a probability of 0 to what the "
                    "baseline holds possible"
                )
                nothing = np.where(lost, np.nan, value.value)
                value = Estimate.closed(nothing, limits_where(~lost, value.limits))
            families.append(
                Family(
                    entry, made.slots, made.n, value, n_clusters=made.n_clusters, status=state,
                    sized=made.sized, interval=made.interval,
                )
            )  # fmt: skip
        yield build(numeric, joined(families))


def _cut(limits: LimitsAt, entry: Metric) -> LimitsAt:
    """Limits within what the distance can be."""

    def at(alpha: float | Floats) -> Limits:
        low, high = limits(alpha)
        return np.clip(low, entry.low, entry.high), np.clip(high, entry.low, entry.high)

    return at


def _agreement(family: Family, entry: Metric) -> Family:
    """One less the share that changed."""
    changed = family.compressed

    def at(alpha: float | Floats) -> Limits:
        low, high = changed.limits(alpha)
        return 1 - high, 1 - low

    value = Estimate(1 - changed.value, at, None, None if changed.corrected is None else at)
    members = None if family.members is None else 1 - family.members
    return replace(family, metric=entry, compressed=value, members=members, columns={})
