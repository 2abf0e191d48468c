"""Why, what helps, what to ship: what an audit says of them, or the commands that would tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.report.explain_page import begun
from fairweight.report.explain_sentences import sentences_by_variant
from fairweight.report.gate.words import (
    endpoints,
    headline,
    how_to_read,
    passing,
    standing,
    with_interval,
)
from fairweight.report.mitigation_sentences import mitigation_sentences
from fairweight.report.next_steps import explain_command, mitigate_commands, ship_commands
from fairweight.report.numbers import count, missing, percent, real, shown
from fairweight.report.page_lead import Lead, of_variant
from fairweight.report.ranking import ranked
from fairweight.report.rows import records

if TYPE_CHECKING:
    from fairweight.auditing.decide.gate import Verdict
    from fairweight.auditing.result import AuditResult
    from fairweight.report.finding import Finding

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
