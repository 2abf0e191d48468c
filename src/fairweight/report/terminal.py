"""The ten-second summary for a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import Scope, records
from fairweight.base.wording import NOTHING, missing, shown
from fairweight.report.choice import chance, choice_sentences, margin, term_value
from fairweight.report.finding import findings
from fairweight.report.gate import (
    deciding_bound,
    endpoints,
    headline,
    how_to_read_bounds,
    passing,
    standing,
    subject,
)
from fairweight.report.members import members_of, worded
from fairweight.report.numbers import count, number
from fairweight.report.sentences import (
    HEADINGS,
    QUESTIONS,
    SIDES,
    Sentence,
    Topic,
    reading,
    sentences,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
    from rich.table import Table

    from fairweight.auditing.choose.choice import Choice
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult

_STYLES: dict[Topic, str] = {
    "leak": "bold yellow", "most": "bold", "pays more": "bold", "cannot tell": "dim",
}  # fmt: skip


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
    members = members_of(result)
    for finding in found[:max_variants]:
        said = sentences(finding, limit=limit)
        parts.append(_panel(said, members))
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


def _panel(said: tuple[Sentence, ...], members: str) -> RenderableType:
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    title = next((s.text for s in said if s.topic == "pair"), "").removesuffix(".")
    told = [s for s in said if s.topic in HEADINGS]
    indent = max(len(HEADINGS[s.topic]) for s in told)
    if any(s.scope == "method" for s in told):
        sides = _Sides(tuple(s for s in told if s.scope is not None), indent, members)
        both = [s for s in told if s.scope is None]
        rest = _grid(both, indent, members)
        body: RenderableType = Group(sides, Text(""), rest) if both else sides
    else:
        body = _grid(told, indent, members)
    return Panel(body, title=Text(title, style="bold"), title_align="left", expand=True)


def _topics(said: list[Sentence]) -> dict[Topic, list[str]]:
    grouped = groupby(said, key=lambda s: s.topic)
    return {topic: [s.text for s in lines] for topic, lines in grouped}


def _table(columns: int, indent: int) -> Table:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, min_width=indent)
    for _ in range(columns):
        grid.add_column(ratio=1, overflow="fold")
    return grid


def _grid(said: list[Sentence], indent: int, members: str) -> Table:
    grid = _table(1, indent)
    for topic, lines in _topics(said).items():
        _add(grid, topic, [lines], members)
    return grid


def _add(grid: Table, topic: Topic, columns: list[list[str]], members: str) -> None:
    """A topic with the lines of each column, the heading beside the first."""
    from rich.text import Text

    style = _STYLES.get(topic, "")
    heading = Text(worded(HEADINGS[topic], members), style="cyan")
    for lines in zip_longest(*columns, fillvalue=""):
        grid.add_row(heading, *(Text(line, style=style) for line in lines))
        heading = Text("")


@dataclass(frozen=True)
class _Sides:
    """Both scopes side by side; one below the other where the terminal is narrow."""

    said: tuple[Sentence, ...]
    indent: int
    members: str
    least_width: int = 72

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        scopes: tuple[Scope, Scope] = ("model", "method")
        own = [[s for s in self.said if s.scope == scope] for scope in scopes]
        heads = [
            Text.assemble(
                (f"{worded(SIDES[scope], self.members)}: ", "bold"),
                (worded(QUESTIONS[scope], self.members), "dim"),
            )
            for scope in scopes
        ]
        if options.max_width < self.least_width:
            for head, said in zip(heads, own, strict=True):
                yield head
                yield _grid(said, self.indent, self.members)
            return
        grid = _table(2, self.indent)
        grid.add_row("", *heads)
        model, method = (_topics(said) for said in own)
        for topic in (t for t in HEADINGS if t in model or t in method):
            _add(grid, topic, [model.get(topic, []), method.get(topic, [])], self.members)
        yield grid


# A verdict on a terminal: the outcome, then one bound per row, what is wrong first.

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


# A choice on a terminal: the sentences, then the ranked table.

LIMIT = 20
DIRECTIONS = {"max": "↑", "min": "↓", "zero": "→ 0", "one": "→ 1"}


def show_choice(choice: Choice, console: Console) -> None:
    """Print what was chosen and why, and at most `LIMIT` variants."""
    from rich.text import Text

    for at, sentence in enumerate(choice_sentences(choice)):
        console.print(Text(sentence, style="bold" if at == 0 else ""))
    console.print()
    console.print(_choice_table(choice))
    ranges = _ranges(choice)
    if ranges is not None:
        console.print(ranges)
    for note in choice.notes:
        console.print(Text(f"Note: {shown(note)}", style="yellow"))


def _choice_table(choice: Choice) -> Any:
    from rich.table import Table

    rows = records(choice.tables["choice"])
    terms = choice.asked.terms
    aims = {o.term: DIRECTIONS[o.aim] for o in choice.asked.objectives}
    valued = choice.asked.weights is not None and len(choice.asked.objectives) > 1
    table = Table(box=None, padding=(0, 2, 0, 0))
    titles = ["", "variant", *(f"{t.name} {aims.get(t, '')}".strip() for t in terms)]
    titles += ["value"] if valued else []
    chances = _chances(choice)
    longest = max(len(shown(row["variant"], 40)) for row in rows[:LIMIT])
    for title in (*titles, *chances, ""):
        # Wrapped, not cut: variants often differ at the end of their names.
        least = min(longest, 16) if title == "variant" else None
        table.add_column(title, no_wrap=title.startswith("P("), overflow="fold", min_width=least)
    numbers = {
        (row["variant"], row["term"]): term_value(row)
        for row in records(choice.tables["choice_values"])
    }
    nearly = _nearly(choice) if choice.asked.requirements else set()
    for row in rows[:LIMIT]:
        table.add_row(
            NOTHING if missing(row["rank"]) else count(row["rank"]),
            shown(row["variant"], 40),
            *(numbers[row["variant"], term.name] for term in terms),
            *([number(row["value"])] if valued else []),
            *(chance(row[column]) for column in chances.values()),
            _remark(row, row["variant"] in nearly),
        )
    if len(rows) > LIMIT:
        table.caption = f"{count(len(rows) - LIMIT)} more: --out DIR writes all"
    return table


def _chances(choice: Choice) -> dict[str, str]:
    """Titles of the columns of probabilities, and the columns that they show."""
    found = {}
    if choice.asked.margin is not None:
        found[f"P({margin(choice).removesuffix(' of')})"] = "p_within_margin"
    if choice.asked.weights is not None:
        found["P(best)"] = "p_best"
    if len(choice.asked.objectives) > 1:
        found["P(frontier)"] = "p_frontier"
    return found


def _nearly(choice: Choice) -> set[str]:
    """Variants that miss requirements by no more than noise."""
    frame = choice.tables["choice_requirements"]
    missed = frame[frame["standing"].str.startswith("missed")]
    clearly = set(missed.loc[missed["standing"] == "missed", "variant"])
    return set(missed["variant"]) - clearly


def _remark(row: dict[str, Any], nearly: bool) -> str:
    if not row["qualifies"]:
        return "does not qualify, within noise" if nearly else "does not qualify"
    if row["chosen"]:
        return "chosen"
    if row["tied"]:
        return "may be the best" if row["in_best_set"] is True else "within noise"
    return "frontier" if row["frontier"] == "frontier" else ""


def _ranges(choice: Choice) -> Any:
    from rich.table import Table

    rows = records(choice.tables["choice_weights"])
    if len(rows) < 2:
        return None
    table = Table(box=None, padding=(0, 2, 0, 0))
    first, second = rows[0]["first"], rows[0]["second"]
    table.add_column("wins")
    table.add_column(f"while {second} weighs, per unit of {first}")
    for row in rows:
        high = row["ratio_high"]
        end = "or more" if missing(high) or high == float("inf") else f"to {number(high)}"
        table.add_row(shown(row["variant"], 40), f"{number(row['ratio_low'])} {end}")
    return table
