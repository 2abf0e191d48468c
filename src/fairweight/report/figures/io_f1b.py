"""IO-F1b: worst-case bias amplification against sparsity, boxes over attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import variant_of
from fairweight.report.figures.attribute_panels import by_variant
from fairweight.report.figures.attribute_rows import attributes, many
from fairweight.report.figures.parts import label
from fairweight.report.figures.registry import Absent, Spec, figure

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

METRIC = "worst_case_bias_amplification"


@figure(
    "IO-F1b",
    title="Worst-case bias amplification by sparsity",
    caption=(
        "A point is an attribute: its highest bias amplification over the categories. Box: the "
        "middle half of the attributes, with the median; diamonds and line: the mean, with its "
        "interval over examples (of these models). Variants stand in the order of their sparsity. "
        "The highest of several noisy values is above 0 by chance alone, most of all where "
        "positives are few."
    ),
    explains=True,
    once=True,
)
def worst_case_by_sparsity(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    found = attributes(result)
    if isinstance(found, Absent):
        return found
    panel = by_variant(result, found, METRIC, rule=0)
    if panel is None:
        return Absent("no attribute leans to a side of a category")
    n = found["task"].nunique()
    return {
        "title": f"{many(n, 'attribute')}, {many(len(result.variants), 'variant')}",
        "description": (
            f"Worst-case bias amplification of {many(n, 'attribute')} as boxes, for "
            f"{label(result.baseline)} and {many(len(result.variants), 'variant')} in the order of "
            "their sparsity."
        ),
        **panel,
    }
