"""Populations: thirty members a side, and the shape of a published table of forty models."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.lines import Line
from benchmarks.measure import Settings
from benchmarks.population_tables import (
    Populations,
    one_teacher_ten_methods,
    parquet,
    thirty_and_thirty,
)
from benchmarks.timed_audit import in_fresh_process

TITLE = "Populations"
SETTING = (
    "Both scopes, 2,000 replicates, from a wide Parquet file and a variants table to results and "
    "report in a fresh process; members agree on most examples, as trained models do. 30 + 30: "
    "100,000 examples, 10 classes, 2 group columns, without and with scores (AUC, calibration). "
    "1 + 10 × 4: one teacher and ten methods of four members, 10,000 examples, 100 classes, the "
    "shape of Simon Says, Table 3. Memory is the peak of the whole process, libraries and all."
)
ROWS_OF_THIRTY, ROWS_OF_METHODS = 100_000, 10_000
LIMIT_THIRTY_S, LIMIT_METHODS_S, LIMIT_MB = 15.0, 20.0, 2000.0
STAGES = ("align", "count", "compare", "tables", "report")


def run(settings: Settings) -> list[Line]:
    rows = settings.rows_or(ROWS_OF_THIRTY)
    methods = one_teacher_ten_methods(settings.rows_or(ROWS_OF_METHODS))
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="fairweight-bench-") as name:
        for title, shape, limit in (
            ("30 + 30 members", thirty_and_thirty(rows), LIMIT_THIRTY_S),
            ("30 + 30 with scores", thirty_and_thirty(rows, scores=True), LIMIT_THIRTY_S),
            ("1 + 10 × 4 members", methods, LIMIT_METHODS_S),
        ):
            lines += _lines(Path(name), title, shape, limit, settings.n_boot)
    return lines


def _lines(folder: Path, title: str, shape: Populations, limit: float, n_boot: int) -> list[Line]:
    table, variants = parquet(folder, shape)
    groups = ",".join(shape.group_names)
    found = in_fresh_process(str(table), str(folder / "audit"), n_boot, groups, str(variants))
    total = found["total"]
    return [
        Line(f"{title}: audit and report", total, "limit", limit, target=1.0),
        Line(f"{title}: processor time of it", found["cpu"], "its wall time", total),
        Line(f"{title}: memory", found["peak_mb"], "limit", LIMIT_MB, "MB", target=1.0),
        *(Line(f"{title}: {stage}", found[stage], "whole", total) for stage in STAGES),
    ]
