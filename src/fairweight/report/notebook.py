"""A few lines of HTML for notebooks: the finding and all variants, without scripts or figures."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from fairweight.auditing.result import Scope
from fairweight.report.finding import Finding, findings, ranked
from fairweight.report.members import worded
from fairweight.report.numbers import count
from fairweight.report.sentences import HEADINGS, QUESTIONS, SIDES, Sentence, sentences
from fairweight.report.view_model import Lead, page_lead

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

MAX_VARIANTS = 5
MAX_ROWS = 12
_LEFT = "style='text-align:left;vertical-align:top'"


def fragment(result: AuditResult) -> str:
    """The lead, a line per variant, and the summary of each, folded, in the notebook's colours."""
    found = findings(result)
    lead = page_lead(result, found)
    small = "style='font-size:85%;opacity:.8;margin:.2em 0'"
    parts = [
        '<div class="fairweight" style="max-width:62em;line-height:1.4">',
        f"<p style='font-size:115%;margin:.3em 0'><b>{escape(lead.headline)}</b></p>",
    ]
    if lead.beyond is not None:
        parts.append(f"<p style='margin:.2em 0'>{escape(lead.beyond)}</p>")
    parts += [f"<p {small}>{escape(lead.facts)}</p>", _summary(lead)]
    shared: dict[str, None] = {}
    first = [s.finding for s in ranked(found)[:MAX_VARIANTS]]
    for finding in first:
        said = sentences(finding)
        title = " ".join(s.text for s in said if s.topic == "pair")
        opened = " open" if len(found) == 1 else ""
        parts.append(
            f"<details{opened}><summary>{escape(title)}</summary>{_table(finding, said)}</details>"
        )
        shared |= dict.fromkeys(s.text for s in said if s.topic == "scope")
    if len(found) > MAX_VARIANTS:
        parts.append(f"<p>{count(len(found) - MAX_VARIANTS)} more variants: see the report.</p>")
    parts += [f"<p {small}>{escape(line)}</p>" for line in shared]
    if result.notes:
        parts.append(f"<p {small}>{count(len(result.notes))} notes: see <code>.notes</code>.</p>")
    return "".join(parts) + "</div>"


def _summary(lead: Lead) -> str:
    """One row per variant, the clearest loss first."""
    method = lead.method
    heads = ["variant", "accuracy", "shift in points", "loses most", "lose"]
    heads += [worded("… beyond retraining", lead.members)] if method else []
    heads += ["pay more", f"loss beyond {lead.reference} ruled out", "too few examples"]
    rows = ["".join(f"<th {_LEFT}>{escape(head)}</th>" for head in heads)]
    for row in lead.summary[:MAX_ROWS]:
        cells = [row.variant, row.accuracy, row.shift, row.most, row.loses]
        cells += [row.method_loses] if method else []
        cells += [row.pays_more, row.ruled_out, row.unseen]
        rows.append("".join(f"<td {_LEFT}>{escape(cell)}</td>" for cell in cells))
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _table(finding: Finding, said: tuple[Sentence, ...]) -> str:
    """One row per topic; both scopes beside each other where there are two."""
    sides = [verdict.scope for verdict in finding.verdicts]
    members = finding.members.kind
    rows = []
    if len(sides) > 1:
        heads = "".join(
            f"<th {_LEFT}>{escape(worded(SIDES[side], members))}: "
            f"<span style='font-weight:normal'>{escape(worded(QUESTIONS[side], members))}</span>"
            "</th>"
            for side in sides
        )
        rows.append(f"<tr><th></th>{heads}</tr>")
    for topic, heading in HEADINGS.items():
        own = [s for s in said if s.topic == topic]
        if own:
            name = f"<th {_LEFT}>{escape(worded(heading, members))}</th>"
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
