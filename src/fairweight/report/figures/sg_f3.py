"""SG-F3: accuracy and AUC against sparsity, one line per method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import variant_of
from fairweight.base.wording import missing
from fairweight.report.figures.measured import pairs_of, why_missing
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.sparsity import (
    NO_LEVELS,
    described,
    member_values,
    point,
    sparsity_levels,
    sparsity_panel,
    title_of,
)
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

_METRICS = {"accuracy": "accuracy", "auc": "AUC"}


@figure(
    "SG-F3",
    title="Accuracy and AUC against sparsity",
    caption=(
        "Each point is a variant, each line a method; of a population it is the mean over members, "
        "which are the small ticks. Thick: interval of these models; thin: of the method. The ring "
        "is the variant of this section, the dashed line the baseline. Grey band: where retraining "
        "alone could have put it. The AUC needs scores."
    ),
    more=True,
)
def accuracy_and_auc(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    levels = sparsity_levels(result)
    if not levels:
        return Absent(NO_LEVELS)
    panels: list[Spec] = []
    blank: dict[str, str] = {}
    for metric, words in _METRICS.items():
        points: list[dict[str, Any]] = []
        for own, rows in pairs_of(result, list(levels), metric, "overall", task).items():
            for row, method in rows.values():
                if missing(row["compressed"]):
                    blank[words] = why_missing(row)
                else:
                    points.append(point(row, levels[own], this=own == name, method=method))
        if points:
            ticks = member_values(result, levels, metric, task)
            panels.append(sparsity_panel(points, ticks, f"{words}, %", levels))
    if not panels:
        return Absent("no variant with a sparsity has an accuracy or an AUC")
    said = [f"no {words} ({why})" for words, why in blank.items()]
    return {
        "title": "; ".join(
            [title_of(result, levels, name), f"n {count(result.n_examples)}", *said]
        ),
        "description": described(levels, name, "Accuracy and AUC"),
        "concat": panels,
        "columns": 2,
    }
