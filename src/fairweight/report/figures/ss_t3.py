"""SS-T3: distances, exemplars, CEV, SDE and accuracy, one row per variant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import NOTHING, missing, real, text
from fairweight.report.figures.explained import explained, noted
from fairweight.report.figures.measured import Row, pairs_of, why_missing
from fairweight.report.figures.parts import label, labels
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.sparsity import by_level
from fairweight.report.figures.text_table import NONE, WORSE, TextCell, text_table
from fairweight.report.numbers import count, number

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

_KINDS = ("unanimous", "modal")
_METRICS = {"cev": "CEV", "sde": "SDE", "accuracy": "accuracy, %"}


@figure(
    "SS-T3",
    title="Distances, exemplars, CEV, SDE and accuracy",
    caption=(
        "Distances of each variant's representations to those of its own dense models, by block, "
        "as means over members; first row: dense against dense, which retraining alone gives. "
        "Exemplars: their number, behind it the share at the sizes of the splits and, "
        "in brackets, what retraining alone gives there; orange: beyond that. Unanimous is how "
        "the paper counts (no compressed member gives the dense answer), and falls with the "
        "number of members. CEV, SDE and accuracy with their intervals (of these models); below "
        "1,000 examples per class CEV and SDE have none. The paper's column of accuracies is "
        "permuted."
    ),
    explains=True,
    once=True,
)
def distances_and_bias(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    order = list(by_level(result))
    base, *rest = labels([result.baseline, *order])
    rows = dict(zip(order, rest, strict=True))
    cells = [*_distances(result, base, rows, task), *_exemplars(result, rows, task)]
    bias = _metrics(result, base, rows, task)
    if not cells and not any(cell.column in ("CEV", "SDE") for cell in bias):
        return Absent("there are neither distances nor exemplars, CEV or SDE")
    cells += bias
    columns = list(dict.fromkeys(cell.column for cell in cells))
    # Cells of one row stand together, so that rows keep the order of the variants.
    cells.sort(key=lambda cell: [base, *rest].index(cell.row))
    plural = "variant" if len(order) == 1 else "variants"
    return {
        "title": f"{count(len(order))} {plural} against {label(result.baseline)}",
        "description": (
            f"Table of {count(len(order))} {plural}: {', '.join(columns)}. "
            f"{count(sum(cell.ink == WORSE for cell in cells))} numbers of exemplars lie beyond "
            "what retraining alone gives."
        ),
        **text_table(cells, columns, step=144),
    }


def _distances(
    result: AuditResult, base: str, rows: dict[str, str], task: str | None
) -> list[TextCell]:
    found = explained(result, "similarity_points", None, task)
    if isinstance(found, Absent):
        return []
    cells: list[TextCell] = []
    for (measure, block), own in found.groupby(["measure", "block"], sort=False):
        column = label(f"{str(measure).upper()} {block}")
        floor = real(own["floor"].iloc[0])
        cells.append(TextCell(base, column, NOTHING if missing(floor) else f"{floor:.3f}"))
        for row in records(own):
            if row["variant"] in rows:
                cells.append(_distance(rows[row["variant"]], column, real(row["distance"])))
    return cells


def _distance(row: str, column: str, distance: float) -> TextCell:
    if missing(distance):
        return TextCell(row, column, "×", why="no member has this distance")
    return TextCell(row, column, f"{distance:.3f}")


def _exemplars(result: AuditResult, rows: dict[str, str], task: str | None) -> list[TextCell]:
    found = explained(result, "exemplar_counts", None, task)
    if isinstance(found, Absent):
        return []
    return [
        _count(rows[row["variant"]], kind, row)
        for kind in _KINDS
        for row in records(found[found["kind"] == kind])
        if row["variant"] in rows
    ]


def _count(heading: str, kind: str, row: dict[str, Any]) -> TextCell:
    why = noted(row)
    if missing(row["n_exemplars"]):
        return TextCell(heading, kind, "×", why=why)
    said = count(row["n_exemplars"])
    matched, floor, high = (real(row[name]) for name in ("matched", "floor", "floor_high"))
    if missing(floor) or missing(matched):
        return TextCell(heading, kind, said, why=why)
    said += f"; {100 * matched:.2f} % ({100 * floor:.2f} %)"
    return TextCell(heading, kind, said, WORSE if matched > high else NONE, why=why)


def _metrics(
    result: AuditResult, base: str, rows: dict[str, str], task: str | None
) -> list[TextCell]:
    cells: list[TextCell] = []
    for metric, column in _METRICS.items():
        found = pairs_of(result, list(rows), metric, "overall", task)
        known = {name: own[None][0] for name, own in found.items() if None in own}
        if metric == "accuracy" and known:
            cells.append(_accuracy(base, column, next(iter(known.values())), "baseline"))
        for name, row in known.items():
            if metric == "accuracy":
                cells.append(_accuracy(rows[name], column, row, "compressed"))
            else:
                cells.append(_composite(rows[name], column, row))
    return cells


def _accuracy(heading: str, column: str, row: Row, side: str) -> TextCell:
    if missing(row[side]):
        return TextCell(heading, column, "×", why=why_missing(row))
    said = f"{100 * real(row[side]):.1f}"
    low, high = real(row[f"{side}_low"]), real(row[f"{side}_high"])
    ends = "" if missing(low) or missing(high) else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return TextCell(heading, column, said + ends)


def _composite(heading: str, column: str, row: Row) -> TextCell:
    """CEV or SDE: comparisons, whose own interval stands where a shift has its."""
    if missing(row["compressed"]) or text(row["status"]) not in (None, "ok"):
        return TextCell(heading, column, "×", why=why_missing(row))
    low, high = real(row["ci_low"]), real(row["ci_high"])
    ends = "" if missing(low) or missing(high) else f" [{number(low)}, {number(high)}]"
    return TextCell(heading, column, number(real(row["compressed"])) + ends)
