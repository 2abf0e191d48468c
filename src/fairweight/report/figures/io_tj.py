"""IO-TJ: bias amplification of every attribute and category, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import missing, real
from fairweight.report.figures.attribute_rows import attributes, many
from fairweight.report.figures.explained import untold
from fairweight.report.figures.io_f1a import METRIC
from fairweight.report.figures.parts import label, labels, pair_title
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.text_table import BETTER, NONE, WORSE, TextCell, text_table
from fairweight.report.numbers import signed

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


@figure(
    "IO-TJ",
    title="Bias amplification of every attribute and category",
    caption=(
        "Points of bias amplification, baseline → compressed. Orange: it rose, blue: it fell, by "
        "limits that hold for all cells of an attribute together. A dash: the attribute leans to "
        "no side of the category in the training data, or has too few positives."
    ),
    explains=True,
    more=True,
)
def amplification_table(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    found = attributes(result)
    if isinstance(found, Absent):
        return found
    rows = found[(found["metric"] == METRIC) & found["task"].notna()]
    before = _values(records(rows[rows["variant"] == result.baseline]))
    after = _values(records(rows[rows["variant"] == name]))
    if not after:
        return Absent("no attribute leans to a side of a category")
    tasks = list(dict.fromkeys(task for task, _ in after))
    categories = list(dict.fromkeys(category for _, category in after))
    shown = dict(zip(tasks, labels(tasks), strict=True))
    columns = dict(zip(categories, labels(categories), strict=True))
    cells = [
        _cell(shown[task], columns[category], before.get((task, category)), row)
        for (task, category), row in after.items()
    ]
    rose = sum(cell.ink == WORSE for cell in cells)
    return {
        "title": pair_title(result, name),
        "description": (
            f"Table of bias amplification of {many(len(tasks), 'attribute')} by "
            f"{', '.join(columns.values())}: {label(result.baseline)} and {label(name)}. It rose "
            f"in {many(rose, 'cell')}."
        ),
        **text_table(cells, list(columns.values()), step=150),
    }


def _values(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(str(row["task"]), str(row["category"])): row for row in rows}


def _cell(row: str, column: str, before: dict[str, Any] | None, after: dict[str, Any]) -> TextCell:
    if before is None or missing(before["value"]) or missing(after["value"]):
        return TextCell(row, column, "—", why=untold(after))
    ends = [signed(100 * real(held["value"]), 1) for held in (before, after)]
    low, high = real(after["sim_low"]), real(after["sim_high"])
    ink = WORSE if low > 0 else BETTER if high < 0 else NONE
    return TextCell(row, column, " → ".join(ends), ink)
