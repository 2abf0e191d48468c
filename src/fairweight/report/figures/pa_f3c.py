"""PA-F3c: the gap between classes against sparsity, by technique."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import variant_of
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.techniques import technique_curves

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


@figure(
    "PA-F3c",
    title="Gap between classes by technique",
    caption=(
        "Highest minus lowest accuracy of a class (the measure of the paper) against "
        "sparsity, a line per technique, a panel per treatment of the weights; small ticks are "
        "members. Thick: interval of these models; thin: of the method. Dashed: the baseline; "
        "grey: where retraining alone could have put it. A gap grows with noise: with few "
        "examples per class none is 0."
    ),
    more=True,
    explains=True,
    once=True,
)
def class_gap(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    title = "best minus worst class, points"
    return technique_curves(result, task, "class_gap", title, "a gap between classes")
