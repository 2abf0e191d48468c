"""A few lines of HTML for notebooks: the finding, without scripts or figures."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from fairweight.report.finding import Finding, findings
from fairweight.report.numbers import count
from fairweight.report.rows import Scope
from fairweight.report.sentences import HEADINGS, QUESTIONS, SIDES, Sentence, sentences

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

MAX_VARIANTS = 5
_LEFT = "style='text-align:left;vertical-align:top'"


def fragment(result: AuditResult) -> str:
    """The summary of every variant as HTML that takes its colours from the page around it."""
    found = findings(result)
    parts = ['<div class="fairweight" style="max-width:52em;line-height:1.4">']
    shared: dict[str, None] = {}
    for finding in found[:MAX_VARIANTS]:
        said = sentences(finding)
        title = " ".join(s.text for s in said if s.topic == "pair")
        parts.append(f"<p style='margin:.6em 0 .2em'><b>{escape(title)}</b></p>")
        parts.append(_table(finding, said))
        shared |= dict.fromkeys(s.text for s in said if s.topic == "scope")
    if len(found) > MAX_VARIANTS:
        parts.append(f"<p>{count(len(found) - MAX_VARIANTS)} more variants: see the report.</p>")
    small = "style='font-size:85%;opacity:.8;margin:.2em 0'"
    parts += [f"<p {small}>{escape(line)}</p>" for line in shared]
    if result.notes:
        parts.append(f"<p {small}>{count(len(result.notes))} notes: see <code>.notes</code>.</p>")
    return "".join(parts) + "</div>"


def _table(finding: Finding, said: tuple[Sentence, ...]) -> str:
    """One row per topic; both scopes beside each other where there are two."""
    sides = [verdict.scope for verdict in finding.verdicts]
    rows = []
    if len(sides) > 1:
        heads = "".join(
            f"<th {_LEFT}>{escape(SIDES[side])}: "
            f"<span style='font-weight:normal'>{escape(QUESTIONS[side])}</span></th>"
            for side in sides
        )
        rows.append(f"<tr><th></th>{heads}</tr>")
    for topic, heading in HEADINGS.items():
        own = [s for s in said if s.topic == topic]
        if own:
            name = f"<th {_LEFT}>{escape(heading)}</th>"
            rows.append(f"<tr>{name}{_cells(own, sides)}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _cells(said: list[Sentence], sides: list[Scope]) -> str:
    """One cell per scope, or one for all where the topic has no scope."""
    if all(s.scope is None for s in said):
        return f"<td {_LEFT} colspan='{len(sides)}'>{_lines(said)}</td>"
    cells = [[s for s in said if s.scope == side] for side in sides]
    return "".join(f"<td {_LEFT}>{_lines(cell)}</td>" for cell in cells)


def _lines(said: list[Sentence]) -> str:
    return "<br>".join(escape(s.text) for s in said)
