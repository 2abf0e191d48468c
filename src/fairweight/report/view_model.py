"""An audit as every output shows it: page, terminal, notebook, Markdown, card and viewer.

Built once by `view`; outputs only lay it out. Every number is one of the audit's tables, every
sentence one of `report.sentences` and its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairweight.base.wording import NOTHING, missing, shown
from fairweight.report.brief import EXPLAINED, Brief, brief
from fairweight.report.finding import (
    Blind,
    Change,
    Finding,
    Kind,
    Standing,
    find,
    margin_of,
    ranked,
    unit_of_audit,
)
from fairweight.report.members import members_of, worded
from fairweight.report.numbers import (
    Unit,
    count,
    level,
    loss_that_matters,
    p_value,
    signed,
    size_in_points,
    unit,
    written_in,
)
from fairweight.report.sections import Section, section
from fairweight.report.sentences import (
    MANY,
    NAME,
    by_how_much,
    cannot_tell,
    headline,
    name_of,
    of_variant,
    reading,
)
from fairweight.report.view_tables import Cell, ShownTable, finite, interval

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult


# A value and its limits as a small drawing: a dot on a line, beside 0 and the noise floor.
#
# Drawn as SVG in the page itself, so that it is there without scripts, on paper and in notebooks.
# A filled dot has limits that exclude 0, a hollow one has not: colour says nothing that shape does
# not.

WIDTH, HEIGHT, EDGE = 200, 18, 6
_STEPS = (0.5, 1, 2, 5, 10, 20, 50, 100)  # points
TICKS = 5


@dataclass(frozen=True)
class Scale:
    """From shares to places on the drawing; the same for all rows of one table."""

    low: float
    high: float
    factor: float = 100  # from numbers to the unit of the ticks: points of shares

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
        span = self.factor * (self.high - self.low)
        steps: tuple[float, ...] = _STEPS
        if self.factor == 1:  # of numbers any power of ten
            size = 10.0 ** math.floor(math.log10(span))
            steps = tuple(size * s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10))
        step = next((s for s in steps if span / s <= TICKS), steps[-1])
        first = math.ceil(self.factor * self.low / step - 1e-9)
        last = math.floor(self.factor * self.high / step + 1e-9)
        places = [step * i for i in range(first, last + 1)]
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        return [(self.at(p / self.factor), signed(p, decimals) if p else "0") for p in places]


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
    Scale(low=-0.0845, high=0.0145, factor=100)
    >>> scale_of([1e-17])  # an error of rounding, not a change
    Scale(low=-0.01, high=0.01, factor=100)
    """
    known = [0.0, *(v for v in values if not missing(v) and math.isfinite(v))]
    low, high = min(known), max(known)
    share = unit().share
    room = 0.01 if share and high - low < 1e-9 else 0.05 * (high - low) or 0.01
    below, above = (float(f"{end:.10g}") for end in (low - room, high + room))
    return Scale(below, above, 100 if share else 1)


def mark(scale: Scale, change: Change, beside: float = math.nan) -> Mark | None:
    """Where the parts of one row are drawn; None where there is no value."""
    if missing(change.shift):
        return None
    floor = None
    if not missing(change.noise_floor):
        left, right = scale.at(-abs(change.noise_floor)), scale.at(abs(change.noise_floor))
        floor = left, round(right - left, 1)
    low, high, there = (
        None if missing(value) else scale.at(value) for value in (change.low, change.high, beside)
    )
    return Mark(
        dot=scale.at(change.shift),
        low=low,
        high=high,
        zero=scale.at(0.0),
        floor=floor,
        excludes_zero=change.high < 0 or change.low > 0,
        beside=there,
    )


# Who pays over all variants: a few groups and classes, with limits and noise floors.

MOST_PAYERS = 4  # classes, and groups, that are named
WIDE = 3  # limits of the method so many times as wide as those of these models show nothing
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


def payers_table(
    rows: Iterable[PayerRow], members: str, *, variants: bool, floors: bool
) -> ShownTable:
    """Who pays, as plain rows."""
    shown = {
        "who": "who",
        **({"variant": "variant"} if variants else {}),
        "n": "n",
        "before_after": "before → after",
        "said": f"shift{unit().of_shift} [limits]",
        **({"floor": worded("retraining alone, up to", members)} if floors else {}),
        "excess": "more than the rest?",
    }
    cells = tuple(tuple(Cell(str(getattr(row, key))) for key in shown) for row in rows)
    return ShownTable("Who pays", tuple(shown.values()), cells, len(cells))


