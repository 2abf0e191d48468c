"""What is said about an audit, under headings: one variant, and what to do next."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairweight.auditing.document import tables_of
from fairweight.auditing.result import Scope, records
from fairweight.base.wording import missing, real, shown
from fairweight.report.finding import Finding
from fairweight.report.gate import (
    endpoints,
    headline,
    how_to_read,
    passing,
    standing,
    with_interval,
)
from fairweight.report.members import worded
from fairweight.report.numbers import count, percent
from fairweight.report.sentences import (
    HEADINGS,
    QUESTIONS,
    SIDES,
    Topic,
    capitalised,
    of_variant,
    reading,
    sentences,
)
from fairweight.tables.names import written_list

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult
    from fairweight.report.view_model import View


# What is said about one variant, by topic; about these models and the method where there are both.


@dataclass(frozen=True)
class Said:
    """Sentences under one heading."""

    topic: Topic
    heading: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Side:
    """One of two questions: about these models, or about the method beyond retraining."""

    title: str
    question: str
    said: tuple[Said, ...]


@dataclass(frozen=True)
class Section:
    """The finding about one variant."""

    variant: str
    baseline: str
    pair: str
    said: tuple[Said, ...]  # of the one scope, or of neither where there are two sides
    sides: tuple[Side, ...]
    scope: tuple[str, ...]
    reading: str

    @property
    def rows(self) -> list[tuple[Topic, str, list[tuple[str, ...]]]]:
        """What the sides say beside each other: topic, heading, and the lines of every side."""
        sides = [{said.topic: said.lines for said in side.said} for side in self.sides]
        headings = {said.topic: said.heading for side in self.sides for said in side.said}
        return [
            (topic, headings[topic], [lines.get(topic, ()) for lines in sides])
            for topic in HEADINGS
            if topic in headings
        ]


def section(finding: Finding) -> Section:
    """What is said about one variant."""
    told = sentences(finding)
    scopes = [verdict.scope for verdict in finding.verdicts]
    several = len(scopes) > 1
    members = finding.members.kind
    # Sentences by scope and topic; None: those of the one scope, or of neither.
    lines: dict[Scope | None, dict[Topic, list[str]]] = {}
    for s in told:
        scope = s.scope if several else None
        lines.setdefault(scope, {}).setdefault(s.topic, []).append(s.text)
    said = {
        scope: tuple(
            Said(topic, worded(HEADINGS[topic], members), tuple(texts))
            for topic, texts in topics.items()
            if topic in HEADINGS
        )
        for scope, topics in lines.items()
    }
    return Section(
        variant=finding.variant,
        baseline=finding.baseline,
        pair=" ".join(s.text for s in told if s.topic == "pair"),
        said=said.get(None, ()),
        sides=tuple(
            Side(
                worded(SIDES[scope], members),
                worded(QUESTIONS[scope], members),
                said.get(scope, ()),
            )
            for scope in scopes
            if several
        ),
        scope=tuple(s.text for s in told if s.topic == "scope"),
        reading=reading(finding),
    )


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
        f"fairweight mitigate overrides {tables} --labels annotations.csv --budget 1",
    )


def ship_commands(result: AuditResult) -> tuple[str, ...]:
    """A verdict by a policy; a choice where there is one to make."""
    folder = shlex.quote(str(result.provenance.request.get("out", FOLDER)))
    gate = (
        f"fairweight gate --init {folder} > policy.toml",
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
    folder = shlex.quote(str(result.provenance.request.get("out", FOLDER)))
    return f"fairweight report figure ID {folder} --variant NAME --out F.svg"


def _tables(result: AuditResult, *, members: bool = True) -> list[str]:
    """The files that were audited and the options that say how they are read."""
    asked = tables_of(result.provenance.request)
    if asked is None:  # which tables is not known, which groups is
        groups = ["--groups", written_list(result.groupings)] if result.groupings else []
        return ["PREDICTIONS", *groups]
    repeated = members and result.provenance.options.get("members") == "repeated"
    return [*asked.arguments(), *(["--members", "repeated"] if repeated else [])]


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


def answers(result: AuditResult, view: View, verdict: Verdict | None) -> tuple[Answer, ...]:
    """The three questions after who pays: why, what helps, what to ship."""
    why = Answer(
        "why", "Why", (), asking="Not computed yet. To see which examples and slices lose, run:",
        commands=(explain_command(result),),
    )  # fmt: skip
    if view.explained:
        every = [
            capitalised(line) if whose is None else of_variant(whose, line, len(view.findings))
            for whose in (None, *(section.variant for section in view.ranking))
            for line in view.explained.get(whose, ())
        ]
        lines = [line for line in every if line not in view.examples]  # said already
        left = len(lines) - MOST
        more = "Figures and tables"
        if left > 0:
            more = f"{count(left)} more sentences, figures and tables"
        why = Answer("why", "Why", (*lines[:MOST], CHANCE), more, "examples")

    helps = Answer(
        "helps", "What helps", (), asking="No mitigation was tried yet. These are fitted on some "
        "rows and audited on others:", commands=mitigate_commands(result),
    )  # fmt: skip
    if view.mitigated:
        left = len(view.mitigated) - MOST
        more = f"{count(left)} more sentences are in the table" if left > 0 else "The table"
        anchor = "table-explanation-mitigation"
        helps = Answer("helps", "What helps", view.mitigated[:MOST], more, anchor)

    told: list[str] = []
    if verdict is not None:
        told += [f"Gate: {headline(verdict)}.", *filter(None, [passing(verdict)])]
        for name in list(verdict.variants)[:MOST]:
            told.append(f"{standing(verdict, name)}.")
            told += [f"{with_interval(row)}." for row in endpoints(verdict, name)[:MOST]]
        told.append(how_to_read(verdict))
    choice = result.explanations.get("choice")
    if choice is not None:
        among, chosen = [], []
        for row in records(choice):
            name = shown(row["variant"], 60)
            if row["in_best_set"] is True:
                near = real(row.get("p_within_margin"))
                within = f" ({percent(near, 0)} within the margin of the best)"
                among.append(name if missing(near) else f"{name}{within}")
            if row["chosen"]:
                chosen.append(f"Chosen: {name}.")
        more = f" and {len(among) - MOST} more" if len(among) > MOST else ""
        best = f"The best is among, with 95 %: {', '.join(among[:MOST])}{more}."
        told += [*([best] if among else []), *chosen]
    ship = Answer("ship", "What to ship", tuple(told))
    if not told:
        ship = Answer(
            "ship", "What to ship", (), asking="No policy was given, so there is no verdict. To "
            "get one, run:", commands=ship_commands(result),
        )  # fmt: skip
    return why, helps, ship
