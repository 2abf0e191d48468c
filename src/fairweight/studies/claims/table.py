"""All claims of a study judged: as a frame, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.specs.claims import Claim, Claims
from fairweight.studies.claims.contrast import paired_estimate
from fairweight.studies.claims.judge import CANNOT_TELL, of_all_lines, verdict
from fairweight.studies.claims.members import dense_estimate
from fairweight.studies.claims.select import (
    NO_ROW,
    RESULTS,
    Estimate,
    lines,
    stored_estimate,
    table_of,
)
from fairweight.studies.claims.stored import NotThereError, Stored

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "claim", "statement", "place", "quantity", "line", "direction", "null", "smallest", "why",
    "value", "low", "high", "interval", "scope", "retraining", "verdict", "reason",
    "claim_verdict",
)  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """A claim with its lines: the values of `each`, the estimate, the verdict."""

    claim: Claim
    lines: tuple[tuple[str, Estimate, str], ...]
    verdict: str


def judged(claims: Claims, results: Path) -> list[Judged]:
    """Judge every claim from the published results of a study."""
    stored = Stored(results)
    return [_judge(claim, stored) for claim in claims.claim]


def _judge(claim: Claim, stored: Stored) -> Judged:
    if claim.unjudged is not None:
        return _untold(claim, claim.unjudged)
    try:
        asked = list(lines(claim, stored))
    except NotThereError as error:
        return _untold(claim, str(error))
    if not asked:
        return _untold(claim, NO_ROW)
    made = []
    for line in asked:
        found = _estimate(claim, line, stored, len(asked))
        told = CANNOT_TELL
        if not found.reason:
            low, high = found.low - claim.null, found.high - claim.null
            told = verdict(claim.direction, low, high, claim.smallest)
        made.append((", ".join(str(value) for value in line.values()), found, told))
    return Judged(claim, tuple(made), of_all_lines(claim, [told for _, _, told in made]))


def _untold(claim: Claim, reason: str) -> Judged:
    return Judged(claim, (("", Estimate(reason=reason), CANNOT_TELL),), CANNOT_TELL)


def _estimate(claim: Claim, line: dict[str, Any], stored: Stored, n_lines: int) -> Estimate:
    try:
        if claim.against is not None:
            return paired_estimate(claim, line, stored, n_lines)
        where = {**claim.where, **line}
        found = stored_estimate(claim, where, stored)
        if found.reason and claim.value == "baseline" and table_of(claim) == RESULTS:
            return dense_estimate(claim, where, stored)
        return found
    except NotThereError as error:
        return Estimate(reason=str(error))


def frame(found: Sequence[Judged]) -> pd.DataFrame:
    """A row per line of every claim."""
    import pandas as pd

    rows = [
        {
            "claim": one.claim.id, "statement": one.claim.statement, "place": one.claim.place,
            "quantity": one.claim.quantity, "line": line, "direction": one.claim.direction,
            "null": one.claim.null, "smallest": one.claim.smallest, "why": one.claim.why,
            "value": estimate.value, "low": estimate.low, "high": estimate.high,
            "interval": estimate.interval, "scope": estimate.scope, "retraining": estimate.floor,
            "verdict": told, "reason": estimate.reason, "claim_verdict": one.verdict,
        }
        for one in found
        for line, estimate, told in one.lines
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS))
