"""One variant against the baseline on one task: every row of the results and the tables beside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.estimate import RateEstimate
from fairweight.auditing.compare.families import CONFIRMATORY
from fairweight.auditing.compare.flips import flip_rows
from fairweight.auditing.compare.power import power_table
from fairweight.auditing.compare.quantities import kept_by_baseline, quantities
from fairweight.auditing.compare.rates import RateRows, rate_rows
from fairweight.auditing.compare.rows import Block
from fairweight.auditing.compare.structure import (
    class_impact_rows,
    concentration_rows,
    concentration_table,
    group_error_table,
    heterogeneities,
    heterogeneity_rows,
    standardised_quantities,
    worst_shift_rows,
)
from fairweight.auditing.compare.training import Training
from fairweight.auditing.compare.values import value_rows
from fairweight.auditing.metrics.registry import metrics


@dataclass
class Compared:
    """What one comparison adds to the audit."""

    blocks: list[Block] = field(default_factory=list)
    power: list[dict[str, Any]] = field(default_factory=list)
    concentration: list[dict[str, Any]] = field(default_factory=list)
    group_error: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def compare(
    c: Comparison,
    training: Training | None,
    *,
    filters: bool = True,
    fixed_side: str | None = None,
) -> Compared:
    """All rows of one variant on one task."""
    made = Compared()
    rates: list[RateRows] = []
    has_abstentions = bool((c.cube.prediction < 0).any())
    for table in rate_rows(c, [m for m in metrics() if m.kind == "rate"]):
        if (
            table.metric == "abstention_rate"
            and not has_abstentions
            and table.block["by"][0] != "overall"
        ):
            continue  # nobody abstains anywhere: one row says so
        made.blocks.append(table.block)
        rates.append(table)
    confirmatory = [r for r in rates if (r.metric, r.estimate.slots.kind) in CONFIRMATORY]
    by_group: list[RateEstimate] = [
        r.estimate for r in confirmatory if r.estimate.slots.by == "group"
    ]
    made.blocks += flip_rows(c)
    tests = heterogeneities(c)
    made.blocks += heterogeneity_rows(c, tests)
    wanted = [
        *quantities(c, training, filters=filters, fixed_side=fixed_side),
        *standardised_quantities(c, tests),
    ]
    made.blocks += [_zero_baseline(c, b, made.notes) for b in value_rows(c, wanted)]
    made.notes += _fewer_replicates(c, made.blocks)
    made.blocks += worst_shift_rows(c, by_group)
    made.blocks += concentration_rows(c)
    made.blocks += class_impact_rows(c)
    made.power = power_table(c, confirmatory)
    made.concentration = concentration_table(c)
    made.group_error = group_error_table(c, by_group)
    return made


def _fewer_replicates(c: Comparison, blocks: list[Block]) -> list[str]:
    """Many rows are bootstrapped with fewer replicates than were asked for: that must be said."""
    used = {text for b in blocks for text in set(b.get("interval", ())) if text is not None}
    short = sorted(
        text for text in used if "bootstrap (" in text and f"({c.options.n_boot} " not in text
    )
    if not short:
        return []
    return [
        f"There are so many groups that {c.variant} was bootstrapped with fewer than the "
        f"{c.options.n_boot:,} replicates asked for: {', '.join(short)}."
    ]


def _zero_baseline(c: Comparison, rows: Block, notes: list[str]) -> Block:
    """CEV and SDE drop classes whose baseline makes no errors: list them, and refuse if it matters.

    A class that goes from 0 errors to many must never vanish from the sum.
    """
    if rows["metric"][0] not in ("cev", "sde") or c.options.zero_baseline != "drop":
        return rows
    from fairweight.auditing.intervals.mcnemar import mcnemar

    p = c.pairs[""]
    others = p.n[0] - p.label[0]
    estimable = (p.label[0] > 0) & (others > 0)
    dropped = np.flatnonzero(estimable & ~kept_by_baseline(c))
    harmed = []
    changes = []
    for k in dropped:
        fnr = (p.lost[0, k] - p.gained[0, k]) / p.label[0, k]
        fpr = (p.fp_gained[0, k] - p.fp_lost[0, k]) / others[k]
        changes.append(f"'{c.classes[k]}' (FNR {100 * fnr:+.2f}, FPR {100 * fpr:+.2f} points)")
        worse = (
            mcnemar(p.gained[0, k], p.lost[0, k]) < c.options.alpha and fnr > 0,
            mcnemar(p.fp_lost[0, k], p.fp_gained[0, k]) < c.options.alpha and fpr > 0,
        )
        if any(worse):
            harmed.append(c.classes[k])
    if changes and rows["metric"][0] == "cev":
        more = f" and {len(changes) - 10} more" if len(changes) > 10 else ""
        notes.append(
            f"CEV and SDE of {c.variant} leave out classes in which the baseline makes no false "
            f"positives or no false negatives: {', '.join(changes[:10])}{more}."
        )
    if harmed:
        shown = ", ".join(harmed[:5]) + (f" and {len(harmed) - 5} more" if len(harmed) > 5 else "")
        rows = {**rows, "status": np.full(len(rows["status"]), None, dtype=object)}
        rows["status"][:] = f"not_estimable: zero baseline in {shown}"
        for name in ("ci_low", "ci_high", "p_value", "p_adjusted", "debiased"):
            rows[name] = np.full(len(rows["status"]), np.nan)
    return rows
