"""SG-F1: false positive rate per class, baseline and compressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.report.figures.class_pairs import Rate, class_pairs
from fairweight.report.figures.registry import Absent, Spec, figure

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

_FPR = Rate("fpr", "FPR, %", "false positive rate", zero=True)


@figure(
    "SG-F1",
    title="False positive rate per class",
    caption=(
        "How often examples of other classes are taken for this one, before and after, each with "
        "its own interval: thick for these models, thin for the method. Grey band: where "
        "retraining alone could have put it. Whether the change is beyond chance is a matter of "
        "the paired shift in the tables, not of whether these intervals overlap. (The row that "
        "the paper prints as FPR is about 1 − recall; this is FP / (FP + TN).)"
    ),
)
def fpr_per_class(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    return class_pairs(result, variant, task, _FPR)
