"""A few lines of HTML for notebooks: the finding and all variants, without scripts or figures."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from fairweight.report.numbers import count
from fairweight.report.view_model import view

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

MAX_VARIANTS = 5
MAX_ROWS = 12
LEFT = "style='text-align:left;vertical-align:top'"
SMALL = "style='font-size:85%;opacity:.8;margin:.2em 0'"


def fragment(result: AuditResult) -> str:
    """The lead, a line per variant, and the summary of each, folded, in the notebook's colours."""
    made = view(result)
    first = made.brief
    lines = [
        f"<th {LEFT}>{escape(line.heading)}</th>"
        f"<td {LEFT}>{'<br>'.join(map(escape, line.parts))}</td>"
        for line in (*first.lines, *first.variants[: MAX_ROWS + 1])
    ]
    parts = [
        '<div class="fairweight" style="max-width:62em;line-height:1.4">',
        f"<p style='font-size:115%;margin:.3em 0'><b>{escape(first.compared)}</b></p>",
        html_table(lines),
        *(f"<p {SMALL}>{escape(caveat.text)}</p>" for caveat in first.caveats),
    ]
    summary = made.summary_table()
    rows = [
        "".join(f"<th {LEFT}>{escape(heading)}</th>" for heading in summary.headings),
        *(
            "".join(f"<td {LEFT}>{escape(cell.shown)}</td>" for cell in row)
            for row in summary.rows[:MAX_ROWS]
        ),
    ]
    parts.append(f"<details><summary>Variants side by side</summary>{html_table(rows)}</details>")
    for section in made.ranking[:MAX_VARIANTS]:
        # One row per topic; both scopes beside each other where there are two.
        heads = "".join(
            f"<th {LEFT}>{escape(side.title)}: "
            f"<span style='font-weight:normal'>{escape(side.question)}</span></th>"
            for side in section.sides
        )
        rows = [f"<th></th>{heads}"] if heads else []
        wide = f" colspan='{len(section.sides)}'" if section.sides else ""
        both = [(said.topic, said.heading, [said.lines]) for said in section.said]
        for _, heading, columns in (*section.rows, *both):
            across = wide if len(columns) == 1 else ""
            cells = "".join(
                f"<td {LEFT}{across}>{'<br>'.join(map(escape, lines))}</td>" for lines in columns
            )
            rows.append(f"<th {LEFT}>{escape(heading)}</th>{cells}")
        parts.append(
            f"<details><summary>{escape(section.pair)}</summary>{html_table(rows)}</details>"
        )
    if len(made.sections) > MAX_VARIANTS:
        more = count(len(made.sections) - MAX_VARIANTS)
        parts.append(f"<p>{more} more variants: see the report.</p>")
    behind = (*made.explanations.values(), *made.scope)
    parts += [f"<p {SMALL}>{escape(line)}</p>" for line in behind]
    if made.notes:
        parts.append(f"<p {SMALL}>{count(len(made.notes))} notes: see <code>.notes</code>.</p>")
    return "".join(parts) + "</div>"


def html_table(rows: list[str]) -> str:
    """Rows of cells as a table."""
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"
