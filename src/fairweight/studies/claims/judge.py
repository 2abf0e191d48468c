"""From an interval to a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from fairweight.specs.claims import Claim, Direction

REPRODUCES = "reproduces"
SMALLER = "reproduces, smaller than what matters"
DOES_NOT = "does not reproduce"
CANNOT_TELL = "cannot tell at this scale"
VERDICTS = (REPRODUCES, SMALLER, DOES_NOT, CANNOT_TELL)


def verdict(direction: Direction, low: float, high: float, smallest: float) -> str:
    """The verdict on a difference from no effect.

    A claim of a change reproduces where the interval excludes 0 in its direction, and does not
    where it excludes the smallest effect that matters. A claim of no change is the negation: it
    reproduces where the interval excludes the smallest effect, and does not where it excludes 0
    and reaches the smallest effect.

    >>> verdict("up", 0.01, 0.09, 0.05), verdict("up", 0.01, 0.04, 0.05)
    ('reproduces', 'reproduces, smaller than what matters')
    >>> verdict("up", -0.02, 0.04, 0.05), verdict("down", -0.02, 0.04, 0.01)
    ('does not reproduce', 'cannot tell at this scale')
    >>> verdict("none", -0.02, 0.04, 0.05), verdict("none", 0.01, 0.04, 0.03)
    ('reproduces', 'does not reproduce')
    """
    if isnan(low) or isnan(high):
        return CANNOT_TELL
    if direction in ("down", "not-down"):
        low, high = -high, -low
    there = low > 0
    negligible = high < smallest
    if direction == "none":
        there = low > 0 or high < 0
        negligible = -smallest < low and high < smallest
    if direction in ("up", "down"):
        if there:
            return SMALLER if negligible else REPRODUCES
        return DOES_NOT if negligible else CANNOT_TELL
    if negligible:
        return REPRODUCES
    return DOES_NOT if there else CANNOT_TELL


def of_all_lines(claim: Claim, verdicts: Sequence[str]) -> str:
    """The verdict on a claim from those on its lines.

    Reproducing in all lines at once needs no correction; `some` has corrected limits.
    """
    if not verdicts:
        return CANNOT_TELL
    seen = [v in (REPRODUCES, SMALLER) for v in verdicts]
    against = verdicts.count(DOES_NOT)
    half = len(verdicts) / 2
    holds = {"all": all(seen), "most": sum(seen) > half, "some": any(seen)}[claim.needs]
    fails = {"all": against > 0, "most": against > half, "some": against == len(verdicts)}
    if holds:
        large = verdicts.count(REPRODUCES)
        matters = {"all": large == len(verdicts), "most": large > half, "some": large > 0}
        return REPRODUCES if matters[claim.needs] else SMALLER
    return DOES_NOT if fails[claim.needs] else CANNOT_TELL
