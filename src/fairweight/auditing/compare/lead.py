"""What is read first: one error rate for all families and variants together.

Tables correct within their families. Of unchanged models 11 % would still get some line with one
variant, and 39 % with five (docs/statistics.md), so the lead has one maximum over everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr, stdtrit

from fairweight.auditing import schema
from fairweight.auditing.compare.estimate import Estimate, LimitsAt, limits_at
from fairweight.auditing.compare.signs import adjusted
from fairweight.auditing.compare.simultaneous import MeanFamily, Signs
from fairweight.auditing.intervals.multiplicity import holm
from fairweight.base.types import Floats, Limits

if TYPE_CHECKING:
    from fairweight.auditing.compare.variant import Compared


@dataclass(frozen=True)
class Tested:
    """Shifts or excesses of one family: what the lead may speak of."""

    variant: str
    task: str | None
    scope: str
    quantity: str  # shift, excess
    by: str
    column: NDArray[np.object_]  # which group column a row belongs to
    group: NDArray[np.object_]
    cls: NDArray[np.object_]
    n: Floats
    p: Floats
    estimate: Estimate  # of all rows of the family
    at: NDArray[np.intp]  # which of them these are


def lead_table(compared: Sequence[Compared], signs: Signs | None, alpha: float) -> pd.DataFrame:
    """Limits and p of every confirmatory shift and excess that hold for all of them at once.

    Scope `model`: the largest deviation of all under random signs. Scope `method`, and where signs
    are not defined: Holm's steps, limits at alpha / tests.
    """
    parts: list[dict[str, Any]] = []
    found = [*_of_rates(compared), *(() if signs is None else _of_means(signs))]
    for scope in ("model", "method"):
        tables = [table for table in found if table.scope == scope and len(table.at)]
        if not tables:
            continue
        p = np.concatenate([table.p for table in tables])
        number = int(np.isfinite(p).sum())
        if scope == "model" and signs is not None:
            level = float(2 * ndtr(-signs.lead_z_star(alpha)))
            p_lead = adjusted(p, signs.lead)
        else:
            level, p_lead = alpha / max(number, 1), holm(p)
        ends = limits_at([(table.estimate, level, np.zeros(0)) for table in tables])
        both = [[side[t.at] for side in of.pointwise] for t, of in zip(tables, ends, strict=True)]
        columns: dict[str, Any] = {
            "n": np.concatenate([table.n for table in tables]),
            "estimate": np.concatenate([table.estimate.value[table.at] for table in tables]),
            "low": np.concatenate([low for low, _ in both]),
            "high": np.concatenate([high for _, high in both]),
            "p_lead": p_lead,
            "column": np.concatenate([table.column for table in tables]),
            "group": np.concatenate([table.group for table in tables]),
            "class": np.concatenate([table.cls for table in tables]),
        }
        for name in ("variant", "task", "quantity", "by", "scope"):
            columns[name] = [getattr(table, name) for table in tables for _ in table.at]
        columns["n_tests"] = np.full(len(p), number)
        parts.append(columns)
    if not parts:
        return schema.frame("lead")
    return schema.frame(
        "lead", {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    )


def _of_rates(compared: Sequence[Compared]) -> Iterator[Tested]:
    for part in compared:
        for table in part.confirmatory:
            e, slots = table.family, table.family.slots
            inside = np.isfinite(np.asarray(table.block["n_family"], dtype=float))
            inside &= np.asarray(table.block["status"] == "ok")
            at = np.flatnonzero(inside)
            nothing = np.full(len(slots), None, dtype=object)
            column = part.columns.get(slots.kind, nothing)[at]
            assert e.shift is not None
            assert e.sums is not None
            both = [("shift", e.shift, e.sums.zero_p)]
            if slots.kind != "overall" and e.excess is not None and e.excess.p is not None:
                both.append(("excess", e.excess, e.excess.p))
            for quantity, estimate, p in both:
                yield Tested(
                    part.variant, part.task, table.scope, quantity, slots.by, column,
                    slots.group[at], slots.cls[at], e.n[at], p[at], estimate, at,
                )  # fmt: skip


def _of_means(signs: Signs) -> Iterator[Tested]:
    """Means over tasks: linearised t over examples (clusters) with all their tasks."""
    for (variant, kind), mean in signs.means.items():
        at = np.flatnonzero(mean.inside)
        by = "overall" if kind == "overall" else "group"
        group = np.array([mean.groups[i] for i in at], dtype=object)
        nobody = np.full(len(at), None, dtype=object)
        names = np.array(mean.columns, dtype=object)
        column = nobody if kind == "overall" else names[mean.column[at]]
        for quantity in ("shift", "excess") if kind != "overall" else ("shift",):
            value, p, limits = mean_test(mean, quantity)
            yield Tested(
                variant, None, "model", quantity, by, column, group, nobody, mean.n[at],
                p[at], Estimate.closed(value, limits, p), at,
            )  # fmt: skip


def mean_test(mean: MeanFamily, quantity: str) -> tuple[Floats, Floats, LimitsAt]:
    """Shift or excess of the mean over tasks, its p, and limits at any level."""
    value, error, degrees = (
        (mean.shift, mean.shift_error, mean.degrees)
        if quantity == "shift"
        else (mean.excess, mean.excess_error, mean.excess_degrees)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * stdtr(degrees, -np.abs(value) / error)
    p = np.where((np.abs(value) < 1e-12) & (error < 1e-12), 1.0, p)

    def limits(level: float | Floats) -> Limits:
        reach = -stdtrit(degrees, level / 2) * error
        return value - reach, value + reach

    return value, p, limits
