"""SG-F2: precision per class, baseline and compressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.report.figures.class_pairs import Rate, class_pairs
from fairweight.report.figures.registry import Absent, Spec, figure

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

_PRECISION = Rate("precision", "precision, %", "precision", zero=False)


@figure(
    "SG-F2",
    title="Precision per class",
    caption=(
        "How often an answer is right when it names this class, before and after, each with its "
        "own interval: thick for these models, thin for the method. Grey band: where retraining "
        "alone could have put it. Whether the change is beyond chance is a matter of the paired "
        "shift in the tables, not of whether these intervals overlap. n: examples that received "
        "this answer from any of the models."
    ),
    more=True,
)
def precision_per_class(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    return class_pairs(result, variant, task, _PRECISION)
