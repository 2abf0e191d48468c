"""Variants side by side: who loses most in each, the clearest loss first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairweight.report.finding import Finding
from fairweight.report.numbers import missing
from fairweight.report.rows import Scope
from fairweight.report.verdict import Verdict


@dataclass(frozen=True)
class Standing:
    """One variant in the ranking, read in one scope."""

    place: int  # among the variants as they were given, from 1
    finding: Finding
    verdict: Verdict

    @property
    def loses_overall(self) -> bool:
        """Whether accuracy is shown to fall."""
        change = self.verdict.overall
        return change is not None and not missing(change.high) and change.high < 0

    @property
    def overall(self) -> float:
        """The shift of accuracy; 0 where it cannot be told."""
        change = self.verdict.overall
        return 0.0 if change is None or missing(change.shift) else change.shift


def ranked(found: Sequence[Finding], scope: Scope = "model") -> tuple[Standing, ...]:
    """Variants in which somebody loses most first, then those with another shown loss.

    Each by the size of that loss; then the others by their accuracy.

    In scope `method` only those of which it can be told.
    """
    standings = [
        Standing(place, finding, verdict)
        for place, finding in enumerate(found, start=1)
        for verdict in finding.verdicts
        if verdict.scope == scope
    ]
    return tuple(sorted(standings, key=_order))


def _order(standing: Standing) -> tuple[int, float]:
    verdict = standing.verdict
    if verdict.most is not None:
        return 0, verdict.most.shift
    if standing.loses_overall or verdict.loses:
        return 1, standing.overall
    if verdict.pays_more:
        return 2, verdict.pays_more[0].shift
    return 3, standing.overall
