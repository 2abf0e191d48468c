"""PA-F3b: total accuracy against sparsity, by technique."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import variant_of
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.techniques import technique_curves

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


@figure(
    "PA-F3b",
    title="Accuracy by technique",
    caption=(
        "Accuracy of all examples against sparsity, a line per technique, a panel per treatment "
        "of the weights; small ticks are members. Thick: interval of these models; thin: of the "
        "method. Dashed: the baseline; grey: where retraining alone could have put it."
    ),
    more=True,
    explains=True,
    once=True,
)
def total_accuracy(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    return technique_curves(result, task, "accuracy", "accuracy, %", "an accuracy")
