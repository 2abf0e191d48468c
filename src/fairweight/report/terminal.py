"""What is printed on a terminal: the summary of an audit, the verdict of a gate."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from fairweight.base.wording import counted, shown
from fairweight.report.brief import Brief, Line
from fairweight.report.gate import (
    deciding_bound,
    decision,
    endpoints,
    headline,
    how_to_read,
    passing,
    standing,
    subject,
)
from fairweight.report.numbers import count
from fairweight.report.sections import Section
from fairweight.report.sentences import Topic
from fairweight.report.view_model import View, judged, view

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult

_STYLES: dict[Topic, str] = {
    "leak": "bold yellow", "most": "bold", "pays more": "bold", "cannot tell": "dim",
}  # fmt: skip
LEAST_WIDTH = 72  # for two scopes beside each other


def show(
    result: AuditResult,
    console: Console,
    *,
    report: str | None = None,
    lead: View | None = None,
    verdict: Verdict | None = None,
    verbose: bool = False,
) -> None:
    """Print what is read first and where the report is; everything where it is to be `verbose`."""
    made = judged(lead or view(result), result, verdict)
    console.print(five_lines(made.brief))
    if verbose:
        console.print(summary(made))
    elif made.notes:
        number = counted(len(made.notes), "note")
        console.print(Text(f"{number}: -v prints {'it' if number == '1 note' else 'them'}."))
    if report is not None:
        # Not folded to the width: a path that is broken up cannot be copied.
        more = "" if verbose else " (-v for everything here)"
        console.print(Text.assemble((f"Report: {report}", "bold"), more), soft_wrap=True)
    if verdict is None:
        folder = "" if report is None else f" {shlex.quote(str(Path(report).parent))}"
        said = [f"To decide by a policy: fairweight gate --init{folder} > policy.toml"]
        said += [f"Then: fairweight gate{folder} --policy policy.toml"] if folder else []
        for line in said:
            console.print(Text(line), soft_wrap=True)


def five_lines(brief: Brief) -> Group:
    """What is read first: the five lines, a line per variant, the caveats.

    Every name is placed as plain text, so markup and escape sequences in names have no effect.
    """
    lines = _rows(brief.lines, "cyan")
    variants = _rows(brief.variants, "bold")
    caveats = [Text(caveat.text, style="dim") for caveat in brief.caveats]
    blank = Text("")
    return Group(Text(brief.compared, style="bold"), blank, lines, blank, variants, blank, *caveats)


def _rows(lines: Sequence[Line], style: str) -> Table:
    """Headings with their texts beside them; above them where the terminal is narrow."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(overflow="fold", max_width=max(len(line.heading) for line in lines))
    grid.add_column(ratio=1, overflow="fold")
    for line in lines:
        for part, heading in zip_longest(line.parts, [line.heading], fillvalue=""):
            grid.add_row(Text(heading, style=style), Text(part))
    return grid


def summary(made: View, *, max_variants: int = 5, max_notes: int = 20) -> Group:
    """A panel per variant, what holds for all of them, and notes."""
    first = made.sections[:max_variants]
    parts: list[RenderableType] = []
    for section in first:
        title = Text(section.pair.removesuffix("."), style="bold")
        parts.append(Panel(_Finding(section), title=title, title_align="left", expand=True))
    if made.several and len(made.sections) > max_variants:
        parts.append(Text(_left_out(len(made.sections) - max_variants, "variant")))
    behind = [made.reading, *made.explanations.values(), *made.scope]
    parts += [Text(line, style="dim") for line in behind]
    parts += [Text(f"Note: {shown(note)}", style="yellow") for note in made.notes[:max_notes]]
    if len(made.notes) > max_notes:
        parts.append(Text(_left_out(len(made.notes) - max_notes, "note"), style="yellow"))
    return Group(*parts)


def _left_out(number: int, what: str) -> str:
    """What the terminal does not show.

    >>> _left_out(1, "variant"), _left_out(3, "note")
    ('1 more variant is in the report.', '3 more notes are in the report.')
    """
    return f"{count(number)} more {what}" + (" is" if number == 1 else "s are") + " in the report."


@dataclass(frozen=True)
class _Finding:
    """What is said of a variant; both scopes beside each other where there is room."""

    section: Section

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        sides = self.section.sides
        heads = [
            Text.assemble((f"{side.title}: ", "bold"), (side.question, "dim")) for side in sides
        ]
        if options.max_width < LEAST_WIDTH:
            for head, side in zip(heads, sides, strict=True):
                yield head
                yield self._grid([(s.topic, s.heading, [s.lines]) for s in side.said])
        elif sides:
            yield self._grid(self.section.rows, heads)
        if sides and self.section.said:
            yield Text("")
        if self.section.said:
            yield self._grid([(s.topic, s.heading, [s.lines]) for s in self.section.said])

    def _grid(
        self,
        rows: Iterable[tuple[Topic, str, Sequence[tuple[str, ...]]]],
        heads: Sequence[RenderableType] = (),
    ) -> Table:
        """A topic with the lines of each column, the heading beside the first."""
        said = [*self.section.said, *(s for side in self.section.sides for s in side.said)]
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, min_width=max(len(s.heading) for s in said))
        for _ in heads or [""]:
            grid.add_column(ratio=1, overflow="fold")
        if heads:
            grid.add_row("", *heads)
        for topic, heading, columns in rows:
            first, style = Text(heading, style="cyan"), _STYLES.get(topic, "")
            for lines in zip_longest(*columns, fillvalue=""):
                grid.add_row(first, *(Text(line, style=style) for line in lines))
                first = Text("")
        return grid


# A verdict on a terminal: the outcome, then one bound per row, what is wrong first.

STYLES = {"pass": "green", "fail": "bold red", "cannot tell": "yellow"}


def show_verdict(verdict: Verdict, console: Console, *, limit: int = 20) -> None:
    """Print the verdict; at most `limit` endpoints of each variant."""
    console.print(Text(f"Gate: {headline(verdict)}", style=STYLES[verdict.outcome]))
    named = passing(verdict)
    if named is not None:
        console.print(Text(named))
    for variant in verdict.variants:
        console.print(Text(decision(verdict, variant)))
    for variant in verdict.variants:
        console.print(Text(standing(verdict, variant), style="bold"))
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1, overflow="fold")
        rows = endpoints(verdict, variant)
        for row in rows[:limit]:
            size = "" if row["n"] is None else f" (n = {count(row['n'])})"
            told = f"{subject(row)}{size}: {deciding_bound(row)}."
            outcome = row["decision"]
            grid.add_row(Text(f"  {outcome}", style=STYLES[outcome]), Text(told))
        console.print(grid)
        if len(rows) > limit:
            console.print(Text(f"  {count(len(rows) - limit)} more (--json, --markdown)"))
    console.print(Text(how_to_read(verdict, bounds=True), style="dim"))
    for note in verdict.notes:
        console.print(Text(f"Note: {shown(note)}", style="yellow"))