def payer_row(
    standing: Standing, change: Change, scale: Scale, method: Standing | None = None
) -> PayerRow:
    """A class or group of one variant as it is shown."""
    beyond = NOTHING
    own = None
    if method is not None:
        own = next((c for c in method.verdict.shifts if c.key == change.key), None)
    if own is not None:
        ends = interval(own).partition(" ")[2]  # the shift itself is the same in both scopes
        beyond = f"yes: {ends}" if own.is_loss else f"not shown: {ends}".removesuffix(": ")
        if not own.is_loss and own.high - own.low > WIDE * (change.high - change.low):
            beyond = "cannot tell: members differ too much"
    verdict = standing.verdict
    extra = next((c for c in verdict.excesses if c.key == change.key), None)
    if extra is None or missing(extra.shift):
        excess = NOTHING
    elif missing(extra.p) or extra.p > verdict.alpha:
        excess = f"not shown ({p_value(extra.p)})"
    elif extra.gain < 0:
        excess = f"yes, by {by_how_much(extra).replace(' points', '')}"
    else:
        excess = f"no, less by {interval(extra).replace('+', '')}"
    return PayerRow(
        who=name_of(change, NAME),
        variant=shown(standing.finding.variant, NAME),
        n=count(change.n),
        before_after=_before_after(change),
        said=interval(change),
        mark=mark(scale, change, standing.overall),
        excess=excess,
        method=beyond,
        floor=_floor_in_points(change),
    )


def _floor_in_points(change: Change) -> str:
    """What retraining alone moves, where the heading names the unit."""
    floor = change.noise_floor
    return NOTHING if missing(floor) else size_in_points(floor).removesuffix(" points")


def _before_after(change: Change | None) -> str:
    if change is None or missing(change.compressed):
        return NOTHING
    digits = 2 if abs(change.compressed - change.baseline) < 0.001 else 1
    before = level(change.baseline, digits).removesuffix(" %")
    return f"{before} → {level(change.compressed, digits)}"


def _chosen_payers(standings: Sequence[Standing], kind: Kind) -> list[tuple[Standing, Change]]:
    """Who of this kind loses more than the rest, over all variants, the largest loss first.

    Where nobody does, who loses; where nobody is shown to, the largest fall alone.
    """
    more = {(s.place, c.key) for s in standings for c in s.verdict.pays_more}
    falls = [(s, c) for s in standings for c in s.verdict.shifts if c.kind == kind and c.gain < 0]
    falls.sort(key=lambda pair: pair[1].gain)
    paying = [(s, c) for s, c in falls if (s.place, c.key) in more]
    losing = [(s, c) for s, c in falls if c.is_loss]
    return (paying or losing)[:MOST_PAYERS] or falls[:1]


# One line per variant.


@dataclass(frozen=True)
class SummaryRow:
    """One variant in the ranking."""

    place: int  # among the variants as they were given, from 1
    variant: Cell
    accuracy: Cell
    shift: Cell
    floor: Cell
    most: Cell  # who loses most, which takes an excess; or that nobody is shown to
    size: str
    mark: Mark | None  # of whoever loses most, else of all examples together
    of: Cell  # classes and groups that have limits: what the numbers after it count
    loses: Cell
    method_loses: Cell
    pays_more: Cell
    ruled_out: Cell
    unseen: Cell


def _number_cell(some: int | None, every: int) -> Cell:
    """So many of all; a dash where that is not known."""
    return Cell(NOTHING) if some is None or not every else Cell(count(some), some)


# What these data cannot show, over all variants, and how many examples it would take.

MOST_UNSEEN = 6
BAR = 120  # width of a bar that stands for enough examples


@dataclass(frozen=True)
class UnseenRow:
    """A class or group with too few examples to show a loss."""

    who: str
    n: str
    detectable: str
    needed: str
    bar: float  # of BAR: the part of the examples needed that are there
    variants: str


@dataclass(frozen=True)
class Unseen:
    """What is not known, over all variants."""

    lines: tuple[str, ...]  # about methods and those without a verdict
    reference: str
    rows: tuple[UnseenRow, ...]
    left: int  # rows that are not shown here
    others: str  # whether these have more or fewer of the examples needed
    bar: int = BAR


