"""The dense and the compressed numbers side by side: two short tables per variant."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from fairweight.report.finding import Finding
from fairweight.report.members import worded
from fairweight.report.numbers import (
    NOTHING,
    count,
    is_share,
    missing,
    number,
    real,
    shift_of,
    shown,
    size_in_points,
    text,
    value_of,
)
from fairweight.report.page_tables import Cell, PageTable, finite, name_cell
from fairweight.report.rows import Scope, at_task, records, select
from fairweight.report.sentences import SIDES

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

# What a reader looks for first; every other number is in the tables at the end.
_OVERALL = (
    "accuracy", "balanced_accuracy", "recall", "precision", "fpr", "fnr", "kappa", "auc",
    "ece_top_label", "calibration_gap", "calibration_error_sq", "class_gap",
)  # fmt: skip
_GROUPING = ("worst_group", "group_gap")


def before_after(result: AuditResult, finding: Finding) -> PageTable | None:
    """Headline metrics of baseline and variant with their shift in every scope."""
    sides = [verdict.scope for verdict in finding.families]
    shifts = {side: _shifts(result, finding.variant, side) for side in sides}
    rows = _rows(result, finding.variant, "model")
    if not rows:
        return None
    groups = any(not missing(row["group"]) for row in rows)
    floors = any(not missing(row["noise_floor"]) for row in rows)
    several = len(sides) > 1
    members = finding.members.kind
    names = [worded(SIDES[side], members).lower() for side in sides]
    headings = (
        "metric",
        *(["of"] if groups else []),
        shown(result.baseline),
        shown(finding.variant),
        *(f"shift{', ' + name if several else ''} [interval]" for name in names),
        *([worded("retraining alone, up to", members)] if floors else []),
    )
    cells = tuple(
        (
            name_cell(row["metric"]),
            *([name_cell(row["group"])] if groups else []),
            _value(row, "baseline"),
            _value(row, "compressed"),
            *(shifts[side].get(_key(row), Cell(NOTHING)) for side in sides),
            *([_floor(row)] if floors else []),
        )
        for row in rows
    )
    return PageTable("", "before and after", headings, cells, len(cells), "tables/results.csv")


def calibration(result: AuditResult, finding: Finding) -> PageTable | None:
    """Calibration error beside that of a calibrated model, and the gap, by group."""
    from fairweight.auditing.compare.reliability import if_calibrated

    expected = if_calibrated(result.reliability)
    baseline, variant = result.baseline, finding.variant
    cells: list[tuple[Cell, ...]] = []
    for definition, by in product(("ece", "ece_top_label"), ("overall", "group")):
        if cells and by == "overall":
            break  # binary labels: the probability of the positive class says it all
        gaps = {
            (text(row["task"]), text(row["group"])): row
            for row in records(select(result, variant, "calibration_gap", by))
        }
        for row in records(select(result, variant, definition, by)):
            key = text(row["task"]), text(row["group"])
            names = [(side, key[0], definition, key[1]) for side in (baseline, variant)]
            if missing(row["baseline"]) or not all(name in expected for name in names):
                continue
            gap = gaps.get(key, {})
            shift, low, high = (real(gap.get(name)) for name in ("shift", "ci_low", "ci_high"))
            status = text(gap.get("status"))
            cells.append(
                (
                    *([name_cell(key[0])] if result.tasks else []),
                    name_cell(key[1] or "everyone"),
                    Cell(count(row["n"]), finite(row["n"])),
                    *(
                        cell
                        for side, name in zip(("baseline", "compressed"), names, strict=True)
                        for cell in (_value(row, side), _percent(expected[name]))
                    ),
                    *(_percent(real(gap.get(side))) for side in ("baseline", "compressed")),
                    Cell(
                        shift_of("calibration_gap", shift, low, high),
                        finite(shift),
                        status if missing(low) and status != "ok" else None,
                    ),
                )
            )
    if not cells:
        return None
    headings = (
        *(["task"] if result.tasks else []),
        "of",
        "n",
        *(
            heading
            for side in (shown(baseline), shown(variant))
            for heading in (f"ECE, {side}", "if calibrated")
        ),
        f"gap, {shown(baseline)}",
        f"gap, {shown(variant)}",
        "shift of the gap [interval]",
    )
    return PageTable("", "calibration", headings, tuple(cells), len(cells), "tables/results.csv")


def _percent(value: float) -> Cell:
    return Cell(value_of("calibration_gap", value), finite(value))


def _rows(result: AuditResult, variant: str, scope: Scope) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for metrics, by in ((_OVERALL, "overall"), (_GROUPING, "grouping")):
        rows = at_task(select(result, variant, metrics, by, scope), result, None)
        known = records(rows[rows["baseline"].notna()])
        found += sorted(known, key=lambda row: metrics.index(row["metric"]))
    return found


def _key(row: dict[str, Any]) -> tuple[str, str | None]:
    return str(row["metric"]), text(row["group"])


def _shifts(result: AuditResult, variant: str, scope: Scope) -> dict[Any, Cell]:
    found = {}
    for row in _rows(result, variant, scope):
        shift, low, high = (real(row[name]) for name in ("shift", "ci_low", "ci_high"))
        status = text(row["status"])
        why = status if missing(low) and status != "ok" else None
        said = shift_of(str(row["metric"]), shift, low, high)
        found[_key(row)] = Cell(said, finite(shift), why)
    return found


def _value(row: dict[str, Any], key: str) -> Cell:
    said = value_of(str(row["metric"]), real(row[key]), real(row["shift"]))
    return Cell(said, finite(row[key]))


def _floor(row: dict[str, Any]) -> Cell:
    floor = real(row["noise_floor"])
    if missing(floor):
        return Cell(NOTHING)
    said = size_in_points(floor) if is_share(str(row["metric"])) else number(floor)
    return Cell(said, finite(floor))
