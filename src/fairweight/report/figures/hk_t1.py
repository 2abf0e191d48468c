"""HK-T1: accuracy and the number of exemplars at every level of compression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import NOTHING, missing, real
from fairweight.report.figures.explained import at_cut, cut_name, cuts, explained, noted
from fairweight.report.figures.parts import label, labels
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.sparsity import by_level
from fairweight.report.figures.text_table import NONE, WORSE, TextCell, text_table
from fairweight.report.numbers import count, p_value, percent

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

_SPARSITY, _ACCURACY, _P = "sparsity", "accuracy, %", "p"
_FLOOR, _MATCHED = "retraining alone, %", "compressed, %"


@figure(
    "HK-T1",
    title="Accuracy and exemplars by level",
    caption=(
        "Number of exemplars by each way of choosing them, and their share of the test data. "
        "Retraining alone: the share that the first way finds between dense and dense models, "
        "with the middle 95 % over splits; compressed: the share between dense and compressed "
        "models at the same numbers of members, which are fewer than there are. Orange: beyond "
        "the splits. p: whether compressed members differ from dense ones more than relabelled "
        "members do. A cut may choose fewer than asked for: an example on which nothing differs "
        "is never an exemplar."
    ),
    explains=True,
    once=True,
)
def counts_by_level(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    found = explained(result, "exemplar_counts", None, task)
    if isinstance(found, Absent):
        return found
    ways = cuts(found)
    levels = by_level(result)
    order = [name for name in levels if name in set(found["variant"])]
    overall = _accuracies(result, task)
    cells: list[TextCell] = []
    for text, name in zip(labels(order), order, strict=True):
        own = found[found["variant"] == name]
        sparsity = levels[name]
        if sparsity is not None:
            cells.append(TextCell(text, _SPARSITY, f"{sparsity:.3g}"))
        if name in overall:
            cells.append(TextCell(text, _ACCURACY, overall[name]))
        for way in ways:
            rows = records(at_cut(own, way))
            if rows:
                cells += _cells(text, way, rows[0], first=way == ways[0])
    present = {cell.column for cell in cells}
    columns = [_SPARSITY, _ACCURACY, cut_name(*ways[0]), _FLOOR, _MATCHED, _P]
    columns += [cut_name(*way) for way in ways[1:]]
    many = sum(cell.ink == WORSE for cell in cells)
    return {
        "title": f"{count(len(order))} variants against {label(result.baseline)}",
        "description": (
            f"Table of {count(len(order))} variants: accuracy and number of exemplars, chosen in "
            f"{count(len(ways))} ways. {count(many)} shares exceed what retraining alone gives."
        ),
        **text_table(cells, [c for c in columns if c in present], step=116),
    }


def _accuracies(result: AuditResult, task: str | None) -> dict[str, str]:
    found = explained(result, "exemplar_accuracy", None, task)
    if isinstance(found, Absent):
        return {}
    every: pd.DataFrame = found[found["part"] == "all"].drop_duplicates("variant")
    return {row["variant"]: _interval(row, "compressed") for row in records(every)}


def _interval(row: dict[str, Any], side: str) -> str:
    if missing(row[side]):
        return NOTHING
    low, high = real(row[f"{side}_low"]), real(row[f"{side}_high"])
    ends = "" if missing(low) or missing(high) else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{100 * real(row[side]):.1f}{ends}"


def _cells(
    heading: str, way: tuple[str, float | None], row: dict[str, Any], *, first: bool
) -> list[TextCell]:
    column = cut_name(*way)
    why = noted(row)
    if missing(row["n_exemplars"]):
        return [TextCell(heading, column, "×", why=why)]
    said = f"{count(row['n_exemplars'])} ({percent(real(row['share']), 2)})"
    made = [TextCell(heading, column, said, why=why)]
    if not first:
        return made
    floor, matched = real(row["floor"]), real(row.get("matched"))
    low, high = real(row["floor_low"]), real(row["floor_high"])
    if missing(floor):
        return [*made, TextCell(heading, _FLOOR, NOTHING, why=why)]
    ends = "" if missing(low) else f" [{100 * low:.2f}, {100 * high:.2f}]"
    return [
        *made,
        TextCell(heading, _FLOOR, f"{100 * floor:.2f}{ends}"),
        TextCell(heading, _MATCHED, _share(matched), WORSE if matched > high else NONE),
        TextCell(heading, _P, p_value(real(row["p_retraining"]), bare=True)),
    ]


def _share(share: float) -> str:
    return NOTHING if missing(share) else f"{100 * share:.2f}"
