"""An audit as a folder: the page, the tables, and everything as JSON."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairweight.auditing.decide.gate import Verdict
    from fairweight.auditing.result import AuditResult


def names() -> tuple[str, ...]:
    """The files that every audit's folder has."""
    from fairweight.report.tables import TABLES

    return ("report.html", "audit.json", *(f"tables/{name}.csv" for name in TABLES))


def save(
    result: AuditResult,
    directory: str | Path,
    verdict: Verdict | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write report.html, tables/ and audit.json; audit.json comes last and marks completion.

    Parameters
    ----------
    overwrite
        Replace files too that fairweight did not write, or that were changed since.
    """
    from fairweight.report.html import render
    from fairweight.report.machine import to_json, write_tables
    from fairweight.tables.write import atomic_directory

    target = atomic_directory(Path(directory), overwrite=overwrite)
    with target as room, ThreadPoolExecutor(1) as beside:
        # DuckDB writes the tables while the page is made.
        tables = beside.submit(write_tables, result, room / "tables")
        (room / "report.html").write_text(render(result, verdict), encoding="utf-8")
        (room / "audit.json").write_text(to_json(result), encoding="utf-8")
        tables.result()
