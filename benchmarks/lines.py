"""What a benchmark returns: lines that compare a measurement with a peer or a limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

HEADER = ("what", "measured", "against", "ratio", "target", "verdict")


@dataclass(frozen=True)
class Line:
    """One measurement and what it is compared with.

    The ratio is measured / reference and should not exceed `target`; with `faster` it is
    reference / measured and should reach `target`. Lines without a target say where time goes.
    """

    what: str
    measured: float
    against: str
    reference: float
    unit: Literal["s", "MB"] = "s"
    target: float | None = None
    faster: bool = False

    @property
    def ratio(self) -> float:
        """Measured over reference, or the reverse where the question is how much faster.

        >>> Line("audit", 5.0, "limit", 10.0).ratio
        0.5
        >>> Line("replicates", 2.0, "peer", 8.0, faster=True).ratio
        4.0
        """
        if self.faster:
            return self.reference / self.measured
        return self.measured / self.reference

    @property
    def verdict(self) -> str:
        """`pass` or `fail`; empty without a target.

        >>> [Line("a", 3.0, "limit", 2.0, target=1.0).verdict,
        ...  Line("b", 3.0, "peer", 9.0, target=2.0, faster=True).verdict,
        ...  Line("c", 3.0, "whole", 9.0).verdict]
        ['fail', 'pass', '']
        """
        if self.target is None:
            return ""
        reached = self.ratio >= self.target if self.faster else self.ratio <= self.target
        return "pass" if reached else "fail"

    def cells(self, *, judged: bool) -> tuple[str, ...]:
        """The line as text; not `judged` where the sizes are not those the targets are for."""
        if self.target is None:
            target = ""
        else:
            target = f"{'≥' if self.faster else '≤'} {_number(self.target)}×"
        return (
            self.what,
            f"{_number(self.measured)} {self.unit}",
            f"{self.against}: {_number(self.reference)} {self.unit}",
            f"{_number(self.ratio)}×",
            target,
            self.verdict if judged else "",
        )


def _number(value: float) -> str:
    """Three significant digits without an exponent.

    >>> _number(1234567.0), _number(12.345), _number(0.01234)
    ('1,230,000', '12.3', '0.0123')
    """
    if value == 0:
        return "0"
    size = f"{abs(value):e}"
    decimals = max(0, 2 - int(size[size.index("e") + 1 :]))
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.{decimals}f}"


def markdown(lines: Iterable[Line], *, judged: bool) -> str:
    """The lines as a Markdown table."""
    rows = [HEADER, ("---",) * len(HEADER), *(line.cells(judged=judged) for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def plain(lines: Sequence[Line], *, judged: bool) -> str:
    """The lines as columns for a terminal."""
    rows = [HEADER, *(line.cells(judged=judged) for line in lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADER))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
