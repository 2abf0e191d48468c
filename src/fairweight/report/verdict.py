"""A verdict that says itself: in a notebook as a table, in a console in a line."""

from __future__ import annotations

from dataclasses import fields
from html import escape

from fairweight.auditing.gate.verdict import Verdict
from fairweight.report.gate import deciding_bound, endpoints, headline, passing, standing, subject
from fairweight.report.notebook import LEFT, MAX_ROWS, SMALL, html_table
from fairweight.report.numbers import count


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
            rows = [f"<th {LEFT}>{escape(title)}</th>" for title in ("check", "result", "")]
            table = ["".join(rows)]
            held = endpoints(self, variant)
            for row in held[:MAX_ROWS]:
                cells = (subject(row), deciding_bound(row), row["decision"])
                table.append("".join(f"<td {LEFT}>{escape(str(cell))}</td>" for cell in cells))
            more = len(held) - MAX_ROWS
            left = f"<p {SMALL}>{count(more)} more: see <code>.rows</code>.</p>" if more > 0 else ""
            parts.append(
                f"<details{'' if len(self.variants) > 1 else ' open'}><summary>{escape(variant)}"
                f"</summary>{html_table(table)}{left}</details>"
            )
        parts += [f"<p {SMALL}>{escape(note)}</p>" for note in self.notes]
        return "".join(parts) + "</div>"

    def __repr__(self) -> str:
        said = "; ".join(standing(self, variant) for variant in self.variants)
        return f"<Verdict {headline(self)}: {said}>"
