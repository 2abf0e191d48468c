"""The report: one page that holds everything it needs and loads nothing.

The finding comes first, then who pays, what cannot be told, why, what helps and what to ship;
every variant, the figures and all tables follow, folded. A Content-Security-Policy inside the page
forbids every connection and every script but the page's own, by their checksums: a name in the data
can never become code.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fairweight.report.bundle import javascript
from fairweight.report.explain_page import explanation
from fairweight.report.figures import Spec
from fairweight.report.figures.theme import CONFIG
from fairweight.report.finding import findings
from fairweight.report.gallery import gallery, gallery_scripts, gallery_style
from fairweight.report.members import members_of, worded
from fairweight.report.next_steps import figure_command
from fairweight.report.numbers import shown
from fairweight.report.page_answers import answers
from fairweight.report.page_lead import FIRST, page_lead
from fairweight.report.page_sections import section
from fairweight.report.page_tables import Cell, detail_tables
from fairweight.report.page_unseen import page_unseen
from fairweight.report.provenance import provenance_lines
from fairweight.report.ranking import ranked
from fairweight.report.sentences import HEADINGS, reading
from fairweight.tables.leaks import leak_notes, leaks

if TYPE_CHECKING:
    from fairweight.auditing.decide.gate import Verdict
    from fairweight.auditing.result import AuditResult

PRINTED = 3  # variants whose sections go on paper
DRAWN = 8  # variants whose figures are drawn: a page of forty would be too large to send


def render(result: AuditResult, verdict: Verdict | None = None) -> str:
    """The report of an audit as one HTML page, with a gate's verdict where there is one."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("fairweight.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    environment.filters["embedded"] = lambda value: Markup(embedded(value))
    environment.filters["sort_key"] = sort_key
    specs: dict[str, Spec] = {}
    found = findings(result)
    order = [standing.place for standing in ranked(found)]
    drawn_variants = set(order[:DRAWN])
    by_place = {
        i: section(result, finding, i, specs, i in drawn_variants)
        for i, finding in enumerate(found, start=1)
    }
    sections = [by_place[place] for place in order]
    examples = explanation(result, specs, [found[place - 1].variant for place in order[:DRAWN]])
    scripts = [_resource("page.js"), _resource("sort.js")]
    if specs:
        scripts = [javascript(), *scripts, _resource("save.js")]
    pictures = gallery(result)
    scripts += gallery_scripts(pictures)
    lead = page_lead(result, found)
    members = members_of(result)
    template = environment.get_template("report.html.j2")
    return template.render(
        result=result,
        lead=lead,
        first=FIRST,
        unseen=page_unseen(found),
        answers=answers(result, found, lead, verdict),
        sections=sections,
        open_variants=len(sections) == 1,
        printed=PRINTED,
        undrawn=len(order) - len(drawn_variants),
        figure_command=figure_command(result),
        leaks=leak_notes(leaks(result.variants_table, result.variants)),
        reading=reading(found[0]),
        scope=list(dict.fromkeys(line for section in sections for line in section.scope)),
        headings={topic: worded(name, members) for topic, name in HEADINGS.items()},
        worded=lambda text: worded(text, members),
        examples=examples,
        gallery=pictures,
        tables=detail_tables(result),
        provenance=provenance_lines(result),
        style=Markup(_resource("shared.css") + _resource("page.css") + gallery_style(pictures)),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
        specs=lighter(specs),
        theme=embedded(CONFIG),
    )


def embedded(value: Any) -> str:
    r"""JSON that may stand inside a script element.

    >>> embedded({"name": "</script>&"})
    '{"name":"\\u003c/script\\u003e\\u0026"}'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def lighter(spec: Any) -> Any:
    """A specification as it is sent: numbers with nine digits, the common theme left to the page.

    >>> lighter({"config": CONFIG, "data": {"values": [{"shift": 0.1234567890123}]}})
    {'data': {'values': [{'shift': 0.123456789}]}}
    """
    if isinstance(spec, float):
        return float(f"{spec:.9g}")
    if isinstance(spec, list):
        return [lighter(part) for part in spec]
    if isinstance(spec, dict):
        return {key: lighter(part) for key, part in spec.items() if part is not CONFIG}
    return spec


def sort_key(cell: Cell) -> str:
    """The attribute by which a cell is sorted; none where that is the text that it shows.

    >>> sort_key(Cell("3.2 points", 0.0321)), sort_key(Cell("a", "a")), sort_key(Cell("—", None))
    (Markup(' data-sort="0.0321"'), '', Markup(' data-sort=""'))
    """
    from markupsafe import Markup

    if cell.sort is None:
        return Markup(' data-sort=""')
    if isinstance(cell.sort, str):
        return "" if cell.sort == cell.shown else Markup(' data-sort="{}"').format(cell.sort)
    return Markup(f' data-sort="{cell.sort:.7g}"')


def _policy(scripts: list[str]) -> str:
    """Nothing is loaded, and only these scripts run."""
    hashes = " ".join(
        "'sha256-" + base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() + "'"
        for s in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _resource(name: str) -> str:
    return (files("fairweight.report") / "templates" / name).read_text(encoding="utf-8")
