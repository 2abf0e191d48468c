"""What the page leads with: the finding, who pays most, what cannot be told.

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
    payer_group,
    payer_mark,
)
from fairweight.report.ranking import Standing, ranked
from fairweight.report.sentences import confidence, named
from fairweight.report.verdict import Payer

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
    who: str
    hit: str
    hit_mark: Mark | None
    unseen: str

    @property
    def hit_hardest(self) -> str:
        """Who, and by how much, in one cell."""
        return NOTHING if self.who == NOTHING else f"{self.who} {self.hit}"


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
    reference: str  # the loss that the examples needed are about
    members: str = RETRAINED  # what they are: retrained or repeated


def page_lead(result: AuditResult, found: Sequence[Finding]) -> Lead:
    """The first screen of an audit."""
    standings = ranked(found)
    methods = {s.place: s for s in ranked(found, "method")}
    chosen = {kind: chosen_payers(standings, kind) for kind in KINDS}
    hits = [s.hardest for s in standings if s.hardest is not None]
    rows = [payer for group in chosen.values() for _, payer in group]
    ends = [v for payer in (*hits, *rows) for v in _ends(payer)]
    drawn = scale_of([*ends, *(s.overall for s in standings)])
    payers = [payer_group(kind, group, drawn, methods) for kind, group in chosen.items()]
    several = len(found) > 1
    options = result.provenance.options
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
        reference=f"{100 * float(options.get('reference_shift', 0.02)):g} points",
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


def _ends(payer: Payer) -> Iterable[float]:
    floor = payer.context.noise_floor
    return payer.shift, payer.low, payer.high, floor, -floor


def _summary(standing: Standing, method: Standing | None, drawn: Scale) -> SummaryRow:
    verdict, finding, hardest = standing.verdict, standing.finding, standing.hardest
    change = verdict.overall
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
        who=NOTHING if hardest is None else named(hardest, NAME),
        hit=NOTHING if hardest is None else bare(hardest),
        hit_mark=None if hardest is None else payer_mark(drawn, hardest, standing.overall),
        unseen=_of(len(finding.blind), finding.n_watched),
    )


def _of(some: int, every: int) -> str:
    return f"{count(some)} of {count(every)}" if every else NOTHING
