"""A value and its limits as a small drawing: a dot on a line, beside 0 and the noise floor.

Drawn as SVG in the page itself, so that it is there without scripts, on paper and in notebooks. A
filled dot has limits that exclude 0, a hollow one has not: colour says nothing that shape does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from fairweight.report.numbers import missing, signed

WIDTH, HEIGHT, EDGE = 200, 18, 6
_STEPS = (0.5, 1, 2, 5, 10, 20, 50, 100)  # points
TICKS = 5


@dataclass(frozen=True)
class Scale:
    """From shares to places on the drawing; the same for all rows of one table."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """The place of a value.

        >>> Scale(-0.1, 0.1).at(0.0), Scale(-0.1, 0.1).at(-0.1)
        (100.0, 6.0)
        """
        inside = (value - self.low) / (self.high - self.low)
        return round(EDGE + (WIDTH - 2 * EDGE) * min(1.0, max(0.0, inside)), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places and names of round numbers of points.

        >>> Scale(-0.11, 0.02).ticks
        [(20.5, '−10'), (92.8, '−5'), (165.1, '0')]
        """
        span = 100 * (self.high - self.low)
        step = next((s for s in _STEPS if span / s <= TICKS), _STEPS[-1])
        first = math.ceil(100 * self.low / step - 1e-9)
        last = math.floor(100 * self.high / step + 1e-9)
        places = [step * i for i in range(first, last + 1)]
        decimals = 1 if step < 1 else 0
        return [(self.at(p / 100), signed(p, decimals) if p else "0") for p in places]


@dataclass(frozen=True)
class Mark:
    """The places of one row."""

    dot: float
    low: float | None
    high: float | None
    zero: float
    floor: tuple[float, float] | None  # where retraining alone could put it: from, width
    excludes_zero: bool
    beside: float | None = None  # where everybody together is


def scale_of(values: Iterable[float]) -> Scale:
    """A scale that holds these values and 0, with a little room.

    >>> scale_of([-0.08, float("nan"), 0.01])
    Scale(low=-0.0845, high=0.0145)
    """
    known = [0.0, *(v for v in values if not missing(v) and math.isfinite(v))]
    low, high = min(known), max(known)
    room = 0.05 * (high - low) or 0.01
    return Scale(round(low - room, 10), round(high + room, 10))


def mark(
    scale: Scale,
    value: float,
    low: float,
    high: float,
    floor: float = math.nan,
    beside: float = math.nan,
) -> Mark | None:
    """Where the parts of one row are drawn; None where there is no value."""
    if missing(value):
        return None
    band = None
    if not missing(floor):
        left, right = scale.at(-abs(floor)), scale.at(abs(floor))
        band = (left, round(right - left, 1))
    return Mark(
        dot=scale.at(value),
        low=None if missing(low) else scale.at(low),
        high=None if missing(high) else scale.at(high),
        zero=scale.at(0.0),
        floor=band,
        excludes_zero=high < 0 or low > 0,
        beside=None if missing(beside) else scale.at(beside),
    )
