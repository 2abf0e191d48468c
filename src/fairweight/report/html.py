"""The report: one page that holds everything it needs and loads nothing.

The finding comes first, then who loses and who pays more, what cannot be told, the figures, and
all tables. A Content-Security-Policy inside the page forbids every connection and every script but
the page's own two, by their checksums: a name in the data can never become code.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fairweight.report.before_after import before_after
from fairweight.report.bundle import javascript
from fairweight.report.drawn import DrawnFigure, drawn
from fairweight.report.explain_page import explanation
from fairweight.report.figures import Spec, figures
from fairweight.report.finding import Finding, findings
from fairweight.report.numbers import shown
from fairweight.report.page_tables import PageTable, detail_tables
from fairweight.report.payer_tables import blind_table, payer_table, small_table
from fairweight.report.provenance import provenance_lines
from fairweight.report.rows import Scope
from fairweight.report.sentences import (
    HEADINGS,
    QUESTIONS,
    SIDES,
    Sentence,
    Topic,
    reading,
    sentences,
)
from fairweight.tables.leaks import leak_notes, leaks

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


@dataclass(frozen=True)
class Side:
    """One of two scopes that stand beside each other."""

    title: str
    question: str
    lines: dict[Topic, list[str]]


@dataclass(frozen=True)
class Part:
    """A collapsible part of a variant's section, and its place in the contents."""

    anchor: str
    title: str
    table: PageTable
    open: bool
    note: str | None = None


@dataclass(frozen=True)
class Section:
    """What the page says about one variant."""

    anchor: str
    finding: Finding
    pair: str
    lines: dict[Topic, list[str]]  # of the one scope, or of neither where there are two sides
    sides: tuple[Side, ...]
    scope: list[str]
    parts: tuple[Part, ...]
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
    examples = explanation(result, specs)
    scripts = [javascript(), _resource("page.js")] if specs else [_resource("page.js")]
    found = leaks(result.variants_table, result.variants)
    template = environment.get_template("report.html.j2")
    return template.render(
        result=result,
        sections=sections,
        leaks=leak_notes(found),
        reading=reading(sections[0].finding) if sections else "",
        scope=list(dict.fromkeys(line for section in sections for line in section.scope)),
        headings=HEADINGS,
        examples=examples,
        tables=detail_tables(result),
        provenance=provenance_lines(result),
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
    said = sentences(finding)
    scopes = [verdict.scope for verdict in finding.verdicts]
    several = len(scopes) > 1
    return Section(
        anchor=f"variant-{i}",
        finding=finding,
        pair=" ".join(s.text for s in said if s.topic == "pair"),
        lines=_by_topic(s for s in said if s.scope is None or not several),
        sides=tuple(_side(said, scope) for scope in scopes) if several else (),
        scope=[s.text for s in said if s.topic == "scope"],
        parts=tuple(_parts(result, finding, f"variant-{i}")),
        figures=tuple(_drawn(result, finding.variant, i, specs)),
    )


def _by_topic(said: Iterable[Sentence]) -> dict[Topic, list[str]]:
    lines: dict[Topic, list[str]] = {}
    for sentence in said:
        if sentence.topic in HEADINGS:
            lines.setdefault(sentence.topic, []).append(sentence.text)
    return lines


def _side(said: tuple[Sentence, ...], scope: Scope) -> Side:
    return Side(SIDES[scope], QUESTIONS[scope], _by_topic(s for s in said if s.scope == scope))


def _parts(result: AuditResult, finding: Finding, anchor: str) -> Iterator[Part]:
    several = len(finding.verdicts) > 1
    correction = "not corrected" if finding.correction == "none" else "corrected in the family"
    pays_more, loses = payer_table(finding, "pays more"), payer_table(finding, "loses")
    if pays_more is not None:
        strong = f" Strong: at most {finding.alpha:g}." if several else ""
        title = f"Who pays more than the others ({pays_more.total})"
        note = f"p-values of the excess are {correction}.{strong}"
        yield Part(f"{anchor}-pays-more", title, pays_more, True, note)
    if loses is not None:
        strong = " Strong: limits below 0." if several else ""
        note = f"p-values are {correction}.{strong}"
        yield Part(f"{anchor}-loses", f"Who loses ({loses.total})", loses, True, note)
    blind = blind_table(finding.blind)
    if blind is not None:
        of = f"{blind.total} of {finding.n_watched} classes and groups"
        yield Part(f"{anchor}-unseen", f"What cannot be told ({of})", blind, False)
    small = small_table(finding.small)
    if small is not None:
        yield Part(f"{anchor}-small", f"Without a verdict ({small.total})", small, False)
    numbers = before_after(result, finding)
    if numbers is not None:
        yield Part(f"{anchor}-numbers", "Baseline and compressed numbers", numbers, True)


def _drawn(
    result: AuditResult, variant: str, i: int, specs: dict[str, Spec]
) -> Iterator[DrawnFigure]:
    for figure in figures():
        if not figure.explains:
            yield drawn(result, figure, variant, f"figure-{i}-{figure.id.lower()}", specs)
