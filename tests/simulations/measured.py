"""What a simulation measured, and how far chance may move it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

ALLOWANCE = 2.0  # standard errors of a simulated share that a bound is widened by


@dataclass(frozen=True)
class Share:
    """How often something happened.

    `of` counts independent audits. Rows of one audit are not independent, so shares over rows are
    entered as a mean per audit with the number of audits: that makes the allowance wider than it
    need be, never narrower.
    """

    value: float
    of: int

    @property
    def error(self) -> float:
        """Monte-Carlo standard error."""
        return sqrt(self.value * (1 - self.value) / self.of)

    def at_least(self, bound: float) -> bool:
        return self.value >= bound - self._allowance(bound)

    def at_most(self, bound: float) -> bool:
        return self.value <= bound + self._allowance(bound)

    def within(self, low: float, high: float) -> bool:
        return self.at_least(low) and self.at_most(high)

    def _allowance(self, bound: float) -> float:
        return ALLOWANCE * sqrt(bound * (1 - bound) / self.of)

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} %"


def share(happened: Iterable[Any]) -> Share:
    """The share of audits in which it happened; an array counts with its mean.

    NaN (a row that the audit calls not estimable) is left out, and so are audits with nothing else.
    """
    arrays = [np.asarray(x, dtype=float) for x in happened]
    values = [np.nanmean(x) for x in arrays if not np.isnan(x).all()]
    return Share(float(np.mean(values)), len(values))


@dataclass(frozen=True)
class Figures:
    """One table of the documentation."""

    name: str  # the marker in docs/statistics.md
    head: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    note: str = ""  # a line below: how many runs, which seed

    def markdown(self) -> str:
        lines = [self.head, ("---",) * len(self.head), *self.rows]
        table = "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
        return f"{table}\n\n{self.note}" if self.note else table
