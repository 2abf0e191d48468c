"""IO-F2: TCB, ECE and interrelation against sparsity, boxes over attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import variant_of
from fairweight.report.figures.attribute_panels import by_variant
from fairweight.report.figures.attribute_rows import attributes, many
from fairweight.report.figures.parts import label
from fairweight.report.figures.registry import Absent, Spec, figure

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

PANELS: dict[str, tuple[str, float | None]] = {
    "tcb": ("threshold calibration bias", 1),
    "ece": ("calibration error", None),
    "interrelation": ("label interrelation", None),
}


@figure(
    "IO-F2",
    title="Systematic bias by sparsity",
    caption=(
        "A point is an attribute. TCB: predictions of its rarer value over labels of it (1: as "
        "often as it is true). ECE: how far the probability is from the share that is positive, "
        "above 0 by chance alone. Interrelation: how much of an attribute's predictions follows "
        "from those of the others. Box: the middle half of the attributes, with the median; "
        "diamonds and line: the mean, with its interval over examples. Variants stand in the "
        "order of their sparsity."
    ),
    explains=True,
    once=True,
)
def systematic_bias(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    found = attributes(result)
    if isinstance(found, Absent):
        return found
    panels = {
        words: panel
        for metric, (words, rule) in PANELS.items()
        if (panel := by_variant(result, found, metric, rule=rule)) is not None
    }
    if not panels:
        return Absent("no attribute has a TCB, an ECE or an interrelation")
    n = found["task"].nunique()
    return {
        "title": f"{many(n, 'attribute')}, {many(len(result.variants), 'variant')}",
        "description": (
            f"Boxes over {many(n, 'attribute')}, for {label(result.baseline)} and "
            f"{many(len(result.variants), 'variant')} in the order of their sparsity: "
            f"{', '.join(panels)}."
        ),
        "hconcat": list(panels.values()),
    }
