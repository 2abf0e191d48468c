"""Who pays over all variants: a few groups and classes, with limits and noise floors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairweight.report.interval_mark import Mark, Scale, mark
from fairweight.report.numbers import (
    NOTHING,
    count,
    missing,
    p_value,
    percent,
    points_interval,
    shown,
    size_in_points,
)
from fairweight.report.ranking import Standing
from fairweight.report.sentences import by_how_much, named
from fairweight.report.verdict import Change, Kind, Payer

MOST = 4  # classes, and groups, that are named
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
    return (paying or losing)[:MOST] or falls[:1]


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
        rows=tuple(_row(s, payer, scale, methods.get(s.place)) for s, payer in chosen),
        note=note,
    )


def _row(standing: Standing, payer: Payer, scale: Scale, method: Standing | None) -> PayerRow:
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
