"""Experiments of a study that differ in one thing, side by side: one stage of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairweight.runs.context import Context
from fairweight.studies.drawings import draw_all

FIGURES = ("IO-F3", "IO-F4")


def run(spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: Context) -> None:
    """Put the attributes of all audits into one table, and draw it."""
    from fairweight.auditing.explain.attributes import settings_table
    from fairweight.report.machine import from_json
    from fairweight.report.tables import write_frames

    audits = []
    for number, ((name, setting), folder) in enumerate(
        zip(spec["settings"], inputs.values(), strict=True)
    ):
        context.progress(number, len(inputs), name)
        text = (folder / "audit.json").read_text(encoding="utf-8")
        audits.append((setting, from_json(text)))
    tables = {"settings": settings_table(audits)}
    write_frames(tables, room / "tables")
    together = replace(audits[0][1], explanations=tables)
    draw_all(together, FIGURES, [None], room / "figures")
