"""Rows of an outcome: shares of 0 and 1, or ratios of sums, overall, by group and intersection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from fairweight.auditing.compare.closed_form import closed_rates
from fairweight.auditing.compare.comparison import (
    Comparison,
    Slots,
    event_outcomes,
)
from fairweight.auditing.compare.estimate import Block, Estimate, Family, Sums
from fairweight.auditing.compare.lead import mean_test
from fairweight.auditing.compare.linear import linear_rates
from fairweight.auditing.compare.rows import Built, build, scopes
from fairweight.auditing.compare.simultaneous import MeanFamily
from fairweight.auditing.compare.task_mean import mean_heterogeneity
from fairweight.auditing.metrics.outcomes import KINDS
from fairweight.auditing.metrics.registry import Metric, metric
from fairweight.errors import InputError


def outcome_metric(c: Comparison) -> Metric:
    """The metric that an outcome is reported as."""
    assert c.cube.outcome is not None
    return metric(c.cube.outcome.role.metric)


def outcome_rows(c: Comparison) -> Iterator[Built]:
    """Rows about these models and, for populations, about the method."""
    entry = outcome_metric(c)
    for kind in KINDS:
        yield from _shares(c, entry, kind)


def _shares(c: Comparison, entry: Metric, kind: str) -> Iterator[Built]:
    """Outcomes that are 0 or 1: what predictions give, row by row."""
    if entry.event is None or entry.better == "lower":
        raise InputError("Only outcomes that are 0 or 1, and better higher, are audited so far.")
    rows = event_outcomes(c, entry.event, kind)
    family = closed_rates(c, entry, kind) if c.closed_form else linear_rates(c, entry, rows, kind)
    if family is not None:
        yield from scopes(c, family, event_outcomes(c, entry.event, kind))


# The mean over tasks: linearised t over examples (clusters) with all their tasks, and the signs.


def mean_outcome_rows(c: Comparison, tasks: Sequence[Sequence[Built]]) -> list[Block]:
    """Rows with `task` null: the mean over the tasks in which a row is defined.

    Parameters
    ----------
    c
        The comparison on one of the tasks.
    tasks
        The rows of every task.
    """
    if c.signs is None:
        return []
    together, entry = replace(c, task=None), outcome_metric(c)
    made = []
    for kind in KINDS:
        mean = c.signs.means.get((c.variant, kind))
        own = [t.family for task in tasks for t in task
               if t.scope == "model" and t.family.slots.kind == kind]  # fmt: skip
        if mean is None or not own:
            continue
        made.append(build(together, _mean_family(entry, mean, own, kind)))
    return made + mean_heterogeneity(together, made, entry.name)


def _mean_family(entry: Metric, mean: MeanFamily, own: Sequence[Family], kind: str) -> Family:
    names = np.array(mean.groups, dtype=object)
    place = {name: i for i, name in enumerate(mean.groups)}
    sides = {}
    for side in ("baseline", "compressed"):
        total, used = np.zeros(len(names)), np.zeros(len(names))
        for family in own:
            at = np.array([place[name] for name in family.slots.group])
            value = getattr(family, side).value
            known = np.isfinite(value)
            np.add.at(total, at[known], value[known])
            np.add.at(used, at[known], 1)
        with np.errstate(invalid="ignore"):
            sides[side] = Estimate.alone(total / used)

    def tested(quantity: str) -> Estimate:
        value, p, limits = mean_test(mean, quantity)
        return Estimate.closed(value, limits, p)

    shift = tested("shift")
    assert shift.p is not None
    nothing = np.full(len(names), np.nan)
    by = "overall" if kind == "overall" else "group"
    nobody = np.full(len(names), None, dtype=object)
    return Family(
        entry,
        Slots(by, kind, names, nobody, ~mean.inside, nothing),
        mean.n,
        sides["compressed"],
        sides["baseline"],
        shift,
        None if kind == "overall" else tested("excess"),
        interval="linearised t, mean over tasks",
        sums=Sums(shift.p, nothing, nothing),
    )
