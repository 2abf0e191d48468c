"""What the page says about one variant: its sentences, its tables and its figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairweight.report.before_after import before_after, calibration
from fairweight.report.drawn import DrawnFigure, drawn
from fairweight.report.figures import Spec, figures
from fairweight.report.finding import Finding
from fairweight.report.members import worded
from fairweight.report.page_tables import PageTable
from fairweight.report.payer_tables import blind_table, payer_table, small_table
from fairweight.report.rows import Scope
from fairweight.report.sentences import HEADINGS, QUESTIONS, SIDES, Sentence, Topic, sentences

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

IN_FAMILY = (
    "Limits and p-values hold for all classes, or all groups, of this variant at once; the "
    "finding above holds for everything at once and may name fewer."
)
CHURN = "Churn: the share of predictions that became wrong or right."


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


def section(
    result: AuditResult, finding: Finding, i: int, specs: dict[str, Spec], draws: bool
) -> Section:
    said = sentences(finding)
    scopes = [verdict.scope for verdict in finding.verdicts]
    several = len(scopes) > 1
    return Section(
        anchor=f"variant-{i}",
        finding=finding,
        pair=" ".join(s.text for s in said if s.topic == "pair"),
        lines=_by_topic(s for s in said if s.scope is None or not several),
        sides=tuple(_side(said, scope, finding.members.kind) for scope in scopes if several),
        scope=[s.text for s in said if s.topic == "scope"],
        parts=tuple(_parts(result, finding, f"variant-{i}")),
        figures=tuple(_drawn(result, finding.variant, i, specs)) if draws else (),
    )


def _by_topic(said: Iterable[Sentence]) -> dict[Topic, list[str]]:
    lines: dict[Topic, list[str]] = {}
    for sentence in said:
        if sentence.topic in HEADINGS:
            lines.setdefault(sentence.topic, []).append(sentence.text)
    return lines


def _side(said: tuple[Sentence, ...], scope: Scope, members: str) -> Side:
    title, question = worded(SIDES[scope], members), worded(QUESTIONS[scope], members)
    return Side(title, question, _by_topic(s for s in said if s.scope == scope))


def _parts(result: AuditResult, finding: Finding, anchor: str) -> Iterator[Part]:
    several = len(finding.families) > 1
    pays_more, loses = payer_table(finding, "pays more"), payer_table(finding, "loses")
    if pays_more is not None:
        strong = f" Strong: p of at most {finding.alpha:g}." if several else ""
        title = f"Who loses more than the rest ({pays_more.total})"
        note = f"{IN_FAMILY} {CHURN}{strong}"
        yield Part(f"{anchor}-pays-more", title, pays_more, True, note)
    if loses is not None:
        strong = " Strong: limits below 0." if several else ""
        corrected = " p-values are not corrected." if finding.correction == "none" else ""
        note = f"{IN_FAMILY}{corrected}{strong}"
        yield Part(f"{anchor}-loses", f"Who loses ({loses.total})", loses, True, note)
    blind = blind_table(finding.blind)
    if blind is not None:
        of = f"{blind.total} of {finding.n_watched} classes and groups"
        yield Part(f"{anchor}-unseen", f"Too few examples ({of})", blind, False)
    small = small_table(finding.small)
    if small is not None:
        yield Part(f"{anchor}-small", f"Not tested ({small.total})", small, False)
    numbers = before_after(result, finding)
    if numbers is not None:
        yield Part(f"{anchor}-numbers", "Baseline and compressed numbers", numbers, True)
    promises = calibration(result, finding)
    if promises is not None:
        note = (
            "ECE is above 0 by chance alone, so it stands beside that of a calibrated model of "
            "the same size and has no interval. The gap is the mean score less the share that "
            "came true: above 0 the scores promise too much."
        )
        yield Part(f"{anchor}-calibration", "Calibration by group", promises, False, note)


def _drawn(
    result: AuditResult, variant: str, i: int, specs: dict[str, Spec]
) -> Iterator[DrawnFigure]:
    for figure in figures():
        if not figure.explains:
            yield drawn(result, figure, variant, f"figure-{i}-{figure.id.lower()}", specs)
