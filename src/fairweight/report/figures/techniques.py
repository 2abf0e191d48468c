"""Pruning techniques: variants by sparsity, a line per method and treatment of the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.report.figures.measured import pairs_of
from fairweight.report.figures.parts import label
from fairweight.report.figures.registry import Absent, Spec
from fairweight.report.figures.sparsity import (
    NO_LEVELS,
    Level,
    member_values,
    point,
    sparsity_levels,
    sparsity_panel,
)
from fairweight.report.numbers import count, missing

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


def technique_levels(result: AuditResult) -> dict[str, Level]:
    """As `sparsity_levels`, with the treatment in the name where one method has several."""
    levels = sparsity_levels(result)
    table = result.variants_table
    if table is None or not {"method", "treatment"} <= set(table.columns):
        return levels
    treated = {
        str(name): str(treatment)
        for name, treatment in zip(table["variant"], table["treatment"], strict=True)
        if not missing(treatment)
    }
    several = {treated.get(name) for name in levels}
    if len(several) < 2:
        return levels
    return {
        name: Level(
            level.sparsity,
            f"{level.method}, {treated[name]}" if name in treated else level.method,
        )
        for name, level in levels.items()
    }


def technique_curves(
    result: AuditResult, task: str | None, metric: str, title: str, words: str
) -> Spec | Absent:
    """One metric of whole models against sparsity, a line per technique."""
    levels = technique_levels(result)
    if not levels:
        return Absent(NO_LEVELS)
    points: list[dict[str, Any]] = []
    for own, rows in pairs_of(result, list(levels), metric, "overall", task).items():
        for row, method in rows.values():
            if not missing(row["compressed"]):
                points.append(point(row, levels[own], this=False, method=method))
    if not points:
        return Absent(f"no variant with a sparsity has {words}")
    panel = sparsity_panel(points, member_values(result, levels, metric, task), title, levels)
    names = dict.fromkeys(level.method for level in levels.values())
    return {
        "title": (
            f"{count(len(points))} variants, {count(len(names))} "
            f"{'technique' if len(names) == 1 else 'techniques'} against {label(result.baseline)}"
        ),
        "description": (
            f"{words.removeprefix('an ').removeprefix('a ').capitalize()} of {count(len(points))} "
            f"variants against their sparsity, a line for each of {count(len(names))} techniques."
        ),
        **panel,
        "width": 480,
        "height": 300,
    }
