"""IO-T1: accuracy, AUC, operations and speed, one row per variant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import missing, real
from fairweight.report.figures.attribute_rows import at, attributes, in_order, many
from fairweight.report.figures.parts import labels
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.text_table import TextCell, text_table
from fairweight.report.numbers import number

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

_MEANS = {
    "accuracy": "accuracy, %",
    "auc": "AUC of scores, %",
    "balanced_accuracy": "balanced accuracy, %",
}
_MEASURED = {
    "flops": ("operations, M", 1e-6),
    "flops_sparse": ("without zeros, M", 1e-6),
    "items_per_s": ("items per second", 1.0),
}


@figure(
    "IO-T1",
    title="Accuracy, AUC, operations and speed",
    caption=(
        "Means over attributes and members, with intervals over examples (of these models). The "
        "paper's AUC is lower than that of scores can be: balanced accuracy, the AUC of yes and "
        "no, stands beside it. Operations of one example, and those left without zeros, are "
        "counted; items per second are measured on the machine that made the variants table, by "
        "an engine that gains nothing from zeros."
    ),
    explains=True,
    once=True,
)
def quality_and_cost(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    found = attributes(result)
    if isinstance(found, Absent):
        return found
    order = in_order(result, found)
    cells: list[TextCell] = []
    for row, name in zip(labels(order), order, strict=True):
        own = found[found["variant"] == name]
        sparsity = real(own["sparsity"].iloc[0])
        if not missing(sparsity):
            cells.append(TextCell(row, "sparsity, %", f"{100 * sparsity:.1f}"))
        cells += [_mean(row, words, own, metric) for metric, words in _MEANS.items()]
        cells += _measurements(row, name, result.variants_table)
    n = found["task"].nunique()
    known = {cell.column for cell in cells}
    columns = ["sparsity, %", *_MEANS.values(), *(words for words, _ in _MEASURED.values())]
    shown = [column for column in columns if column in known]
    return {
        "title": f"{many(n, 'attribute')}, {many(len(order), 'variant')}",
        "description": (
            f"Table of {many(len(order), 'variant')}: {', '.join(shown)}; means over "
            f"{many(n, 'attribute')}."
        ),
        **text_table(cells, shown, step=128),
    }


def _mean(row: str, column: str, own: pd.DataFrame, metric: str) -> TextCell:
    rows: list[dict[str, Any]] = records(at(own[own["task"].isna()], metric))
    if not rows or missing(rows[0]["value"]):
        why = str(rows[0]["status"]) if rows else "not measured"
        return TextCell(row, column, "×", why=why)
    middle, low, high = (100 * real(rows[0][name]) for name in ("value", "low", "high"))
    ends = "" if missing(low) or missing(high) else f" [{low:.1f}, {high:.1f}]"
    return TextCell(row, column, f"{middle:.1f}{ends}")


def _measurements(row: str, variant: str, table: pd.DataFrame | None) -> list[TextCell]:
    import pandas as pd

    if table is None:
        return []
    own = table[table["variant"].astype(str) == variant]
    cells = []
    for name, (column, scale) in _MEASURED.items():
        if name in own:
            value = real(pd.to_numeric(own[name], errors="coerce").mean())
            if not missing(value):
                cells.append(TextCell(row, column, number(scale * value)))
    return cells
