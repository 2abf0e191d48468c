"""Why an endpoint was decided as it was, in the unit that the policy uses."""

from __future__ import annotations

import math
from dataclasses import dataclass

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Limits:
    """Limits on the scale on which more is better, and what they are compared with."""

    criterion: str  # margin | min | max
    limit: float  # as the policy has it
    low: float  # uncorrected
    high: float  # corrected where the endpoint fails, else uncorrected
    worst: float  # the least that is possible at all

    @property
    def certifiable(self) -> float:
        """The strictest limit that these data certify; NaN if none.

        A margin must be above it, a floor below it, a ceiling above it.
        """
        if not self.low > self.worst:
            return math.nan
        if self.criterion == "margin":
            return max(0.0, -self.low)
        return self.low if self.criterion == "min" else -self.low


def why_pass(of: Limits) -> str:
    limit = plain(of.limit)
    if of.criterion == "margin":
        most = f"it is at most {plain(-of.low)}" if of.low < 0 else "there is none"
        return f"a loss of {limit} is excluded: {most}"
    if of.criterion == "min":
        return f"it is above {limit}: at least {plain(of.low)}"
    return f"it is below {limit}: at most {plain(-of.low)}"


def why_fail(of: Limits, endpoints: int) -> str:
    limit = plain(of.limit)
    corrected = f" (Holm, {endpoints:,} endpoints)" if endpoints > 1 else ""
    if of.criterion == "margin":
        return f"a loss of more than {limit} is shown: at least {plain(-of.high)}{corrected}"
    if of.criterion == "min":
        return f"it is below {limit}: at most {plain(of.high)}{corrected}"
    return f"it is above {limit}: at least {plain(-of.high)}{corrected}"


def why_cannot_tell(of: Limits, endpoints: int, *, alone: bool) -> str:
    """`alone`: the row by itself would fail, but not among all that were looked at."""
    limit = plain(of.limit)
    what = {
        "margin": f"a loss of {limit} is neither excluded nor shown",
        "min": f"it is neither above nor below {limit} for sure",
        "max": f"it is neither below nor above {limit} for sure",
    }[of.criterion]
    if alone:
        what = f"it misses {limit} by itself, but not after Holm over {endpoints:,} endpoints"
    if math.isnan(of.certifiable):
        return f"{what}; these data certify no {NAMES[of.criterion]} at all"
    held = below(of.certifiable) if of.criterion == "min" else above(of.certifiable)
    return f"{what}; these data certify a {NAMES[of.criterion]} of {held}"


NAMES = {"margin": "margin", "min": "floor", "max": "ceiling"}


def plain(value: float) -> str:
    """Four digits.

    >>> plain(-0.0123456), plain(0.02)
    ('−0.01235', '0.02')
    """
    return f"{value:.4g}".replace("-", MINUS)


def above(value: float) -> str:
    """The next number of four decimals (or digits) that is really larger, to copy into a policy.

    >>> above(0.0312345), above(0.02), above(12.3456)
    ('0.0313', '0.0201', '12.35')
    """
    step = _step(value)
    return plain((math.floor(value / step + 1e-9) + 1) * step)


def below(value: float) -> str:
    """The same downwards.

    >>> below(0.79996), below(0.8)
    ('0.7999', '0.7999')
    """
    step = _step(value)
    return plain((math.ceil(value / step - 1e-9) - 1) * step)


def _step(value: float) -> float:
    return float(10.0 ** (math.floor(math.log10(abs(value))) - 3)) if abs(value) >= 1 else 1e-4
