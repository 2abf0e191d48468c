"""A choice as a folder: choice.json, its tables, and the figures that it can fill."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fairweight.report.choice.machine import to_json
from fairweight.tables.write import atomic_directory

if TYPE_CHECKING:
    from fairweight.auditing.choose.chosen import Choice

FIGURES = ("PA-F4a", "PA-F4b", "FW-5")


def save(
    choice: Choice, folder: str | Path, command: str | None = None, *, overwrite: bool = False
) -> None:
    """Write everything, whole or not at all; files of others are replaced with `overwrite` only."""
    from fairweight.auditing.choose.as_result import as_result
    from fairweight.report.figures import draw
    from fairweight.report.figures.export import rendered
    from fairweight.report.tables import write_frames

    text = to_json(choice, command)
    result = as_result(choice)
    target = atomic_directory(folder, completion=("choice.json",), overwrite=overwrite)
    with target as unfinished:
        write_frames(choice.tables, unfinished / "tables")
        for name in FIGURES:
            drawing = draw(name, result)
            if drawing.spec is not None:
                place = unfinished / "figures" / f"{name}.svg"
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(rendered(drawing.spec, ".svg"))
        (unfinished / "choice.json").write_text(text, encoding="utf-8")
