"""A few lines of HTML for notebooks: the finding and all variants, without scripts or figures."""

from __future__ import annotations

from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING

from fairweight.auditing.gate.verdict import Verdict
from fairweight.report.gate import deciding_bound, endpoints, headline, passing, standing, subject
from fairweight.report.numbers import count
from fairweight.report.view_model import view

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

MAX_VARIANTS = 5
MAX_ROWS = 12
_LEFT = "style='text-align:left;vertical-align:top'"
_SMALL = "style='font-size:85%;opacity:.8;margin:.2em 0'"


def fragment(result: AuditResult) -> str:
    """The lead, a line per variant, and the summary of each, folded, in the notebook's colours."""
    made = view(result)
    first = made.brief
    lines = [
        f"<th {_LEFT}>{escape(line.heading)}</th>"
        f"<td {_LEFT}>{'<br>'.join(map(escape, line.parts))}</td>"
        for line in (*first.lines, *first.variants[: MAX_ROWS + 1])
    ]
    parts = [
        '<div class="fairweight" style="max-width:62em;line-height:1.4">',
        f"<p style='font-size:115%;margin:.3em 0'><b>{escape(first.compared)}</b></p>",
        _table(lines),
        *(f"<p {_SMALL}>{escape(caveat.text)}</p>" for caveat in first.caveats),
    ]
    summary = made.summary_table()
    rows = [
        "".join(f"<th {_LEFT}>{escape(heading)}</th>" for heading in summary.headings),
        *(
            "".join(f"<td {_LEFT}>{escape(cell.shown)}</td>" for cell in row)
            for row in summary.rows[:MAX_ROWS]
        ),
    ]
    parts.append(f"<details><summary>Variants side by side</summary>{_table(rows)}</details>")
    for section in made.ranking[:MAX_VARIANTS]:
        # One row per topic; both scopes beside each other where there are two.
        heads = "".join(
            f"<th {_LEFT}>{escape(side.title)}: "
            f"<span style='font-weight:normal'>{escape(side.question)}</span></th>"
            for side in section.sides
        )
        rows = [f"<th></th>{heads}"] if heads else []
        wide = f" colspan='{len(section.sides)}'" if section.sides else ""
        both = [(said.topic, said.heading, [said.lines]) for said in section.said]
        for _, heading, columns in (*section.rows, *both):
            across = wide if len(columns) == 1 else ""
            cells = "".join(
                f"<td {_LEFT}{across}>{'<br>'.join(map(escape, lines))}</td>" for lines in columns
            )
            rows.append(f"<th {_LEFT}>{escape(heading)}</th>{cells}")
        parts.append(f"<details><summary>{escape(section.pair)}</summary>{_table(rows)}</details>")
    if len(made.sections) > MAX_VARIANTS:
        more = count(len(made.sections) - MAX_VARIANTS)
        parts.append(f"<p>{more} more variants: see the report.</p>")
    behind = (*made.explanations.values(), *made.scope)
    parts += [f"<p {_SMALL}>{escape(line)}</p>" for line in behind]
    if made.notes:
        parts.append(f"<p {_SMALL}>{count(len(made.notes))} notes: see <code>.notes</code>.</p>")
    return "".join(parts) + "</div>"


def _table(rows: list[str]) -> str:
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


class ShownVerdict(Verdict):
    """A verdict that says itself: in a notebook as a table, in a console in a line."""

    @classmethod
    def of(cls, verdict: Verdict) -> ShownVerdict:
        return cls(**{field.name: getattr(verdict, field.name) for field in fields(verdict)})

    def _repr_html_(self) -> str:
        said = [passing(self), *(standing(self, variant) for variant in self.variants)]
        parts = [
            '<div class="fairweight" style="max-width:62em;line-height:1.4">',
            f"<p style='font-size:115%;margin:.3em 0'><b>{escape(headline(self))}</b></p>",
            *(f"<p style='margin:.2em 0'>{escape(line)}</p>" for line in said if line is not None),
        ]
        for variant in self.variants:
            rows = [f"<th {_LEFT}>{escape(title)}</th>" for title in ("check", "result", "")]
            table = ["".join(rows)]
            held = endpoints(self, variant)
            for row in held[:MAX_ROWS]:
                cells = (subject(row), deciding_bound(row), row["decision"])
                table.append("".join(f"<td {_LEFT}>{escape(str(cell))}</td>" for cell in cells))
            more = len(held) - MAX_ROWS
            left = (
                f"<p {_SMALL}>{count(more)} more: see <code>.rows</code>.</p>" if more > 0 else ""
            )
            parts.append(
                f"<details{'' if len(self.variants) > 1 else ' open'}><summary>{escape(variant)}"
                f"</summary>{_table(table)}{left}</details>"
            )
        parts += [f"<p {_SMALL}>{escape(note)}</p>" for note in self.notes]
        return "".join(parts) + "</div>"

    def __repr__(self) -> str:
        said = "; ".join(standing(self, variant) for variant in self.variants)
        return f"<Verdict {headline(self)}: {said}>"
