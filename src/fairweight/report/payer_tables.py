"""Tables of the finding: who loses, who loses more than the rest, who has too few examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fairweight.report.finding import Finding
from fairweight.report.members import worded
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
from fairweight.report.page_tables import LIMIT, Cell, PageTable, finite, name_cell
from fairweight.report.sentences import SIDES
from fairweight.report.unseen import Blind, Small
from fairweight.report.verdict import Payer, Verdict

RESULTS = "tables/results.csv"


def payer_table(finding: Finding, what: Literal["loses", "pays more"]) -> PageTable | None:
    """Who loses, or loses more than the rest, in every scope in which it can be told.

    By the limits of their family, not by those of the lead: more may stand here than the lead
    names. Whoever does so in one scope stands here with the numbers of both; those that say it
    are strong.
    """
    sides = [_Side(verdict, what, finding.members.kind) for verdict in finding.families]
    listed = {payer.key: payer for side in reversed(sides) for payer in side.told}
    order = dict.fromkeys(payer.key for side in sides for payer in side.told)
    payers = [listed[key] for key in order]
    if not payers:
        return None
    tasks = any(payer.task is not None for payer in payers)
    # The noise floor is one of shifts; beside an excess it would be read as one of excesses.
    floors = what == "loses" and any(not missing(p.context.noise_floor) for p in payers)
    rows = [
        (
            _who(payer),
            *([name_cell(payer.task)] if tasks else []),
            Cell(payer.metric, payer.metric),
            Cell(count(payer.n), payer.n),
            Cell(_before_after(payer), finite(payer.compressed)),
            Cell(NOTHING if missing(payer.churn) else percent(payer.churn), finite(payer.churn)),
            *(cell for side in sides for cell in side.cells(payer)),
            *([_floor(payer)] if floors else []),
        )
        for payer in payers[:LIMIT]
    ]
    limits = "simultaneous limits"
    quantity = "excess over the rest in points" if what == "pays more" else "shift in points"
    several = len(sides) > 1
    headings = (
        "who",
        *(["task"] if tasks else []),
        "metric",
        "n",
        "baseline → compressed",
        "churn",
        *(
            heading
            for side in sides
            for heading in (
                f"{quantity}{', ' + side.name if several else ''} [{limits}]",
                f"p{', ' + side.name if several else ''}",
            )
        ),
        *([worded("retraining alone, up to", finding.members.kind)] if floors else []),
    )
    return PageTable(
        "", what, headings, tuple(rows), len(payers), RESULTS, "with the largest shift"
    )


class _Side:
    """The rows of one scope, found by whom they speak of."""

    def __init__(self, verdict: Verdict, what: Literal["loses", "pays more"], members: str) -> None:
        self.name = worded(SIDES[verdict.scope], members).lower()
        self.told = verdict.loses if what == "loses" else verdict.pays_more
        every = verdict.shifts if what == "loses" else verdict.excesses
        self._rows = {payer.key: payer for payer in every}
        self._strong = {payer.key for payer in self.told}

    def cells(self, payer: Payer) -> tuple[Cell, Cell]:
        own = self._rows.get(payer.key)
        if own is None:
            why = "cannot be estimated in this scope"
            return Cell(NOTHING, None, why), Cell(NOTHING, None, why)
        strong = payer.key in self._strong
        said = points_interval(own.shift, own.low, own.high).replace(" points", "")
        p = Cell(p_value(own.p, bare=True), finite(own.p))
        return Cell(said, finite(own.shift), strong=strong), p


def _who(item: Payer | Blind | Small) -> Cell:
    return name_cell("class " + item.name if item.kind == "class" else item.name)


def _before_after(payer: Payer) -> str:
    return f"{percent(payer.baseline).removesuffix(' %')} → {percent(payer.compressed)}"


def _floor(payer: Payer) -> Cell:
    floor = payer.context.noise_floor
    return Cell(NOTHING if missing(floor) else size_in_points(floor), finite(floor))


def blind_table(blind: Sequence[Blind]) -> PageTable | None:
    """Who has too few examples to find a loss of the size that matters."""
    if not blind:
        return None
    tasks = any(b.task is not None for b in blind)
    rows = [
        (
            _who(b),
            *([name_cell(b.task)] if tasks else []),
            Cell(count(b.n), b.n),
            Cell(
                NOTHING if missing(b.detectable) else size_in_points(b.detectable),
                finite(b.detectable),
                "no loss would be found reliably at this n" if missing(b.detectable) else None,
            ),
            Cell(count(b.n_needed), finite(b.n_needed)),
        )
        for b in blind[:LIMIT]
    ]
    reference = f"n needed for {100 * blind[0].reference:g} points"
    headings = (
        "who",
        *(["task"] if tasks else []),
        "n",
        "least loss found with 80 % power",
        reference,
    )
    title, order = "too few examples", "with the smallest n"
    return PageTable("", title, headings, tuple(rows), len(blind), "tables/power.csv", order)


def small_table(small: Sequence[Small]) -> PageTable | None:
    """Classes and groups that were not tested."""
    if not small:
        return None
    rows = [
        (_who(s), Cell(count(s.n), s.n), Cell(shown(s.reason), shown(s.reason)))
        for s in small[:LIMIT]
    ]
    headings = ("who", "n", "why")
    title, order = "not tested", "that come first"
    return PageTable("", title, headings, tuple(rows), len(small), RESULTS, order)
