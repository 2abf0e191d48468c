"""HK-T2: accuracy on exemplars by percentile, at every level of compression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import missing, real
from fairweight.report.figures.explained import at_cut, cut_name, cuts, explained, untold
from fairweight.report.figures.parts import label, labels
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.sparsity import by_level
from fairweight.report.figures.text_table import BETTER, NONE, WORSE, TextCell, text_table
from fairweight.report.numbers import count

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

_ALL, _OTHERS = "all", "no exemplars"


@figure(
    "HK-T2",
    title="Accuracy on exemplars by level",
    caption=(
        "Mean accuracy in percent of dense and compressed members, with intervals over examples: "
        "on all, on those that are no exemplars (of the first way of choosing), and on exemplars. "
        "Coloured: the interval of the shift excludes 0 (orange: compressed is worse). That both "
        "are worse on exemplars follows from how these are chosen."
    ),
    more=True,
    explains=True,
    once=True,
)
def accuracy_by_level(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    found = explained(result, "exemplar_accuracy", None, task)
    if isinstance(found, Absent):
        return found
    ways = cuts(found)
    order = [name for name in by_level(result) if name in set(found["variant"])]
    cells: list[TextCell] = []
    for text, name in zip(labels(order), order, strict=True):
        rows = _rows(found[found["variant"] == name], ways)
        for side, word in (("baseline", "dense"), ("compressed", "compressed")):
            heading = f"{text}: {word}"
            cells += [_cell(heading, column, row, side) for column, row in rows.items()]
    columns = list(dict.fromkeys(cell.column for cell in cells))
    return {
        "title": f"accuracy in percent; {count(len(order))} variants against "
        f"{label(result.baseline)}",
        "description": (
            f"Table of {count(len(order))} variants: accuracy of dense and compressed members on "
            f"all examples, on those that are no exemplars, and on {count(len(ways))} kinds of "
            "exemplars."
        ),
        **text_table(cells, columns, step=118),
    }


def _rows(frame: pd.DataFrame, ways: list[tuple[str, float | None]]) -> dict[str, dict[str, Any]]:
    first = at_cut(frame, ways[0])
    made = {}
    for part, column in (("all", _ALL), ("others", _OTHERS)):
        for row in records(first[first["part"] == part]):
            made[column] = row
    for way in ways:
        own = at_cut(frame, way)
        for row in records(own[own["part"] == "exemplars"]):
            made[cut_name(*way)] = row
    return made


def _cell(heading: str, column: str, row: dict[str, Any], side: str) -> TextCell:
    why = untold(row)
    n = f"n = {count(row['n'])}"
    if missing(row[side]):
        return TextCell(heading, column, f"× ({n})", why=why)
    low, high = real(row[f"{side}_low"]), real(row[f"{side}_high"])
    said = f"{100 * real(row[side]):.1f}"
    if not (missing(low) or missing(high)):
        said += f" [{100 * low:.1f}, {100 * high:.1f}]"
    ink = NONE
    if side == "compressed" and why is None:
        ink = (
            WORSE if real(row["shift_high"]) < 0 else BETTER if real(row["shift_low"]) > 0 else NONE
        )
    return TextCell(heading, column, said, ink, why=n if why is None else f"{n}; {why}")
