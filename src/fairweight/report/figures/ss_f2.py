"""SS-F2: accuracy, exemplars, CEV and SDE against sparsity, one line per method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import at_task, is_ok, of_scope, records, variant_of
from fairweight.base.wording import missing
from fairweight.report.figures.explained import explained
from fairweight.report.figures.parts import label, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.sparsity import (
    NO_LEVELS,
    Level,
    described,
    member_values,
    point,
    sparsity_levels,
    sparsity_panel,
    title_of,
)

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

ENOUGH = 1000  # examples per class from which CEV and SDE are shown as published
_PANELS = ("accuracy", "cev", "sde")
_TITLES = {
    "accuracy": "accuracy, %",
    "cev": "CEV",
    "sde": "SDE",
    "cev_pp": "CEV in points",
    "sde_pp": "SDE in points",
}


@figure(
    "SS-F2",
    title="Accuracy, exemplars, CEV and SDE against sparsity",
    caption=(
        "Each point is a variant with its interval (these models), each line a method; small ticks "
        "are members, the ring is the variant of this section, the dashed line the baseline. Grey "
        "band: what retraining alone gives. CEV and SDE grow with noise: with fewer than 1,000 "
        "examples in some class they are shown corrected for it. They are taken in percentage "
        "points where a baseline rate is too near 0 for the published form, and a variant has no "
        "point where nothing can be estimated. Exemplars, where they were looked for, are those of "
        "the modal answers, as a share of examples at the sizes of the splits that give the band."
    ),
)
def against_sparsity(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    levels = sparsity_levels(result)
    if not levels:
        return Absent(NO_LEVELS)
    every = result.results
    rows = every[every["metric"].isin(list(_TITLES)) & (every["by"] == "overall")]
    rows = at_task(rows[of_scope(rows, "model")], result, task)
    small = _smallest_class(result) < ENOUGH
    panels: list[Spec] = []
    rows = rows[rows["variant"].isin(list(levels))]
    for published in _PANELS:
        metric = _told(rows, published)
        corrected = small and metric != "accuracy"
        own = rows[(rows["metric"] == metric) & is_ok(rows)]
        points = [
            point(row, levels[row["variant"]], corrected=corrected, this=row["variant"] == name)
            for row in records(own[own["debiased" if corrected else "compressed"].notna()])
        ]
        if not points:
            continue
        ticks = [] if corrected else member_values(result, levels, metric, task)
        more = ", corrected" if corrected else ""
        panels.append(sparsity_panel(points, ticks, _TITLES[metric] + more, levels))
    exemplars = _exemplars(result, levels, name, task)
    if exemplars:
        panels.insert(1, sparsity_panel(exemplars, [], "exemplars, %", levels))
    if not panels:
        return Absent("no variant with a sparsity has an accuracy, CEV or SDE")
    return {
        "title": title_of(result, levels, name),
        "description": described(
            levels,
            name,
            "Accuracy, exemplars, CEV and SDE" if exemplars else "Accuracy, CEV and SDE",
        ),
        "concat": panels,
        "columns": 2,
    }


def _exemplars(
    result: AuditResult, levels: dict[str, Level], name: str, task: str | None
) -> list[dict[str, Any]]:
    """Shares of modal exemplars; beside what retraining gives, at the sizes that this is for."""
    found = explained(result, "exemplar_counts", None, task)
    if isinstance(found, Absent):
        return []
    rows = records(found[(found["kind"] == "modal") & found["variant"].isin(list(levels))])
    matched = all(not missing(row["matched"]) for row in rows)
    return [
        {
            "variant": label(row["variant"]),
            "method": label(levels[row["variant"]].method),
            "sparsity": levels[row["variant"]].sparsity,
            "value": value(row["matched" if matched else "share"], 100.0),
            "n": value(row["n_examples"]),
            **dict.fromkeys(("low", "high", "wide_low", "wide_high", "baseline")),
            "floor_low": value(row["floor_low"], 100.0) if matched else None,
            "floor_high": value(row["floor_high"], 100.0) if matched else None,
            "this": row["variant"] == name,
        }
        for row in rows
        if not missing(row["share"])
    ]


def _told(rows: pd.DataFrame, metric: str) -> str:
    """The metric as published if it can be estimated in every variant, else in points."""
    usable = is_ok(rows[rows["metric"] == metric]).all()
    return metric if usable or metric == "accuracy" else f"{metric}_pp"


def _smallest_class(result: AuditResult) -> float:
    data = result.data
    sizes = data.loc[(data["split"] == "test") & (data["by"] == "class"), "n"]
    return float(sizes.min()) if len(sizes) else 0.0
