"""The report: one page that holds everything it needs and loads nothing.

The finding comes first, then who loses and who pays more, what cannot be told, the figures, and
all tables. A Content-Security-Policy inside the page forbids every connection and every script but
the page's own two, by their checksums: a name in the data can never become code.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fairweight.report.bundle import javascript
from fairweight.report.figures import Spec, draw, figures
from fairweight.report.finding import Finding, findings
from fairweight.report.numbers import shown
from fairweight.report.page_tables import (
    PageTable,
    blind_table,
    detail_tables,
    payer_table,
    small_table,
)
from fairweight.report.sentences import TOPICS, reading, sentences

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


@dataclass(frozen=True)
class DrawnFigure:
    """A figure as the template needs it."""

    anchor: str
    id: str
    title: str
    caption: str
    alt: str
    reason: str | None


@dataclass(frozen=True)
class Section:
    """What the page says about one variant."""

    anchor: str
    finding: Finding
    lines: dict[str, list[str]]
    loses: PageTable | None
    pays_more: PageTable | None
    blind: PageTable | None
    small: PageTable | None
    figures: tuple[DrawnFigure, ...]


def render(result: AuditResult) -> str:
    """The report of an audit as one HTML page."""
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
    specs: dict[str, Spec] = {}
    sections = [
        _section(result, finding, i, specs) for i, finding in enumerate(findings(result), start=1)
    ]
    scripts = [javascript(), _resource("page.js")] if specs else [_resource("page.js")]
    template = environment.get_template("report.html.j2")
    return template.render(
        result=result,
        sections=sections,
        reading=reading(sections[0].finding) if sections else "",
        scope=sections[0].lines["scope"] if sections else [],
        tables=detail_tables(result),
        provenance=_provenance(result),
        style=Markup(_resource("page.css")),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
        specs=Markup(embedded(specs)),
    )


def embedded(value: Any) -> str:
    r"""JSON that may stand inside a script element.

    >>> embedded({"name": "</script>&"})
    '{"name": "\\u003c/script\\u003e\\u0026"}'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


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


def _section(result: AuditResult, finding: Finding, i: int, specs: dict[str, Spec]) -> Section:
    lines: dict[str, list[str]] = {topic: [] for topic in TOPICS}
    for sentence in sentences(finding):
        lines[sentence.topic].append(sentence.text)
    drawn = []
    for figure in figures():
        drawing = draw(figure.id, result, finding.variant)
        anchor = f"figure-{i}-{figure.id.lower()}"
        alt = figure.title
        if drawing.spec is not None:
            alt = drawing.spec["description"]
            specs[anchor] = drawing.spec
        drawn.append(
            DrawnFigure(anchor, figure.id, figure.title, figure.caption, alt, drawing.reason)
        )
    return Section(
        anchor=f"variant-{i}",
        finding=finding,
        lines=lines,
        loses=payer_table(finding.loses, "loses"),
        pays_more=payer_table(finding.pays_more, "pays more"),
        blind=blind_table(finding.blind),
        small=small_table(finding.small),
        figures=tuple(drawn),
    )


def _provenance(result: AuditResult) -> list[tuple[str, str]]:
    origin = result.provenance
    inputs = "; ".join(
        ", ".join(f"{key} {value}" for key, value in given.items() if value is not None)
        for given in origin.inputs
    )
    options = ", ".join(f"{key} = {value}" for key, value in origin.options.items())
    return [
        ("fairweight", origin.version),
        ("made", origin.created),
        ("command", origin.command or "—"),
        ("inputs", inputs or "—"),
        ("options", options or "—"),
    ]
