"""An audit as a folder: the page, the tables, and everything as JSON."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairweight.auditing.decide.gate import Verdict
    from fairweight.auditing.result import AuditResult


def save(result: AuditResult, directory: str | Path, verdict: Verdict | None = None) -> None:
    """Write report.html, tables/ and audit.json; audit.json comes last and marks completion."""
    from fairweight.report.html import render
    from fairweight.report.machine import to_json, write_tables
    from fairweight.tables.write import atomic_directory

    with atomic_directory(Path(directory)) as room, ThreadPoolExecutor(1) as beside:
        # DuckDB writes the tables while the page is made.
        tables = beside.submit(write_tables, result, room / "tables")
        (room / "report.html").write_text(render(result, verdict), encoding="utf-8")
        (room / "audit.json").write_text(to_json(result), encoding="utf-8")
        tables.result()
