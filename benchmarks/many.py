"""Very many groups, very many classes: what they cost beside ten of each."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.lines import Line
from benchmarks.measure import Settings
from benchmarks.tables import Shape, parquet
from benchmarks.timed_audit import in_fresh_process

TITLE = "Many groups, many classes"
SETTING = (
    "Audits in fresh processes: 10,000 groups × 10 classes on 100,000 rows, and 10 groups × 1,000 "
    "classes on 50,000 rows, each beside 10 groups × 10 classes on as many rows."
)
ROWS_OF_GROUPS, GROUPS = 100_000, 10_000
ROWS_OF_CLASSES, CLASSES = 50_000, 1_000
LIMIT_S, LIMIT_MB = 12.0, 800.0  # of many groups


def run(settings: Settings) -> list[Line]:
    rows = settings.rows_or(ROWS_OF_GROUPS)
    some_rows = settings.rows_or(ROWS_OF_CLASSES)
    cases = (
        # Small runs keep the number of rows per group and per class.
        Shape(rows, GROUPS * rows // ROWS_OF_GROUPS, 10),
        Shape(some_rows, 10, CLASSES * some_rows // ROWS_OF_CLASSES),
    )
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="fairweight-bench-") as name:
        folder = Path(name)
        few: dict[int, dict[str, float]] = {}
        for shape in cases:
            if shape.rows not in few:
                few[shape.rows] = _measured(folder, Shape(shape.rows, 10, 10), settings)
            lines += _lines(shape, _measured(folder, shape, settings), few[shape.rows])
    return lines


def _measured(folder: Path, shape: Shape, settings: Settings) -> dict[str, float]:
    table = parquet(folder, shape)
    return in_fresh_process(str(table), str(folder / "audit"), settings.n_boot)


def _lines(shape: Shape, found: dict[str, float], few: dict[str, float]) -> list[Line]:
    name = f"{shape.groups:,} groups × {shape.classes:,} classes"
    against = "10 × 10"
    audit, few_audit = found["total"] - found["report"], few["total"] - few["report"]
    limits = [
        Line(f"{name}: audit and report", found["total"], "limit", LIMIT_S, target=1.0),
        Line(f"{name}: memory", found["peak_mb"], "limit", LIMIT_MB, "MB", target=1.0),
    ]
    return [
        *(limits if shape.groups > shape.classes else []),
        Line(f"{name}: audit", audit, against, few_audit),
        Line(f"{name}: report", found["report"], against, few["report"]),
        Line(f"{name}: memory", found["peak_mb"], against, few["peak_mb"], "MB"),
    ]
