"""Ten million rows from Parquet: time and memory of an audit, and the counting beside plain SQL."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.lines import Line
from benchmarks.measure import Settings, interleaved
from benchmarks.tables import Shape, bare_count, parquet
from benchmarks.timed_audit import in_fresh_process, libraries_mb

TITLE = "Large tables"
SETTING = (
    "10,000,000 rows, 100 groups, two models, 2,000 replicates, from a Parquet file to results "
    "and report in a fresh process. Memory is the peak of that process less the peak of one that "
    "only loads the libraries. Bare DuckDB: a GROUP BY and count(DISTINCT example_id) on the same "
    "file in the same process."
)
ROWS, GROUPS = 10_000_000, 100
LIMITS_S = {2: 2.5, 10: 4.0}  # by classes, of a wide table
LONG_S, AFTER_COUNTING_S, LIMIT_MB, MOST_OVER_BARE = 10.0, 2.0, 1000.0, 3.0
STAGES = ("load", "align", "count", "compare", "tables", "report")


def run(settings: Settings) -> list[Line]:
    rows = settings.rows_or(ROWS)
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="fairweight-bench-") as name:
        folder = Path(name)
        libraries = libraries_mb()
        for shape in (
            Shape(rows, GROUPS, 2),
            Shape(rows, GROUPS, 10),
            Shape(rows, GROUPS, 10, long=True),
        ):
            lines += _audit_lines(folder, shape, settings.n_boot, libraries)
        for shape in (
            Shape(rows, GROUPS, 10),
            Shape(rows, GROUPS, 10, text_ids=True),
            Shape(rows, GROUPS, 10, long=True),
            Shape(rows, GROUPS, 10, long=True, text_ids=True),
        ):
            lines.append(_counting_line(parquet(folder, shape), shape, settings.rounds))
    return lines


def _audit_lines(folder: Path, shape: Shape, n_boot: int, libraries: float) -> list[Line]:
    table = parquet(folder, shape)
    found = in_fresh_process(str(table), str(folder / "audit"), n_boot)
    name = f"{'long' if shape.long else 'wide'}, {shape.classes} classes"
    total = found["total"]
    limit = LONG_S if shape.long else LIMITS_S[shape.classes]
    after = sum(found[stage] for stage in ("compare", "tables", "report"))
    return [
        Line(f"{name}: audit and report", total, "limit", limit, target=1.0),
        Line(
            f"{name}: everything after counting", after, "limit", AFTER_COUNTING_S,
            target=1.0 if shape.classes == 10 and not shape.long else None,
        ),
        Line(f"{name}: processor time of it", found["cpu"], "its wall time", total),
        Line(
            f"{name}: memory", found["peak_mb"] - libraries, "limit", LIMIT_MB, "MB", target=1.0
        ),
        *(Line(f"{name}: {stage}", found[stage], "whole", total) for stage in STAGES),
    ]  # fmt: skip


def _counting_line(table: Path, shape: Shape, rounds: int) -> Line:
    taken = interleaved({"ours": _ours(table), "bare": _bare(table, shape.long)}, rounds)
    layout = "long" if shape.long else "wide"
    ids = "shuffled text ids" if shape.text_ids else "whole-number ids"
    return Line(
        f"{layout}, {ids}: align and count",
        taken["ours"],
        "bare DuckDB",
        taken["bare"],
        target=MOST_OVER_BARE,
    )


def _ours(table: Path) -> Callable[[], None]:
    from fairweight.auditing.counts.group_by import count
    from fairweight.tables.align import align
    from fairweight.tables.spec import TableSpec, sources_of

    def work() -> None:
        with align(TableSpec(sources_of(str(table)), groups=["grp"])) as aligned:
            count(aligned)

    return work


def _bare(table: Path, long: bool) -> Callable[[], None]:
    import duckdb

    def work() -> None:
        with duckdb.connect() as connection:
            for query in bare_count(table, long=long):
                connection.sql(query).to_arrow_table()

    return work
