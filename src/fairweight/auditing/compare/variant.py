"""One variant against the baseline on one task: every row of the results and the tables beside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import (
    Comparison,
    TrainingCounts,
    groupings_of,
    too_many_entries,
)
from fairweight.auditing.compare.estimands import drawn_where_few, estimands
from fairweight.auditing.compare.estimate import Block
from fairweight.auditing.compare.flips import flip_families
from fairweight.auditing.compare.harm import (
    class_impacts,
    concentration_table,
    concentrations,
    group_error_table,
    heterogeneity,
    power_table,
    standardised_excess_shift,
    worst_shifts,
)
from fairweight.auditing.compare.outcome import outcome_power, outcome_rows
from fairweight.auditing.compare.rows import (
    Built,
    build_all,
    left_out_notes,
    rate_rows,
    refused_if_harmed,
    value_rows,
    without_baseline_errors,
)
from fairweight.auditing.counts.cube import CubeMember
from fairweight.auditing.metrics.harm import WORST_GROUP_SHIFT
from fairweight.auditing.metrics.registry import metric, metrics


@dataclass
class Compared:
    """What one comparison adds to the audit."""

    variant: str
    task: str | None
    comparison: Comparison
    blocks: list[Block] = field(default_factory=list)
    confirmatory: list[Built] = field(default_factory=list)  # of both scopes
    columns: dict[str, NDArray[np.object_]] = field(default_factory=dict)  # of every row, by kind
    power: list[dict[str, Any]] = field(default_factory=list)
    concentration: list[dict[str, Any]] = field(default_factory=list)
    group_error: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def members(self) -> tuple[CubeMember, ...]:
        """The models, those of the baseline first."""
        return self.comparison.cube.members

    @property
    def pairing(self) -> str:
        return self.comparison.pairing.how


def compare(
    c: Comparison,
    training: TrainingCounts | None,
    *,
    filters: bool = True,
    fixed_side: str | None = None,
) -> Compared:
    """All rows of one variant on one task."""
    made = Compared(c.variant, c.task, c)
    made.notes += [c.pairing.note] if c.pairing.note else []
    if c.cube.outcome is not None:
        return _outcome(c, made)
    if not c.cube.labelled:
        # How often predictions changed, and no more. It is never called a loss.
        made.columns = columns_of(c)
        changed = [
            (family, scope)
            for family, scope in flip_families(c)
            if family.metric.pairs == "changed" and family.slots.kind != "class"
        ]
        made.blocks += build_all(c, changed)
        return made
    rates: list[Built] = []
    zero: dict[str, bool] = {}
    for table in rate_rows(c, [m for m in metrics() if m.kind == "rate"]):
        name, kind = table.key
        if zero.get(name) and kind != "overall":
            continue  # one row says it for everybody
        if kind == "overall" and table.family.metric.one_row_if_zero:
            zero[name] = not np.any(table.family.members)
        made.blocks.append(table.block)
        rates.append(table)
    made.columns = columns_of(c)
    made.confirmatory = [r for r in rates if r.is_confirmatory]
    structured = metric(WORST_GROUP_SHIFT).of  # accuracy: who pays differently is asked of it
    by_group = [r for r in rates if r.key[0] == structured and r.family.slots.by == "group"]
    made.blocks += build_all(c, (*flip_families(c), *heterogeneity(c, by_group)))
    every = [
        *estimands(c, training, filters=filters, fixed_side=fixed_side),
        *standardised_excess_shift(c),
    ]
    wanted = [*drawn_where_few(c, every)]
    left_out = without_baseline_errors(c)
    made.notes += left_out_notes(c, left_out)
    made.blocks += [refused_if_harmed(b, left_out) for b in value_rows(c, wanted)]
    # Many rows are bootstrapped with fewer replicates than were asked for: that must be said.
    used = {text for b in made.blocks for text in set(b.get("interval", ())) if text is not None}
    short = sorted(
        text for text in used if "bootstrap (" in text and f"({c.options.n_boot} " not in text
    )
    if short:
        made.notes.append(
            f"There are so many groups that {c.variant} was bootstrapped with fewer than the "
            f"{c.options.n_boot:,} replicates asked for: {', '.join(short)}."
        )
    if not c.closed_form and too_many_entries(c):
        made.notes.append(
            f"FPR and selection rate by class of {c.variant} were left out: {c.cube.n_cells:,} "
            f"different examples × {len(c.classes):,} classes are too many for clusters or weights."
        )
    made.blocks += build_all(c, (*worst_shifts(c, by_group), *concentrations(c), *class_impacts(c)))
    made.power = power_table(c, [r for r in made.confirmatory if r.scope == "model"])
    made.concentration = concentration_table(c)
    made.group_error = group_error_table(c, [r.family for r in by_group if r.scope == "model"])
    return made


def columns_of(c: Comparison) -> dict[str, NDArray[np.object_]]:
    """The group column of every row, by kind of rows."""
    return {
        kind: np.concatenate([np.full(len(g.levels), g.name, dtype=object) for g in chosen])
        for kind in ("group", "intersection")
        if (chosen := groupings_of(c, kind))
    }


def _outcome(c: Comparison, made: Compared) -> Compared:
    """All rows of an outcome: everything that makes sense without classes."""
    outcome = c.cube.outcome
    assert outcome is not None
    made.confirmatory = list(outcome_rows(c))
    made.blocks += [table.block for table in made.confirmatory]
    made.columns = columns_of(c)
    by_group = [r for r in made.confirmatory if r.family.slots.by == "group"]
    tested = [
        (family, scope)
        for family, scope in heterogeneity(c, by_group)
        if family.metric.name == "heterogeneity"  # not within classes: there are none
    ]
    made.blocks += build_all(c, tested)
    models = [r for r in made.confirmatory if r.scope == "model"]
    if outcome.role.binary:
        flips = [f for f in flip_families(c) if f[0].slots.kind != "class"]
        made.blocks += build_all(c, (*flips, *concentrations(c)))
        made.power = power_table(c, models)
        made.concentration = concentration_table(c)
    else:
        made.power = outcome_power(c, models)
    made.group_error = group_error_table(c, [r.family for r in by_group if r.scope == "model"])
    return made
