"""What an audit found about one variant, in the words and tables of the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fairweight.report.finding import Finding, find
from fairweight.report.members import worded
from fairweight.report.payer_tables import blind_table, payer_table, small_table
from fairweight.report.sentences import HEADINGS, QUESTIONS, SIDES, Sentence, reading, sentences
from fairweight.report.verdict import Payer
from fairweight.web.addresses import of_level, of_variant
from fairweight.web.tables import Table, converted, first_cells_linked

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


@dataclass(frozen=True)
class Said:
    """Sentences under one heading."""

    heading: str
    lines: list[str]


@dataclass(frozen=True)
class Side:
    """One of two questions: about these models, or about the method beyond retraining."""

    title: str
    question: str
    said: list[Said]


@dataclass(frozen=True)
class Section:
    """The finding about one variant."""

    variant: str
    baseline: str
    link: str
    pair: str
    said: list[Said]
    sides: list[Side]
    scope: list[str]
    reading: str
    tables: list[Table]


def section(result: AuditResult, key: str, variant: str, most: int | None = None) -> Section:
    """The finding with who loses, who loses more, and what is too small (`most` rows of each)."""
    finding = find(result, variant)
    told = sentences(finding)
    scopes = [verdict.scope for verdict in finding.verdicts]
    several = len(scopes) > 1
    members = finding.members.kind
    return Section(
        variant=variant,
        baseline=finding.baseline,
        link=of_variant(key, variant),
        pair=" ".join(s.text for s in told if s.topic == "pair"),
        said=_by_heading((s for s in told if s.scope is None or not several), members),
        sides=[
            Side(
                worded(SIDES[scope], members),
                worded(QUESTIONS[scope], members),
                _by_heading((s for s in told if s.scope == scope), members),
            )
            for scope in scopes
            if several
        ],
        scope=[s.text for s in told if s.topic == "scope"],
        reading=reading(finding),
        tables=list(_tables(finding, key, most)),
    )


def _by_heading(told: Iterable[Sentence], members: str) -> list[Said]:
    lines: dict[str, list[str]] = {}
    for sentence in told:
        if sentence.topic in HEADINGS:
            lines.setdefault(sentence.topic, []).append(sentence.text)
    return [
        Said(worded(heading, members), lines[topic])
        for topic, heading in HEADINGS.items()
        if topic in lines
    ]


def _tables(finding: Finding, key: str, most: int | None) -> Iterator[Table]:
    titles: tuple[tuple[Literal["pays more", "loses"], str], ...] = (
        ("pays more", "Who loses more than the rest"),
        ("loses", "Who loses"),
    )
    for what, title in titles:
        table = payer_table(finding, what)
        if table is not None:
            yield first_cells_linked(
                converted(table, title, most=most), [_of(p, key) for p in _told(finding, what)]
            )
    blind = blind_table(finding.blind)
    if blind is not None:
        links = [of_level(key, b.kind, b.name, b.task) for b in finding.blind]
        yield first_cells_linked(converted(blind, "Too few examples", most=most), links)
    small = small_table(finding.small)
    if small is not None:
        yield converted(small, "Not tested", most=most)


def _told(finding: Finding, what: Literal["pays more", "loses"]) -> list[Payer]:
    """Who stands in the report's table, in its order."""
    found: dict[object, Payer] = {}
    for verdict in finding.families:
        for payer in verdict.loses if what == "loses" else verdict.pays_more:
            found.setdefault(payer.key, payer)
    return list(found.values())


def _of(payer: Payer, key: str) -> str:
    return of_level(key, payer.kind, payer.name, payer.task)