def _unseen(found: Sequence[Finding]) -> Unseen | None:
    """What is not known over all variants; None where nothing is left open."""
    merged: dict[tuple[str, str, str | None], list[Blind]] = {}
    said: dict[str, list[str]] = {}
    for finding in found:
        for blind in finding.blind:
            merged.setdefault((blind.kind, blind.name, blind.task), []).append(blind)
        for line in cannot_tell(finding):
            if not line.startswith("Too few examples"):  # the rows say it
                said.setdefault(line, []).append(shown(finding.variant, 40))
    if not merged and not said:
        return None
    # Whoever is furthest from enough examples in some variant first: there a loss hides best. Of
    # many classes those would be the smallest, so whoever is nearest leads.
    there = {
        key: min(
            (b.n / b.n_needed for b in blinds if b.n is not None and 0 < b.n_needed < math.inf),
            default=0.0,
        )
        for key, blinds in merged.items()
    }
    many = len(merged) > MANY
    ordered = sorted(merged, key=lambda key: -there[key] if many else there[key])
    rows = []
    for key in ordered[:MOST_UNSEEN]:
        blinds = merged[key]
        worst = max(blinds, key=lambda b: b.n_needed if math.isfinite(b.n_needed) else -1.0)
        never = any(missing(b.detectable) for b in blinds)
        known = math.isfinite(worst.n_needed)
        rows.append(
            UnseenRow(
                who=name_of(worst, NAME),
                n=count(worst.n),
                detectable=NOTHING if never else size_in_points(max(b.detectable for b in blinds)),
                needed=f"about {count(round(worst.n_needed))}" if known else NOTHING,
                bar=round(BAR * min(1.0, there[key]), 1),
                variants=f"{count(len(blinds))} of {count(len(found))}",
            )
        )
    return Unseen(
        lines=tuple(
            line if len(names) == len(found) else f"{', '.join(names)}: {line}"
            for line, names in said.items()
        ),
        reference=loss_that_matters(merged[ordered[0]][0].reference) if ordered else "",
        rows=tuple(rows),
        left=max(0, len(ordered) - MOST_UNSEEN),
        others="fewer" if many else "more",
    )


# Everything together.

EXAMPLES = 3  # variants whose exemplars are counted in the lead


@dataclass(frozen=True)
class View:
    """An audit as it is shown."""

    findings: tuple[Finding, ...]
    brief: Brief  # what is read first
    sections: tuple[Section, ...]  # in the order in which variants were given
    headline: str
    reading: str
    leaks: tuple[str, ...]
    notes: tuple[str, ...]
    summary: tuple[SummaryRow, ...]  # the clearest loss first
    payers: tuple[PayerGroup, ...]
    scale: Scale  # of all marks
    unseen: Unseen | None
    explained: dict[str | None, list[str]]  # sentences of explanations by variant; None: of all
    mitigated: tuple[str, ...]  # what a mitigation changed, in sentences
    examples: tuple[str, ...]  # how many examples changed, where they were counted
    method: bool  # whether any variant has a verdict beyond retraining
    floors: bool  # whether what retraining alone moves is known of anybody who pays
    limits: str
    reference: str  # the loss that matters
    one_rate: bool  # whether limits hold for all variants at once
    members: str  # what they are: retrained or repeated
    unit: Unit  # of the main number

    @property
    def several(self) -> bool:
        """Whether there are several variants."""
        return len(self.findings) > 1

    @property
    def ranking(self) -> list[Section]:
        """The sections, the clearest loss first."""
        return [self.sections[row.place - 1] for row in self.summary]

    @property
    def scope(self) -> list[str]:
        """What the numbers do not show, each line once; caveats are explained instead."""
        caveats = {caveat.text for caveat in self.brief.caveats}
        lines = dict.fromkeys(line for section in self.ranking for line in section.scope)
        return [line for line in lines if line not in caveats]

    @property
    def explanations(self) -> dict[str, str]:
        """What stands behind the caveats, by their anchors."""
        anchors = [caveat.anchor for caveat in self.brief.caveats if caveat.anchor in EXPLAINED]
        return {anchor: worded(EXPLAINED[anchor], self.members) for anchor in anchors}

    def summary_table(self, link: Callable[[str], str] | None = None) -> ShownTable:
        """One row per variant, the clearest loss first; `link` leads from a variant."""
        floors = any(row.floor.value is not None for row in self.summary)
        headings = (
            "variant",
            self.unit.name,
            f"change{self.unit.of_shift}",
            *([worded("retraining alone, up to", self.members)] if floors else []),
            "loses most",
            "classes and groups",
            "lose",
            *([worded("… beyond retraining", self.members)] if self.method else []),
            "lose more than the rest",
            f"{self.reference} ruled out",
            "too few examples",
        )
        rows = tuple(
            (
                replace(row.variant, link=link(section.variant)) if link else row.variant,
                row.accuracy,
                row.shift,
                *([row.floor] if floors else []),
                replace(row.most, shown=f"{row.most.shown} {row.size}".rstrip()),
                row.of,
                row.loses,
                *([row.method_loses] if self.method else []),
                row.pays_more,
                row.ruled_out,
                row.unseen,
            )
            for row, section in zip(self.summary, self.ranking, strict=True)
        )
        return ShownTable("Variants", headings, rows, len(rows))


def judged(lead: View, result: AuditResult, verdict: Verdict | None) -> View:
    """The same with a gate's verdict in the lines of the variants."""
    if verdict is None:
        return lead
    return replace(lead, brief=brief(result, lead.findings, verdict))


