"""The overview of an audit: what was found, who pays, what cannot be told, figures."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter

from fairweight.report.finding import Finding, find
from fairweight.report.members import members_of, worded
from fairweight.report.numbers import NOTHING, count, missing, percent, points_interval, shown
from fairweight.report.numbers import size_in_points as points_size
from fairweight.report.page_tables import finite
from fairweight.tables.leaks import leak_notes, leaks
from fairweight.web.addresses import of_variant
from fairweight.web.figure_list import Offered, offered
from fairweight.web.findings import Section, section
from fairweight.web.item import Item
from fairweight.web.page import OfItem, OfSite, add_page
from fairweight.web.site import Site
from fairweight.web.tables import Cell, Table

SECTIONS = 12  # variants in full; more than that are in the table only
ROWS = 8


@dataclass(frozen=True)
class OverviewPage:
    """What an audit found; empty lists where a table of predictions has no audit."""

    key: str
    title: str
    has_audit: bool
    baseline: str
    n_examples: int
    classes: list[str]
    tasks: list[str]
    groupings: list[str]
    leaks: list[str]
    variants: Table | None
    sections: list[Section]
    figures: list[Offered]
    notes: list[str]


def overview(site: OfSite, item: OfItem) -> OverviewPage:
    """The finding of every variant, who pays, and what cannot be told."""
    return site.kept(item, "overview", lambda: _made(site, item))


def _made(site: Site, item: Item) -> OverviewPage:
    if item.audit_json is None:
        return OverviewPage(item.key, item.title, False, "", 0, [], [], [], [], None, [], [], [])
    result = site.audit(item)
    found = [find(result, variant) for variant in result.variants]
    return OverviewPage(
        key=item.key,
        title=item.title,
        has_audit=True,
        baseline=result.baseline,
        n_examples=result.n_examples,
        classes=list(result.classes),
        tasks=list(result.tasks),
        groupings=list(result.groupings),
        leaks=leak_notes(leaks(result.variants_table, result.variants)),
        variants=_variants(item.key, found, members_of(result)),
        sections=[section(result, item.key, v, ROWS) for v in result.variants[:SECTIONS]],
        figures=[
            figure
            for name in (None, *result.variants[:1])
            for figure in offered(item.key, name, members_of(result))
            if not figure.more
        ],
        notes=list(result.notes),
    )


_HEADINGS = [
    "variant", "accuracy, dense → compressed", "shift [limits]", "retraining alone, up to",
    "pay more", "lose", "too few examples",
]  # fmt: skip


def _variants(key: str, found: list[Finding], members: str) -> Table:
    rows = [_row(key, finding) for finding in found]
    return Table("Variants", [worded(heading, members) for heading in _HEADINGS], rows, len(rows))


def _row(key: str, finding: Finding) -> list[Cell]:
    name = Cell(
        shown(finding.variant), shown(finding.variant), link=of_variant(key, finding.variant)
    )
    counts = [
        Cell(count(n), n)
        for n in (len(finding.model.pays_more), len(finding.model.loses), len(finding.blind))
    ]
    overall = finding.model.overall
    if overall is None:
        why = finding.model.reason or "the audit has no overall accuracy"
        return [name, *(Cell(NOTHING, None, why) for _ in range(3)), *counts]
    floor = overall.context.noise_floor
    return [
        name,
        Cell(
            f"{percent(overall.baseline)} → {percent(overall.compressed)}",
            finite(overall.compressed),
        ),
        Cell(points_interval(overall.shift, overall.low, overall.high), finite(overall.shift)),
        Cell(NOTHING, None, "needs several dense models")
        if missing(floor)
        else Cell(points_size(floor), finite(floor)),
        *counts,
    ]


router = APIRouter(tags=["audit"])
add_page(
    router, "/audit/{key}", overview, "overview.html.j2", summary="Overview of an audit", kept=True
)
