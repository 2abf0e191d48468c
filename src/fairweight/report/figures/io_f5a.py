"""IO-F5a: bias before and after thresholds were calibrated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import variant_of
from fairweight.report.figures.attribute_rows import SUFFIX, WORDS, attributes, box, in_order, many
from fairweight.report.figures.boxes import Placed, box_panel
from fairweight.report.figures.parts import labels
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import BLUE, GREY

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

BEFORE, AFTER = "as they are", "calibrated thresholds"
PANELS = {"worst_case_bias_amplification": 0.0, "tcb": 1.0}


@figure(
    "IO-F5a",
    title="Effect of calibrated thresholds",
    caption=(
        "A point is an attribute, before (grey) and after (blue) its threshold was set so that it "
        "is predicted as often as it is true on the validation examples; groups play no part in "
        "that. Judged on other examples. Box: the middle half of the attributes, with the median; "
        "diamonds and lines: means, with their intervals over examples (of these models). TCB: 1 "
        "is as often as true."
    ),
    explains=True,
    once=True,
)
def calibrated_thresholds(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    found = attributes(result)
    if isinstance(found, Absent):
        return found
    held = set(found["variant"])
    pairs = [name for name in in_order(result, found) if f"{name}{SUFFIX}" in held]
    if not pairs:
        return Absent(f"no variant is named like another with {SUFFIX} behind it")
    panels = [
        box_panel(placed, WORDS[metric][0], {BEFORE: GREY, AFTER: BLUE}, rule=rule)
        for metric, rule in PANELS.items()
        if (placed := _placed(found, pairs, metric))
    ]
    if not panels:
        return Absent("no attribute has a bias amplification or a TCB")
    return {
        "title": f"{many(found['task'].nunique(), 'attribute')}, {many(len(pairs), 'variant')}",
        "description": (
            f"Worst-case bias amplification and TCB of {many(len(pairs), 'variant')} before and "
            "after their thresholds were calibrated, as boxes over attributes."
        ),
        "hconcat": panels,
    }


def _placed(frame: pd.DataFrame, pairs: list[str], metric: str) -> list[Placed]:
    return [
        Placed(place, series, held)
        for place, name in zip(labels(pairs), pairs, strict=True)
        for series, whose in ((BEFORE, name), (AFTER, f"{name}{SUFFIX}"))
        if (held := box(frame, whose, metric)) is not None
    ]
