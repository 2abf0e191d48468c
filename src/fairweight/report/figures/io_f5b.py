"""IO-F5b: the share of uncertain dense predictions among exemplars, against sparsity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import missing, text
from fairweight.report.figures.attribute_rows import in_order, many
from fairweight.report.figures.boxes import Box, Mean, Placed, Value, box_panel
from fairweight.report.figures.explained import UNMADE, at_cut, cut_name, cuts
from fairweight.report.figures.parts import label, labels
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import GREY, ORANGE

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

SERIES = {
    "other examples": ("uncertain_share_others", GREY),
    "exemplars": ("uncertain_share", ORANGE),
}
WHOLE = "all examples"  # the one task of a table without tasks


@figure(
    "IO-F5b",
    title="Uncertain dense predictions among exemplars",
    caption=(
        "Of the examples on which compressed models answer otherwise than dense ones (orange), "
        "and of all others (grey), the share of which the dense models were uncertain: mean "
        "probability between .1 and .9. A point is an attribute; box: the middle half of them, "
        "with the median; diamonds and lines: means. Exemplars between dense populations are "
        "uncertain too: this says where to look, and nothing about compression alone."
    ),
    explains=True,
    once=True,
)
def uncertain_exemplars(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    frame = result.explanations.get("exemplar_counts")
    if frame is None or frame.empty:
        return Absent(UNMADE["exemplar_counts"])
    cut = cuts(frame)[0]
    own = at_cut(frame, cut)
    order = in_order(result, own)
    placed = [
        Placed(place, series, held)
        for place, name in zip(labels(order), order, strict=True)
        for series, (column, _) in SERIES.items()
        if (held := _box(own[own["variant"] == name], column)) is not None
    ]
    if not placed:
        return Absent("the certainty of the dense models is not known (no scores)")
    n = max(len(p.box.values) for p in placed)
    return {
        "title": f"exemplars: {cut_name(*cut)}; at most {many(n, 'attribute')}",
        "description": (
            f"Share of uncertain predictions of {label(result.baseline)} among exemplars and "
            f"among other examples, for {many(len(order), 'variant')} in the order of their "
            "sparsity, as boxes over attributes."
        ),
        **box_panel(
            placed,
            "uncertain dense answers, %",
            {series: color for series, (_, color) in SERIES.items()},
        ),
    }


def _box(rows: pd.DataFrame, column: str) -> Box | None:
    found = [
        Value(label(text(row["task"]) or WHOLE), 100 * float(row[column]))
        for row in records(rows, ("task", column))
        if not missing(row[column])
    ]
    if not found:
        return None
    return Box(found, Mean(sum(held.value for held in found) / len(found), None, None))
