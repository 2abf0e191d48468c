"""Variants side by side: who is hit hardest in each, the clearest loss first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairweight.report.finding import Finding
from fairweight.report.numbers import missing
from fairweight.report.rows import Scope
from fairweight.report.verdict import Payer, Verdict


@dataclass(frozen=True)
class Standing:
    """One variant in the ranking, read in one scope."""

    place: int  # among the variants as they were given, from 1
    finding: Finding
    verdict: Verdict

    @property
    def hardest(self) -> Payer | None:
        """Who loses most; where nobody is shown to lose, the largest fall."""
        if self.verdict.loses:
            return self.verdict.loses[0]
        falls = [payer for payer in self.verdict.shifts if payer.shift < 0]
        return min(falls, key=lambda payer: payer.shift, default=None)

    @property
    def overall(self) -> float:
        """The shift of accuracy; 0 where it cannot be told."""
        change = self.verdict.overall
        return 0.0 if change is None or missing(change.shift) else change.shift


def ranked(found: Sequence[Finding], scope: Scope = "model") -> tuple[Standing, ...]:
    """Variants with a shown loss first, by its size; then the others by their accuracy.

    In scope `method` only those of which it can be told.
    """
    standings = [
        Standing(place, finding, verdict)
        for place, finding in enumerate(found, start=1)
        for verdict in finding.verdicts
        if verdict.scope == scope
    ]
    return tuple(sorted(standings, key=_order))


def _order(standing: Standing) -> tuple[bool, float]:
    loses = standing.verdict.loses
    return not loses, loses[0].shift if loses else standing.overall
