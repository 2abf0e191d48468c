"""A verdict on a terminal: the outcome, then one bound per row, what is wrong first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.report.gate.words import (
    deciding_bound,
    endpoints,
    headline,
    how_to_read_bounds,
    passing,
    standing,
    subject,
)
from fairweight.report.numbers import count, shown

if TYPE_CHECKING:
    from rich.console import Console

    from fairweight.auditing.decide.gate import Verdict

STYLES = {"pass": "green", "fail": "bold red", "cannot tell": "yellow"}


def show_verdict(verdict: Verdict, console: Console, *, limit: int = 20) -> None:
    """Print the verdict; at most `limit` endpoints of each variant."""
    from rich.table import Table
    from rich.text import Text

    console.print(Text(f"Gate: {headline(verdict)}", style=STYLES[verdict.outcome]))
    named = passing(verdict)
    if named is not None:
        console.print(Text(named))
    for variant in verdict.variants:
        console.print(Text(standing(verdict, variant), style="bold"))
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1, overflow="fold")
        rows = endpoints(verdict, variant)
        for row in rows[:limit]:
            told = f"{subject(row)} (n = {count(row['n'])}): {deciding_bound(row)}."
            decision = row["decision"]
            grid.add_row(Text(f"  {decision}", style=STYLES[decision]), Text(told))
        console.print(grid)
        if len(rows) > limit:
            console.print(Text(f"  {count(len(rows) - limit)} more (--json, --markdown)"))
    console.print(Text(how_to_read_bounds(verdict), style="dim"))
    for note in verdict.notes:
        console.print(Text(f"Note: {shown(note)}", style="yellow"))
