"""A summary for a pull request: GitHub-flavoured Markdown, the verdict first, one screen long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairweight.base.wording import shown
from fairweight.report.finding import findings
from fairweight.report.gate import (
    confidence_of,
    endpoint_name,
    endpoints,
    headline,
    interval,
    passing,
    standing,
)
from fairweight.report.gate import headline as gate_headline
from fairweight.report.members import worded
from fairweight.report.numbers import count
from fairweight.report.sentences import reading
from fairweight.report.view_model import Lead, page_lead, page_unseen
from fairweight.tables.companions import leak_notes, leaks

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult


# A verdict as Markdown, for the summary of a CI job or a pull request.

_MARKS = re.compile(r"([\\`*_{}\[\]()<>#!|~&$@])")


def verdict_to_markdown(verdict: Verdict) -> str:
    """The outcome, and a table of all endpoints per variant."""
    lines = [f"## Gate: {escaped(headline(verdict))}", ""]
    named = passing(verdict)
    lines += [] if named is None else [escaped(named), ""]
    for variant in verdict.variants:
        lines += [f"**{escaped(standing(verdict, variant))}**", ""]
        lines += [
            f"| | endpoint | n | estimate, {confidence_of(verdict)} interval | reason |",
            "|---|---|---|---|---|",
        ]
        for row in endpoints(verdict, variant):
            cells = (
                row["decision"],
                endpoint_name(row),
                count(row["n"]),
                interval(row),
                row["reason"],
            )
            lines.append(f"| {' | '.join(map(escaped, cells))} |")
        lines.append("")
    lines += [f"> {escaped(note)}" for note in verdict.notes]
    return "\n".join(lines).rstrip() + "\n"


def escaped(words: str) -> str:
    r"""Text that Markdown takes literally, on one line, in a table too.

    >>> escaped("sex=<b> | a\nb")
    'sex=\\<b\\> \\| a\\\\nb'
    """
    return _MARKS.sub(r"\\\1", shown(words))


LINES = 60
VARIANTS = 10
UNSEEN = 5


def to_markdown(result: AuditResult, verdict: Verdict | None = None) -> str:
    """The summary of an audit, at most 60 lines; a gate's verdict leads where there is one."""
    found = findings(result)
    lead = page_lead(result, found)
    lines: list[str] = []
    if verdict is not None:
        lines += [f"## Gate: {escaped(gate_headline(verdict))}", ""]
        lines += _some([f"- {escaped(standing(verdict, name))}" for name in verdict.variants])
        lines.append("")
    lines += ["## Who pays for compression", "", f"**{escaped(lead.headline)}**", ""]
    lines += [f"> ⚠️ {escaped(note)}" for note in _leaks(result)]
    lines += [f"{escaped(lead.beyond)}  "] if lead.beyond else []
    lines += [escaped(lead.facts), "", *_summary(lead), "", *_payers(lead)]
    unseen = page_unseen(found)
    if unseen is not None and unseen.rows:
        lines += [
            f"**Too few examples** to find a loss of {unseen.reference} reliably:",
            "",
            *(
                f"- {escaped(row.who)}: {row.n} examples, {row.needed} needed"
                for row in unseen.rows[:UNSEEN]
            ),
            *([f"- … and {count(_left(unseen.rows, unseen.left))} more"]
              if _left(unseen.rows, unseen.left) else []),
            "",
        ]  # fmt: skip
    lines.append(f"<sub>{escaped(reading(found[0]))}</sub>")
    return "\n".join(lines[:LINES]) + "\n"


def _left(rows: Sequence[object], folded: int) -> int:
    return max(0, len(rows) - UNSEEN) + folded


def _leaks(result: AuditResult) -> list[str]:
    return leak_notes(leaks(result.variants_table, result.variants))[:3]


def _some(lines: list[str]) -> list[str]:
    left = len(lines) - VARIANTS
    return lines[:VARIANTS] + ([f"- … and {count(left)} more"] if left > 0 else [])


def _summary(lead: Lead) -> Iterator[str]:
    method = lead.method
    heads = ["variant", "accuracy", "shift in points", "loses most", "lose"]
    heads += [worded("… beyond retraining", lead.members)] if method else []
    heads += ["pay more", f"loss beyond {lead.reference} ruled out", "too few examples"]
    yield from _head(heads)
    for row in lead.summary[:VARIANTS]:
        cells = [row.variant, row.accuracy, row.shift, row.most, row.loses]
        cells += [row.method_loses] if method else []
        yield _row([*cells, row.pays_more, row.ruled_out, row.unseen])
    left = len(lead.summary) - VARIANTS
    if left > 0:
        yield f"\n… and {count(left)} more variants."


def _payers(lead: Lead) -> Iterator[str]:
    rows = [row for group in lead.payers for row in group.rows]
    if not rows:
        return
    heads = ["who pays", "variant", "n", "before → after", "shift in points [limits]"]
    heads += [worded("retraining alone, up to", lead.members)] if lead.floors else []
    yield from _head([*heads, "more than the rest?"])
    for row in rows:
        cells = [row.who, row.variant, row.n, row.before_after, row.said]
        yield _row([*cells, *([row.floor] if lead.floors else []), row.excess])
    for group in lead.payers:
        if group.note is not None:
            names = ", ".join(row.who for row in group.rows)
            yield f"\n{escaped(f'{group.note} {names}.')}"
    yield ""


def _head(names: list[str]) -> list[str]:
    return [_row(names), "|" + "---|" * len(names)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(escaped, cells))} |"
