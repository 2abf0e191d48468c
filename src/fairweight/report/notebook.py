"""A few lines of HTML for notebooks: the finding, without scripts or figures."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from fairweight.report.finding import findings
from fairweight.report.numbers import count
from fairweight.report.sentences import sentences

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

MAX_VARIANTS = 5


def fragment(result: AuditResult) -> str:
    """The summary of every variant as HTML that takes its colours from the page around it."""
    found = findings(result)
    parts = ['<div class="fairweight" style="max-width:52em;line-height:1.4">']
    shared: dict[str, None] = {}
    for finding in found[:MAX_VARIANTS]:
        rows = []
        for topic, group in groupby(sentences(finding), key=lambda s: s.topic):
            lines = [sentence.text for sentence in group]
            if topic == "pair":
                parts.append(f"<p style='margin:.6em 0 .2em'><b>{escape(lines[0])}</b></p>")
            elif topic == "scope":
                shared |= dict.fromkeys(lines)
            else:
                said = "<br>".join(escape(line) for line in lines)
                rows.append(
                    "<tr><th style='text-align:left;vertical-align:top;white-space:nowrap'>"
                    f"{escape(topic)}</th><td style='text-align:left'>{said}</td></tr>"
                )
        parts.append(f"<table>{''.join(rows)}</table>")
    if len(found) > MAX_VARIANTS:
        parts.append(f"<p>{count(len(found) - MAX_VARIANTS)} more variants: see the report.</p>")
    small = "style='font-size:85%;opacity:.8;margin:.2em 0'"
    parts += [f"<p {small}>{escape(line)}</p>" for line in shared]
    if result.notes:
        parts.append(f"<p {small}>{count(len(result.notes))} notes: see <code>.notes</code>.</p>")
    return "".join(parts) + "</div>"
