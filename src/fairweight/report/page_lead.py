"""What the page leads with: the finding, who pays, what is ruled out, what cannot be told.

Rows as the template needs them; every number is one of the tables below, every sentence one of
`report.sentences` and its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairweight.report.explain_page import begun
from fairweight.report.explain_sentences import sentences_by_variant
from fairweight.report.finding import Finding
from fairweight.report.interval_mark import Mark, Scale, scale_of
from fairweight.report.lead_sentences import beyond_retraining, facts, headline
from fairweight.report.members import RETRAINED, members_of
from fairweight.report.numbers import NOTHING, count, missing, shown
from fairweight.report.page_payers import (
    KINDS,
    NAME,
    PayerGroup,
    bare,
    before_after,
    chosen_payers,
    interval_mark,
    payer_group,
)
from fairweight.report.ranking import Standing, ranked
from fairweight.report.sentences import confidence, named
from fairweight.report.unseen import margin_of
from fairweight.report.verdict import Change, Payer

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

FIRST = 8  # variants of the ranking that stand on the first screen; the others are folded
EXAMPLES = 3  # variants whose exemplars are counted there


@dataclass(frozen=True)
class SummaryRow:
    """One variant in the ranking."""

    anchor: str
    variant: str
    accuracy: str
    shift: str
    loses: str
    pays_more: str
    method_loses: str
    who: str  # loses most, which takes an excess; or that nobody is shown to
    size: str
    mark: Mark | None  # of whoever loses most, else of all examples together
    ruled_out: str
    unseen: str

    @property
    def most(self) -> str:
        """Who loses most, and how much, in one cell."""
        return f"{self.who} {self.size}".rstrip()


@dataclass(frozen=True)
class Lead:
    """The first screen."""

    headline: str
    beyond: str | None
    facts: str
    scale: Scale
    summary: tuple[SummaryRow, ...]
    payers: tuple[PayerGroup, ...]
    examples: tuple[str, ...]  # how many examples changed their answer, where it was asked
    several: bool  # variants
    method: bool  # whether any variant has a verdict beyond retraining
    floors: bool
    limits: str
    reference: str  # the loss that matters
    one_rate: bool  # whether limits hold for all variants at once
    members: str = RETRAINED  # what they are: retrained or repeated


def page_lead(result: AuditResult, found: Sequence[Finding]) -> Lead:
    """The first screen of an audit."""
    standings = ranked(found)
    methods = {s.place: s for s in ranked(found, "method")}
    chosen = {kind: chosen_payers(standings, kind) for kind in KINDS}
    leading = [item for s in standings if (item := s.verdict.most or s.verdict.overall) is not None]
    rows = [payer for group in chosen.values() for _, payer in group]
    ends = [v for item in (*leading, *rows) for v in _ends(item)]
    drawn = scale_of([*ends, *(s.overall for s in standings)])
    payers = [payer_group(kind, group, drawn, methods) for kind, group in chosen.items()]
    several = len(found) > 1
    return Lead(
        headline=headline(found),
        beyond=beyond_retraining(found),
        facts=facts(result, found),
        scale=drawn,
        summary=tuple(_summary(s, methods.get(s.place), drawn) for s in standings),
        payers=tuple(group for group in payers if group is not None),
        examples=_examples(result, standings),
        several=several,
        method=bool(methods),
        floors=any(not missing(payer.context.noise_floor) for payer in rows),
        limits=confidence(found[0]),
        reference=f"{100 * margin_of(result):g} points",
        one_rate=found[0].one_rate,
        members=members_of(result),
    )


def of_variant(variant: str, sentence: str, n_variants: int) -> str:
    """A sentence with the variant that it is about, where there are several.

    >>> of_variant("int8", "no slice found.", 2), of_variant("int8", "no slice found.", 1)
    ('int8: no slice found.', 'No slice found.')
    """
    return begun(sentence) if n_variants == 1 else f"{shown(variant, NAME)}: {sentence}"


def _examples(result: AuditResult, standings: Sequence[Standing]) -> tuple[str, ...]:
    """The first sentence about the exemplars of the variants that come first."""
    if "exemplar_counts" not in result.explanations:
        return ()
    said = sentences_by_variant(result)
    names = [s.finding.variant for s in standings[:EXAMPLES]]
    return tuple(
        of_variant(name, said[name][0], len(standings)) for name in names if said.get(name)
    )


def _ends(item: Change | Payer) -> Iterable[float]:
    floor = item.context.noise_floor
    return item.shift, item.low, item.high, floor, -floor


def _summary(standing: Standing, method: Standing | None, drawn: Scale) -> SummaryRow:
    verdict, finding = standing.verdict, standing.finding
    most, change, certain = verdict.most, verdict.overall, finding.ruled_out
    drawn_first = most or change
    return SummaryRow(
        anchor=f"variant-{standing.place}",
        variant=shown(finding.variant, NAME),
        accuracy=before_after(change),
        shift=NOTHING if change is None else bare(change),
        loses=_of(len(verdict.loses), len(verdict.shifts)),
        pays_more=_of(len(verdict.pays_more), len(verdict.excesses)),
        method_loses=NOTHING
        if method is None
        else _of(len(method.verdict.loses), len(method.verdict.shifts)),
        who="nobody shown" if most is None else named(most, NAME),
        size="" if most is None else bare(most),
        mark=None if drawn_first is None else interval_mark(drawn, drawn_first, standing.overall),
        ruled_out=NOTHING if certain is None else _of(certain.number, certain.of),
        unseen=_of(len(finding.blind), finding.n_watched),
    )


def _of(some: int, every: int) -> str:
    return f"{count(some)} of {count(every)}" if every else NOTHING
