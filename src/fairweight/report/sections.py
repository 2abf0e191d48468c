"""What the page says about one variant: its sentences, its tables and its figures."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.auditing.archive import tables_of
from fairweight.auditing.result import Scope, records
from fairweight.base.wording import missing, real, shown
from fairweight.report.explanation_sentences import mitigation_sentences, sentences_by_variant
from fairweight.report.figures import Figure, Spec, draw, figures
from fairweight.report.finding import Finding, ranked
from fairweight.report.gate import (
    endpoints,
    headline,
    how_to_read,
    passing,
    standing,
    with_interval,
)
from fairweight.report.members import members_of, worded
from fairweight.report.numbers import count, percent
from fairweight.report.sentences import (
    HEADINGS,
    QUESTIONS,
    SIDES,
    Sentence,
    Topic,
    begun,
    sentences,
)
from fairweight.report.view_model import Lead, of_variant
from fairweight.report.view_tables import (
    PageTable,
    before_after,
    blind_table,
    calibration,
    payer_table,
    small_table,
)
from fairweight.tables.names import written_list

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult


# A figure as the page's template needs it.


@dataclass(frozen=True)
class DrawnFigure:
    """Where a figure stands and what is said about it; `reason` where there is none."""

    anchor: str
    id: str
    title: str
    caption: str
    alt: str
    reason: str | None
    more: bool


def drawn(
    result: AuditResult, figure: Figure, variant: str | None, anchor: str, specs: dict[str, Spec]
) -> DrawnFigure:
    """Draw one figure; its specification is added to those of the page."""
    drawing = draw(figure.id, result, variant)
    members = members_of(result)
    title = worded(figure.title, members)
    alt = title
    if drawing.spec is not None:
        alt = drawing.spec["description"]
        specs[anchor] = drawing.spec
    return DrawnFigure(
        anchor, figure.id, title, worded(figure.caption, members), alt, drawing.reason, figure.more
    )


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


# Commands that would tell what an audit was not asked, with the options that it was made with.

FOLDER = "fairweight-audit"  # where `audit` writes unless told


def explain_command(result: AuditResult) -> str:
    """Which examples pay, and what goes along with it."""
    return shlex.join(["fairweight", "explain", *_tables(result)])


def mitigate_commands(result: AuditResult) -> tuple[str, ...]:
    """What may help; each is audited again on rows that it was not fitted on."""
    asked = tables_of(result.provenance.request)
    counted = asked is not None and asked.count is not None
    # Rules are fitted on single examples, which counts do not have.
    tables = "PREDICTIONS" if counted else shlex.join(_tables(result))
    return (
        f"fairweight mitigate thresholds {tables} --validation VALIDATION",
        f"fairweight mitigate cascade {tables} --validation VALIDATION",
        f"fairweight mitigate overrides {tables} --labels annotations.csv",
    )


def ship_commands(result: AuditResult) -> tuple[str, ...]:
    """A verdict by a policy; a choice where there is one to make."""
    folder = shlex.quote(_folder(result))
    gate = (
        "fairweight gate --init > policy.toml",
        f"fairweight gate {folder} --policy policy.toml",
    )
    if len(result.variants) < 2:
        return gate
    kept = ["--require", "worst_group_shift>=-0.02"] if result.groupings else []
    tables = _tables(result, members=False)
    chosen = ["fairweight", "choose", *tables, "--objective", "accuracy", *kept]
    return (*gate, shlex.join(chosen))


def figure_command(result: AuditResult) -> str:
    """One figure of one variant as a file."""
    return f"fairweight report figure ID {shlex.quote(_folder(result))} --variant NAME --out F.svg"


def _tables(result: AuditResult, *, members: bool = True) -> list[str]:
    """The files that were audited and the options that say how they are read."""
    asked = tables_of(result.provenance.request)
    if asked is None:  # which tables is not known, which groups is
        groups = ["--groups", written_list(result.groupings)] if result.groupings else []
        return ["PREDICTIONS", *groups]
    repeated = members and result.provenance.options.get("members") == "repeated"
    return [*asked.arguments(), *(["--members", "repeated"] if repeated else [])]


def _folder(result: AuditResult) -> str:
    return str(result.provenance.request.get("out", FOLDER))


# Why, what helps, what to ship: what an audit says of them, or the commands that would tell.

MOST = 5  # sentences that stand in the lead; all of them follow below
CHANCE = "Associations in these data, not causes."


@dataclass(frozen=True)
class Answer:
    """What is said, or what would have to be asked."""

    anchor: str
    title: str
    lines: tuple[str, ...]
    more: str | None = None  # how many sentences stand elsewhere
    link: str | None = None  # the anchor of the part with everything about it
    asking: str | None = None  # why there is no answer
    commands: tuple[str, ...] = ()


def answers(
    result: AuditResult, found: Sequence[Finding], lead: Lead, verdict: Verdict | None
) -> tuple[Answer, ...]:
    """The three questions after who pays."""
    return (_why(result, found, lead), _helps(result), _ship(result, verdict))


def _why(result: AuditResult, found: Sequence[Finding], lead: Lead) -> Answer:
    said = sentences_by_variant(result)
    if not said:
        return Answer(
            "why", "Why", (), asking="Not computed yet. To see which examples and slices lose, "
            "run:", commands=(explain_command(result),),
        )  # fmt: skip
    order: list[str | None] = [None, *(s.finding.variant for s in ranked(found))]
    every = [
        begun(line) if whose is None else of_variant(whose, line, len(found))
        for whose in order
        for line in said.get(whose, ())
    ]
    lines = [line for line in every if line not in lead.examples]  # said already
    left = len(lines) - MOST
    more = f"{count(left)} more sentences, figures and tables" if left > 0 else "Figures and tables"
    return Answer("why", "Why", (*lines[:MOST], CHANCE), more, "examples")


def _helps(result: AuditResult) -> Answer:
    table = result.explanations.get("mitigation")
    if table is None or table.empty:
        return Answer(
            "helps", "What helps", (), asking="No mitigation was tried yet. These are fitted on "
            "some rows and audited on others:", commands=mitigate_commands(result),
        )  # fmt: skip
    lines = mitigation_sentences(table, _kind(result))
    left = len(lines) - MOST
    more = f"{count(left)} more sentences are in the table" if left > 0 else "The table"
    anchor = "table-explanation-mitigation"
    return Answer("helps", "What helps", tuple(lines[:MOST]), more, anchor)


def _kind(result: AuditResult) -> str:
    """Which mitigation it was: each leaves a table of its own, thresholds none."""
    if "override_curves" in result.explanations:
        return "overrides"
    return "cascade" if "cascade_curve" in result.explanations else "thresholds"


def _ship(result: AuditResult, verdict: Verdict | None) -> Answer:
    lines: list[str] = []
    if verdict is not None:
        lines += [f"Gate: {headline(verdict)}.", *filter(None, [passing(verdict)])]
        for name in list(verdict.variants)[:MOST]:
            lines.append(f"{standing(verdict, name)}.")
            lines += [f"{with_interval(row)}." for row in endpoints(verdict, name)[:MOST]]
        lines.append(how_to_read(verdict))
    choice = result.explanations.get("choice")
    if choice is not None:
        lines += _chosen(records(choice))
    if lines:
        return Answer("ship", "What to ship", tuple(lines))
    return Answer(
        "ship", "What to ship", (), asking="No policy was given, so there is no verdict. To get "
        "one, and to choose among variants, run:",
        commands=ship_commands(result),
    )  # fmt: skip


def _chosen(rows: list[dict[str, Any]]) -> list[str]:
    """The set that contains the best, how probably each is near the best, then the choice."""
    among = []
    for row in rows:
        if row["in_best_set"] is True:
            near = real(row.get("p_within_margin"))
            sure = "" if missing(near) else f" ({percent(near, 0)} within the margin of the best)"
            among.append(f"{shown(row['variant'], 60)}{sure}")
    more = f" and {len(among) - MOST} more" if len(among) > MOST else ""
    lines = [f"The best is among, with 95 %: {', '.join(among[:MOST])}{more}."] if among else []
    return lines + [f"Chosen: {shown(row['variant'], 60)}." for row in rows if row["chosen"]]
