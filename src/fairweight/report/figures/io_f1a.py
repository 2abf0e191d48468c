"""IO-F1a: bias amplification by category, of the baseline and of one variant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import variant_of
from fairweight.report.figures.attribute_rows import WORDS, attributes, box
from fairweight.report.figures.boxes import Placed, box_panel
from fairweight.report.figures.parts import label, labels, pair_title
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import GREY, ORANGE
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

METRIC = "bias_amplification"


@figure(
    "IO-F1a",
    title="Bias amplification by category",
    caption=(
        "A point is an attribute: how much more its positive predictions lean to one side of the "
        "category than its positive labels do. Box: the middle half of the attributes, with the "
        "median; diamond: their mean, with its interval over examples (of these models). "
        "Attributes that lean by less than 10 % in the training data, or with few positives, are "
        "left out, as in the paper."
    ),
    explains=True,
    more=True,
)
def amplification_by_category(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    found = attributes(result)
    if isinstance(found, Absent):
        return found
    names = [str(held) for held in found.loc[found["metric"] == METRIC, "category"].dropna()]
    categories = list(dict.fromkeys(names))
    base, own = labels([result.baseline, name])
    placed = [
        Placed(label(category), series, held)
        for category in categories
        for series, whose in ((base, result.baseline), (own, name))
        if (held := box(found, whose, METRIC, category)) is not None
    ]
    if not placed:
        return Absent("no attribute leans to a side of a category")
    return {
        "title": pair_title(result, name),
        "description": (
            f"Bias amplification of {label(result.baseline)} and {label(name)} by category, as "
            f"boxes over attributes: {', '.join(label(held) for held in categories)}. At most "
            f"{count(max(len(p.box.values) for p in placed))} attributes per box."
        ),
        **box_panel(placed, WORDS[METRIC][0], {base: GREY, own: ORANGE}, rule=0, joined=False),
    }
