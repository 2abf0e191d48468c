"""What cannot be told, over all variants, and how many examples it would take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fairweight.report.finding import Finding
from fairweight.report.numbers import NOTHING, count, missing, shown, size_in_points
from fairweight.report.sentences import cannot_tell, named
from fairweight.report.unseen import Blind

MOST = 6
BAR = 120  # width of a bar that stands for enough examples


@dataclass(frozen=True)
class UnseenRow:
    """A class or group in which a loss could have gone unseen."""

    who: str
    n: str
    detectable: str
    needed: str
    bar: float  # of BAR: the part of the examples needed that are there
    variants: str


@dataclass(frozen=True)
class Unseen:
    """The part of the page about what is not known."""

    lines: tuple[str, ...]  # about methods and those without a verdict
    reference: str
    rows: tuple[UnseenRow, ...]
    left: int  # rows that are not shown here
    bar: int = BAR


def page_unseen(found: Sequence[Finding]) -> Unseen | None:
    """The part, or None where nothing is left open."""
    merged: dict[tuple[str, str, str | None], list[Blind]] = {}
    for finding in found:
        for blind in finding.blind:
            merged.setdefault((blind.kind, blind.name, blind.task), []).append(blind)
    # Whoever is furthest from enough examples first: that is where a loss hides best.
    ordered = sorted(merged.values(), key=_there)
    lines = _lines(found)
    if not ordered and not lines:
        return None
    reference = ordered[0][0].reference if ordered else math.nan
    return Unseen(
        lines=lines,
        reference="" if missing(reference) else f"{100 * reference:g} points",
        rows=tuple(_row(blinds, len(found)) for blinds in ordered[:MOST]),
        left=max(0, len(ordered) - MOST),
    )


def _there(blinds: list[Blind]) -> float:
    """The part of the examples needed that are there, in the worst variant."""
    parts = [
        b.n / b.n_needed
        for b in blinds
        if b.n is not None and b.n_needed > 0 and _known(b.n_needed)
    ]
    return min(parts, default=0.0)


def _known(value: float) -> bool:
    return not missing(value) and math.isfinite(value)


def _row(blinds: list[Blind], n_variants: int) -> UnseenRow:
    worst = max(blinds, key=lambda b: b.n_needed if _known(b.n_needed) else -1.0)
    missed = any(missing(b.detectable) for b in blinds)
    return UnseenRow(
        who=named(worst, 60),
        n=count(worst.n),
        detectable=NOTHING if missed else size_in_points(max(b.detectable for b in blinds)),
        needed=f"about {count(round(worst.n_needed))}" if _known(worst.n_needed) else NOTHING,
        bar=round(BAR * min(1.0, _there(blinds)), 1),
        variants=f"{count(len(blinds))} of {count(n_variants)}",
    )


def _lines(found: Sequence[Finding]) -> tuple[str, ...]:
    """What is said beside the losses that could have gone unseen, each sentence once."""
    said: dict[str, list[str]] = {}
    for finding in found:
        for line in cannot_tell(finding):
            if not line.startswith("Too few examples"):
                said.setdefault(line, []).append(shown(finding.variant, 40))
    every = len(found)
    return tuple(
        line if len(names) == every else f"{', '.join(names)}: {line}"
        for line, names in said.items()
    )
