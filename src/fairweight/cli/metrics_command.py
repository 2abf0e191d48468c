"""`fairweight metrics`: the registry with its definitions."""

from __future__ import annotations

import json
import math
from typing import Annotated

import typer


def metrics(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="One metric in full.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """List every metric, or define one: formula, direction, range, source, undefined cases.

    All of them in one line each, then one in full:

        fairweight metrics

        fairweight metrics cev
    """
    import fairweight.auditing.metrics as registered
    from fairweight.auditing.metrics.registry import metric

    chosen = [metric(name)] if name else list(registered.registry.metrics())
    rows = [
        {
            "name": entry.name,
            "summary": entry.summary,
            "formula": entry.formula,
            "better": entry.better,
            "range": [_finite(entry.low), _finite(entry.high)],
            "by": list(entry.by),
            "source": entry.source,
            "undefined": entry.undefined,
        }
        for entry in chosen
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, allow_nan=False))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if name:
        grid = Table.grid(padding=(0, 2))
        for key, value in rows[0].items():
            parts = value if isinstance(value, list) else [value]
            shown = ", ".join("∞" if part is None else str(part) for part in parts)
            grid.add_row(Text(key, style="bold"), Text(shown))
        console.print(grid)
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("metric", style="bold", no_wrap=True)
    table.add_column("better")
    table.add_column("what it is")
    for row in rows:
        table.add_row(Text(str(row["name"])), str(row["better"]), Text(str(row["summary"])))
    console.print(table)
    console.print(f"\n{len(rows)} metrics; one in full: fairweight metrics NAME", highlight=False)


def _finite(end: float) -> float | None:
    """An end of a range; None where the range has none (JSON knows no infinity)."""
    return end if math.isfinite(end) else None
