"""Ten tasks, eleven compressed variants: what is stored, and the viewer's first page of it.

python -m benchmarks.tasks
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.lines import Line, plain
from benchmarks.measure import Settings, json_of
from benchmarks.timed_audit import command_in_fresh_process

TITLE = "Ten tasks, eleven variants"
SETTING = (
    "Binary attributes of 2,000 faces: 10 tasks, a dense model and 11 compressed ones, 3 group "
    "columns and an intersection. `fairweight audit` in a fresh process: processor time and the "
    "size of the folder. The overview: the first request to a viewer of that folder in a fresh "
    "process, from the answer's first byte asked for to its last, processor time."
)
NEEDS = ("fastapi", "httpx2")
ROWS, TASKS, VARIANTS = 2_000, 10, 11
STORED_MB, OVERVIEW_S = 15.0, 1.0


def run(settings: Settings) -> list[Line]:
    rows = settings.rows_or(ROWS)
    with tempfile.TemporaryDirectory(prefix="fairweight-bench-") as name:
        table, out = _table(Path(name, "tasks.parquet"), rows), Path(name, "audit")
        words = ["audit", str(table), "--task", "attribute", "--groups", "sex,age,site,sex*age"]
        words += ["--positive", "1", "--baseline", "dense", "--n-boot", str(settings.n_boot)]
        found = command_in_fresh_process([*words, "--out", str(out)])
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
        overview = json_of("benchmarks.first_overview", [str(out)])
    return [
        Line("stored audit", size, "limit", STORED_MB, "MB", target=1.0),
        Line("first overview: processor time", overview["cpu"], "limit", OVERVIEW_S, target=1.0),
        Line("first overview: processor time", overview["cpu"], "second", overview["again"]),
        Line("audit: processor time", found["cpu"], "libraries", overview["libraries"]),
    ]


def _table(path: Path, rows: int) -> Path:
    """A long table by DuckDB, from hashes of its numbers: the same every time."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(f"""
            COPY (
                SELECT i AS example_id, 'task ' || t AS attribute,
                    CASE v WHEN 0 THEN 'dense' ELSE 'variant-' || v END AS variant,
                    (hash(i, t) % 100 < 20 + 5 * t)::INT AS label,
                    ((hash(i, t) % 100 < 20 + 5 * t)
                        <> (hash(i, t, 'w') % 1000 < 60 + 4 * v + 20 * (hash(i) % 7 = 0)::INT))::INT
                        AS prediction,
                    ['f', 'm'][1 + (hash(i, 's') >> 8)::BIGINT % 2] AS sex,
                    ['young', 'middle', 'old'][1 + (hash(i, 'a') >> 8)::BIGINT % 3] AS age,
                    'site ' || ((hash(i, 'p') >> 8)::BIGINT % 6) AS site
                FROM range({rows}) r(i), range({TASKS}) q(t), range({VARIANTS + 1}) w(v)
            ) TO '{path}' (FORMAT parquet)""")
    return path


if __name__ == "__main__":
    print(plain(run(Settings()), judged=True))
