"""A summary for a pull request: GitHub-flavoured Markdown, the verdict first, one screen long."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairweight.base.wording import shown
from fairweight.report.brief import Brief
from fairweight.report.gate import (
    confidence_of,
    endpoint_name,
    endpoints,
    headline,
    interval,
    passing,
    standing,
)
from fairweight.report.numbers import count
from fairweight.report.view_model import judged, payers_table, view
from fairweight.report.view_tables import ShownTable

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult

_MARKS = re.compile(r"([\\`*_{}\[\]()<>#!|~&$@])")


def escaped(words: str) -> str:
    r"""Text that Markdown takes literally, on one line, in a table too.

    >>> escaped("sex=<b> | a\nb")
    'sex=\\<b\\> \\| a\\\\nb'
    """
    return _MARKS.sub(r"\\\1", shown(words))


def rows_of(table: ShownTable, most: int | None = None) -> list[str]:
    """A table, of which at most so many rows."""
    return _rows(table.headings, [[c.shown for c in row] for row in table.rows[:most]])


def _rows(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    head, *rows = (f"| {' | '.join(map(escaped, row))} |" for row in (headings, *cells))
    return [head, "|" + "---|" * len(headings), *rows]


# A verdict, for the summary of a CI job or a pull request.


def verdict_to_markdown(verdict: Verdict) -> str:
    """The outcome, and a table of all endpoints per variant."""
    lines = [f"## Gate: {escaped(headline(verdict))}", ""]
    named = passing(verdict)
    lines += [] if named is None else [escaped(named), ""]
    heads = ("", "check", "n", f"estimate, {confidence_of(verdict)} interval", "reason")
    for variant in verdict.variants:
        lines += [f"**{escaped(standing(verdict, variant))}**", ""]
        cells = [
            (row["decision"], endpoint_name(row), count(row["n"]), interval(row), row["reason"])
            for row in endpoints(verdict, variant)
        ]
        lines += [*_rows(heads, cells), ""]
    lines += [f"> {escaped(note)}" for note in verdict.notes]
    return "\n".join(lines).rstrip() + "\n"


# An audit.

LINES = 60
VARIANTS = 10
UNSEEN = 5
LEAKS = 3


def brief_lines(brief: Brief) -> list[str]:
    """What is read first: a heading, the five lines, a line per variant, caveats."""
    left = len(brief.variants) - 1 - VARIANTS
    more = [f"- … and {count(left)} more variants"] if left > 0 else []
    return [
        f"## {escaped(brief.compared)}",
        "",
        *(f"- **{line.heading}**: {escaped(line.text)}" for line in brief.lines),
        "",
        *(f"- **{escaped(v.heading)}**: {escaped(v.text)}" for v in brief.variants[: VARIANTS + 1]),
        *more,
        "",
        *(f"{escaped(caveat.text)}  " for caveat in brief.caveats),
    ]


def to_markdown(result: AuditResult, verdict: Verdict | None = None) -> str:
    """The summary of an audit, at most 60 lines; a gate's verdict leads where there is one."""
    made = judged(view(result), result, verdict)
    lines: list[str] = []
    if verdict is not None:
        lines += [f"## Gate: {escaped(headline(verdict))}", ""]
        names = list(verdict.variants)
        lines += [f"- {escaped(standing(verdict, name))}" for name in names[:VARIANTS]]
        left = len(names) - VARIANTS
        lines += [*([f"- … and {count(left)} more"] if left > 0 else []), ""]
    lines += [*brief_lines(made.brief), ""]
    lines += [f"> ⚠️ {escaped(note)}" for note in made.leaks[:LEAKS]]
    lines += rows_of(made.summary_table(), VARIANTS)
    left = len(made.summary) - VARIANTS
    lines += [f"\n… and {count(left)} more variants."] if left > 0 else []
    lines.append("")
    if made.payers:
        rows = [row for group in made.payers for row in group.rows]
        lines += rows_of(payers_table(rows, made.members, variants=True, floors=made.floors))
        for group in made.payers:
            if group.note is not None:
                who = ", ".join(row.who for row in group.rows)
                lines.append(f"\n{escaped(f'{group.note} {who}.')}")
        lines.append("")
    if made.unseen is not None and made.unseen.rows:
        reference = made.unseen.reference
        lines += [f"**Too few examples** to find a loss of {reference} reliably:", ""]
        lines += [
            f"- {escaped(row.who)}: {row.n} examples, {row.needed} needed"
            for row in made.unseen.rows[:UNSEEN]
        ]
        left = len(made.unseen.rows[UNSEEN:]) + made.unseen.left
        lines += [*([f"- … and {count(left)} more"] if left > 0 else []), ""]
    lines.append(f"<sub>{escaped(made.reading)}</sub>")
    return "\n".join(lines[:LINES]) + "\n"