def view(result: AuditResult, variants: Sequence[str] | None = None) -> View:
    """Everything that is shown of an audit; of these variants only, by default of all."""
    with written_in(unit_of_audit(result)):
        return _view(result, variants)


def _view(result: AuditResult, variants: Sequence[str] | None) -> View:
    from fairweight.tables.companions import leak_notes, leaks  # with pyarrow

    found = tuple(find(result, name) for name in variants or result.variants)
    standings = ranked(found)
    methods = {s.place: s for s in ranked(found, "method")}
    chosen = {kind: _chosen_payers(standings, kind) for kind in KINDS}
    paying = [change for own in chosen.values() for _, change in own]
    leading = [c for s in standings if (c := s.verdict.most or s.verdict.overall) is not None]
    scale = scale_of(
        [
            *(v for c in (*leading, *paying) for v in (c.shift, c.low, c.high)),
            *(v for c in (*leading, *paying) for v in (c.noise_floor, -c.noise_floor)),
            *(s.overall for s in standings),
        ]
    )
    explained: dict[str | None, list[str]] = {}
    mitigated: list[str] = []
    if result.explanations:
        # Every figure is loaded with them, which whoever starts a command need not wait for.
        from fairweight.report.explanation_sentences import (
            mitigation_sentences,
            sentences_by_variant,
        )

        explained = sentences_by_variant(result)
        table = result.explanations.get("mitigation")
        if table is not None:
            # Which mitigation it was: each leaves a table of its own, thresholds none.
            kinds = {"override_curves": "overrides", "cascade_curve": "cascade"}
            own = (kind for name, kind in kinds.items() if name in result.explanations)
            mitigated = mitigation_sentences(table, next(own, "thresholds"))

    summary = []
    for standing in standings:
        scope, finding = standing.verdict, standing.finding
        most, change, certain = scope.most, scope.overall, finding.ruled_out
        drawn, method = most or change, methods.get(standing.place)
        name = shown(finding.variant, NAME)
        accuracy = shift = floor = Cell(
            NOTHING, None, scope.reason or "the audit has no overall accuracy"
        )
        if change is not None:
            accuracy = Cell(_before_after(change), finite(change.compressed))
            shift = Cell(interval(change), finite(change.shift))
            floor = Cell(_floor_in_points(change), finite(change.noise_floor))
        every = len(scope.shifts)
        beyond = None if method is None else len(method.verdict.loses)
        summary.append(
            SummaryRow(
                place=standing.place,
                variant=Cell(name, name),
                accuracy=accuracy,
                shift=shift,
                floor=floor,
                most=Cell("none shown") if most is None else Cell(name_of(most, NAME), most.shift),
                size="" if most is None else interval(most),
                mark=None if drawn is None else mark(scale, drawn, standing.overall),
                of=_number_cell(every, every),
                loses=_number_cell(len(scope.loses), every),
                method_loses=_number_cell(beyond, every),
                pays_more=_number_cell(len(scope.pays_more), every),
                ruled_out=_number_cell(None if certain is None else certain.number, every),
                unseen=_number_cell(len(finding.blind), every),
            )
        )

    payers = []
    for kind, pairs in chosen.items():
        if not pairs:
            continue
        standing, first = pairs[0]
        note: str | None = f"No {kind} is shown to lose. The largest fall:"
        if first.key in {other.key for other in standing.verdict.pays_more}:
            note = None
        elif first.is_loss:
            note = f"No {kind} is shown to lose more than the rest. Shown to lose:"
        rows = tuple(payer_row(s, c, scale, methods.get(s.place)) for s, c in pairs)
        payers.append(PayerGroup("Groups" if kind == "group" else "Classes", rows, note))
    return View(
        findings=found,
        brief=brief(result, found),
        sections=tuple(section(finding) for finding in found),
        headline=headline(found),
        reading=reading(found[0]),
        leaks=tuple(leak_notes(leaks(result.variants_table, [f.variant for f in found]))),
        notes=result.notes,
        summary=tuple(summary),
        payers=tuple(payers),
        scale=scale,
        unseen=_unseen(found),
        explained=explained,
        mitigated=tuple(mitigated),
        examples=tuple(
            of_variant(name, explained[name][0], len(found))
            for name in (s.finding.variant for s in standings[:EXAMPLES])
            if "exemplar_counts" in result.explanations and explained.get(name)
        ),
        method=bool(methods),
        floors=any(not missing(change.noise_floor) for change in paying),
        limits=f"{100 * (1 - found[0].alpha):g} %",
        reference=loss_that_matters(margin_of(result)),
        unit=unit(),
        one_rate=found[0].one_rate,
        members=members_of(result),
    )
