"""Figures of a stage as SVG files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


def draw_all(
    result: AuditResult, ids: Sequence[str], variants: Sequence[str | None], folder: Path
) -> None:
    """Draw figures of variants into `ID-VARIANT.svg`, those of all variants together into `ID.svg`.

    A figure that this result has no numbers for is left out.
    """
    from fairweight.report.figures import draw, figures
    from fairweight.report.figures.export import rendered
    from fairweight.tables.write import atomic_file
    from fairweight.trust import inside

    together = {figure.id for figure in figures() if figure.once}
    for id in ids:
        for variant in [None] if id in together else variants:
            drawing = draw(id, result, variant, None)
            if drawing.spec is None:
                continue
            folder.mkdir(parents=True, exist_ok=True)
            path = inside(folder, f"{id}.svg" if variant is None else f"{id}-{variant}.svg")
            with atomic_file(path, "wb") as file:
                file.write(rendered(drawing.spec, path.suffix))
