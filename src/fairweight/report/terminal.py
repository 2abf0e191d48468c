"""The ten-second summary for a terminal."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from fairweight.report.finding import findings
from fairweight.report.numbers import count, shown
from fairweight.report.sentences import Sentence, Topic, reading, sentences

if TYPE_CHECKING:
    from rich.console import Console, Group, RenderableType

    from fairweight.auditing.result import AuditResult

_HEADINGS: dict[Topic, str] = {
    "accuracy": "Overall",
    "groups": "Groups",
    "loses": "Loses",
    "pays more": "Pays more",
    "labels": "Labels",
    "gains": "Gains",
    "cannot tell": "Cannot tell",
}
_STYLES: dict[Topic, str] = {"loses": "bold", "pays more": "bold", "cannot tell": "dim"}


def show(result: AuditResult, console: Console, *, report: str | None = None) -> None:
    """Print the summary and where the report is."""
    from rich.text import Text

    console.print(summary(result))
    if report is not None:
        # Not folded to the width: a path that is broken up cannot be copied.
        console.print(Text(f"Report: {report}", style="bold"), soft_wrap=True)


def summary(
    result: AuditResult,
    *,
    limit: int = 5,
    max_variants: int = 5,
    max_notes: int = 5,
) -> Group:
    """A panel per variant, what holds for all of them, and notes.

    Every name is placed as plain text, so markup and escape sequences in names have no effect.
    """
    from rich.console import Group
    from rich.text import Text

    found = findings(result)
    parts: list[RenderableType] = []
    shared: list[str] = []
    for finding in found[:max_variants]:
        said = sentences(finding, limit=limit)
        parts.append(_panel(said))
        shared += [s.text for s in said if s.topic == "scope" and s.text not in shared]
    if len(found) > max_variants:
        parts.append(Text(_left_out(len(found) - max_variants, "variant")))
    if found:
        shared.insert(0, reading(found[0]))
    parts += [Text(line, style="dim") for line in shared]
    parts += [Text(f"Note: {shown(note)}", style="yellow") for note in result.notes[:max_notes]]
    if len(result.notes) > max_notes:
        parts.append(Text(_left_out(len(result.notes) - max_notes, "note"), style="yellow"))
    return Group(*parts)


def _left_out(number: int, what: str) -> str:
    """What the terminal does not show.

    >>> _left_out(1, "variant"), _left_out(3, "note")
    ('1 more variant is in the report.', '3 more notes are in the report.')
    """
    return f"{count(number)} more {what}" + (" is" if number == 1 else "s are") + " in the report."


def _panel(said: tuple[Sentence, ...]) -> RenderableType:
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    title = ""
    for topic, group in groupby(said, key=lambda s: s.topic):
        lines = [sentence.text for sentence in group]
        if topic == "pair":
            title = lines[0].removesuffix(".")
            continue
        if topic == "scope":
            continue
        heading = Text(_HEADINGS[topic], style="cyan")
        for line in lines:
            grid.add_row(heading, Text(line, style=_STYLES.get(topic, "")))
            heading = Text("")
    return Panel(grid, title=Text(title, style="bold"), title_align="left", expand=True)
