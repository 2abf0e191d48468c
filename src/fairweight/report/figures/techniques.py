"""Pruning techniques: variants by sparsity, a line per method and treatment of the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.base.wording import missing
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
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


UNTREATED = "not trained again"


def treatments(result: AuditResult, levels: dict[str, Level]) -> dict[str, str]:
    """How the weights of every variant were treated after pruning; empty where all are alike."""
    table = result.variants_table
    if table is None or not {"method", "treatment"} <= set(table.columns):
        return {}
    known = {
        str(name): str(treatment)
        for name, treatment in zip(table["variant"], table["treatment"], strict=True)
        if not missing(treatment)
    }
    found = {name: known.get(name, UNTREATED) for name in levels}
    return found if len(set(found.values())) > 1 else {}


def technique_levels(result: AuditResult) -> dict[str, Level]:
    """As `sparsity_levels`, with the treatment in the name where there are several."""
    levels = sparsity_levels(result)
    treated = treatments(result, levels)
    return {
        name: Level(
            level.sparsity,
            f"{level.method}, {treated[name]}"
            if treated.get(name, UNTREATED) != UNTREATED
            else level.method,
        )
        for name, level in levels.items()
    }


def technique_curves(
    result: AuditResult, task: str | None, metric: str, title: str, words: str
) -> Spec | Absent:
    """One metric of whole models against sparsity: a line per technique, a panel per treatment."""
    levels = sparsity_levels(result)
    if not levels:
        return Absent(NO_LEVELS)
    treated = treatments(result, levels)
    points: dict[str, list[dict[str, Any]]] = {}
    for own, rows in pairs_of(result, list(levels), metric, "overall", task).items():
        for row, method in rows.values():
            if not missing(row["compressed"]):
                made = point(row, levels[own], this=False, method=method)
                points.setdefault(treated.get(own, ""), []).append(made)
    if not points:
        return Absent(f"no variant with a sparsity has {words}")
    panels = []
    for treatment, own_points in points.items():
        here = {v: level for v, level in levels.items() if treated.get(v, "") == treatment}
        ticks = member_values(result, here, metric, task)
        panel = sparsity_panel(own_points, ticks, title, levels)
        size = {"width": 480, "height": 300} if len(points) == 1 else {"width": 330, "height": 300}
        panels.append({**panel, **size, **({"title": treatment} if treatment else {})})
    n_points = sum(len(own_points) for own_points in points.values())
    names = dict.fromkeys(level.method for level in levels.values())
    techniques = f"{count(len(names))} {'technique' if len(names) == 1 else 'techniques'}"
    return {
        "title": f"{count(n_points)} variants, {techniques} against {label(result.baseline)}",
        "description": (
            f"{words.removeprefix('an ').removeprefix('a ').capitalize()} of {count(n_points)} "
            f"variants against their sparsity, a line for each of {techniques}"
            + (
                f", in a panel for each of {count(len(points))} treatments of the weights."
                if len(points) > 1
                else "."
            )
        ),
        **(
            panels[0]
            if len(panels) == 1
            else {"hconcat": panels, "resolve": {"scale": {"y": "shared", "x": "shared"}}}
        ),
    }
