"""SG-F4: false positive and false negative rate per group, over all variants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import variant_of
from fairweight.report.figures.group_panels import Shown, group_panels
from fairweight.report.figures.parts import label
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import BLUE, ORANGE

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


@figure(
    "SG-F4",
    title="False positive and false negative rate per group",
    caption=(
        "One panel per group: the baseline, then every variant in the order given. Thick: interval "
        "of these models; thin: of the method. Grey band: where retraining alone could have put "
        "the rate. The ring is the variant of this section. With two classes the rates are those "
        "of the positive class, with more their means over classes; n is the number of examples "
        "behind FPR / FNR. ▲: far above the others, beyond the frame, with its value."
    ),
    more=True,
)
def errors_per_group(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    positive = result.positive if len(result.classes) == 2 else None
    of = "mean over classes" if positive is None else f"positive: {label(positive)}"
    rates = {"fpr": ("FPR", ORANGE), "fnr": ("FNR", BLUE)}
    words = "False positive and false negative rate"
    what = Shown(rates, words, f"rate, % ({of})", 100.0, ".2f", zero=True, top=100.0)
    return group_panels(result, name, task, what)
