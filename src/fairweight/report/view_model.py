"""What the page leads with: the finding, who pays, what is ruled out, what cannot be told.

Rows as the template needs them; every number is one of the tables below, every sentence one of
`report.sentences` and its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairweight.base.wording import NOTHING, missing, shown
from fairweight.report.explanation_sentences import sentences_by_variant
from fairweight.report.finding import (
    Blind,
    Change,
    Finding,
    Kind,
    Payer,
    Standing,
    margin_of,
    ranked,
)
from fairweight.report.members import RETRAINED, members_of
from fairweight.report.numbers import (
    count,
    p_value,
    percent,
    points_interval,
    signed,
    size_in_points,
)
from fairweight.report.sentences import (
    begun,
    beyond_retraining,
    by_how_much,
    cannot_tell,
    confidence,
    facts,
    headline,
    named,
)

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


# A value and its limits as a small drawing: a dot on a line, beside 0 and the noise floor.
#
# Drawn as SVG in the page itself, so that it is there without scripts, on paper and in notebooks.
# A
# filled dot has limits that exclude 0, a hollow one has not: colour says nothing that shape does
# not.

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


# Who pays over all variants: a few groups and classes, with limits and noise floors.

MOST_PAYERS = 4  # classes, and groups, that are named
NAME = 60
KINDS: tuple[Kind, ...] = ("group", "class")


@dataclass(frozen=True)
class PayerRow:
    """A class or group that pays."""

    who: str
    variant: str
    n: str
    before_after: str
    said: str
    mark: Mark | None
    excess: str
    method: str
    floor: str


@dataclass(frozen=True)
class PayerGroup:
    """Groups, or classes, with what is said where none is shown to lose more than the rest."""

    title: str
    rows: tuple[PayerRow, ...]
    note: str | None


def before_after(item: Change | Payer | None) -> str:
    if item is None or missing(item.compressed):
        return NOTHING
    digits = 2 if abs(item.compressed - item.baseline) < 0.001 else 1
    before = percent(item.baseline, digits).removesuffix(" %")
    return f"{before} → {percent(item.compressed, digits)}"


def bare(item: Change | Payer) -> str:
    return points_interval(item.shift, item.low, item.high).replace(" points", "")


def interval_mark(scale: Scale, item: Change | Payer, overall: float) -> Mark | None:
    floor = item.context.noise_floor
    return mark(scale, item.shift, item.low, item.high, floor, overall)


def chosen_payers(standings: Sequence[Standing], kind: Kind) -> list[tuple[Standing, Payer]]:
    """Who of this kind loses more than the rest, over all variants, the largest loss first.

    Where nobody does, who loses; where nobody is shown to, the largest fall alone.
    """
    more = {(s.place, p.key) for s in standings for p in s.verdict.pays_more}
    falls = [(s, p) for s in standings for p in s.verdict.shifts if p.kind == kind and p.shift < 0]
    falls.sort(key=lambda pair: pair[1].shift)
    paying = [(s, p) for s, p in falls if (s.place, p.key) in more]
    losing = [(s, p) for s, p in falls if p.high < 0]
    return (paying or losing)[:MOST_PAYERS] or falls[:1]


def payer_group(
    kind: Kind,
    chosen: list[tuple[Standing, Payer]],
    scale: Scale,
    methods: Mapping[int, Standing],
) -> PayerGroup | None:
    if not chosen:
        return None
    word = "group" if kind == "group" else "class"
    first, payer = chosen[0]
    note = None
    if payer.key not in {other.key for other in first.verdict.pays_more}:
        note = (
            f"No {word} is shown to lose more than the rest. Shown to lose:"
            if payer.high < 0
            else f"No {word} is shown to lose. The largest fall:"
        )
    return PayerGroup(
        title="Groups" if kind == "group" else "Classes",
        rows=tuple(_payer_row(s, payer, scale, methods.get(s.place)) for s, payer in chosen),
        note=note,
    )


def _payer_row(standing: Standing, payer: Payer, scale: Scale, method: Standing | None) -> PayerRow:
    floor = payer.context.noise_floor
    return PayerRow(
        who=named(payer, NAME),
        variant=shown(standing.finding.variant, NAME),
        n=count(payer.n),
        before_after=before_after(payer),
        said=bare(payer),
        mark=interval_mark(scale, payer, standing.overall),
        excess=_excess(standing, payer),
        method=NOTHING if method is None else _in_method(method, payer),
        floor=NOTHING if missing(floor) else size_in_points(floor).removesuffix(" points"),
    )


def _excess(standing: Standing, payer: Payer) -> str:
    """Whether it loses more than the rest, with the excess and its p."""
    own = next((p for p in standing.verdict.excesses if p.key == payer.key), None)
    if own is None or missing(own.shift):
        return NOTHING
    if missing(own.p) or own.p > standing.verdict.alpha:
        return f"not shown ({p_value(own.p)})"
    if own.shift < 0:
        return f"yes, by {by_how_much(own).replace(' points', '')}"
    return f"no, less by {bare(own).replace('+', '')}"


def _in_method(method: Standing, payer: Payer) -> str:
    own = next((p for p in method.verdict.shifts if p.key == payer.key), None)
    if own is None:
        return NOTHING
    ends = bare(own).partition(" ")[2]  # the shift itself is the same in both scopes
    return f"yes: {ends}" if own.high < 0 else f"not shown: {ends}".removesuffix(": ")


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
    who: str  # loses most, which takes an excess; or that nobody is shown to
    size: str
    mark: Mark | None  # of whoever loses most, else of all examples together
    ruled_out: str
    unseen: str

    @property
    def most(self) -> str:
        """Who loses most, and how much, in one cell."""
        return f"{self.who} {self.size}".rstrip()


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
    reference: str  # the loss that matters
    one_rate: bool  # whether limits hold for all variants at once
    members: str = RETRAINED  # what they are: retrained or repeated


def page_lead(result: AuditResult, found: Sequence[Finding]) -> Lead:
    """The first screen of an audit."""
    standings = ranked(found)
    methods = {s.place: s for s in ranked(found, "method")}
    chosen = {kind: chosen_payers(standings, kind) for kind in KINDS}
    leading = [item for s in standings if (item := s.verdict.most or s.verdict.overall) is not None]
    rows = [payer for group in chosen.values() for _, payer in group]
    ends = [v for item in (*leading, *rows) for v in _ends(item)]
    drawn = scale_of([*ends, *(s.overall for s in standings)])
    payers = [payer_group(kind, group, drawn, methods) for kind, group in chosen.items()]
    several = len(found) > 1
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
        reference=f"{100 * margin_of(result):g} points",
        one_rate=found[0].one_rate,
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


def _ends(item: Change | Payer) -> Iterable[float]:
    floor = item.context.noise_floor
    return item.shift, item.low, item.high, floor, -floor


def _summary(standing: Standing, method: Standing | None, drawn: Scale) -> SummaryRow:
    verdict, finding = standing.verdict, standing.finding
    most, change, certain = verdict.most, verdict.overall, finding.ruled_out
    drawn_first = most or change
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
        who="nobody shown" if most is None else named(most, NAME),
        size="" if most is None else bare(most),
        mark=None if drawn_first is None else interval_mark(drawn, drawn_first, standing.overall),
        ruled_out=NOTHING if certain is None else _of(certain.number, certain.of),
        unseen=_of(len(finding.blind), finding.n_watched),
    )


def _of(some: int, every: int) -> str:
    return f"{count(some)} of {count(every)}" if every else NOTHING


# What cannot be told, over all variants, and how many examples it would take.

MOST_UNSEEN = 6
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
        rows=tuple(_unseen_row(blinds, len(found)) for blinds in ordered[:MOST_UNSEEN]),
        left=max(0, len(ordered) - MOST_UNSEEN),
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


def _unseen_row(blinds: list[Blind], n_variants: int) -> UnseenRow:
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
