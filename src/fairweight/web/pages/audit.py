"""Tables of a page as both readers get them: a text to read, and the value behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

from fairweight.auditing.result import at_task, records, variant_of
from fairweight.base.wording import NOTHING, missing, shown
from fairweight.errors import InputError, UnknownNameError
from fairweight.report import view_tables
from fairweight.report.figures import Figure, draw, figures
from fairweight.report.finding import Finding, Payer, find
from fairweight.report.members import members_of, worded
from fairweight.report.numbers import count, percent, points_interval
from fairweight.report.numbers import size_in_points as points_size
from fairweight.report.sentences import HEADINGS, QUESTIONS, SIDES, Sentence, reading, sentences
from fairweight.report.view_tables import (
    before_after,
    blind_table,
    finite,
    payer_table,
    small_table,
)
from fairweight.tables.companions import leak_notes, leaks
from fairweight.tables.names import known_group
from fairweight.web.items import Item, require_own
from fairweight.web.page import PROBLEMS, OfItem, OfSite, add_page
from fairweight.web.rendering import group_filters, of_item, of_level, of_row, of_variant
from fairweight.web.security import STORED_REPORT_POLICY
from fairweight.web.site import Site

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult


@dataclass(frozen=True)
class Cell:
    """What is read, the value behind it (null: there is none, and `why`), and where it leads."""

    shown: str
    value: float | str | None = None
    why: str | None = None
    strong: bool = False
    link: str | None = None


@dataclass(frozen=True)
class Table:
    """Rows under headings; `cut` says so where not every row is here."""

    title: str
    headings: list[str]
    rows: list[list[Cell]]
    total: int
    cut: str | None = None
    note: str | None = None


# A noise floor is read beside the shift: what may stand behind it.
_BEHIND = (
    "simultaneous limits", "p", "p, corrected", "loss that matters ruled out",
    "excess over the others", "simultaneous limits of the excess", "p of the excess",
    "p of the excess, corrected", "churn", "corrected for noise", "p against retraining", "status",
)  # fmt: skip
LinkOf = Callable[[dict[str, Any], str], str | None]  # (row, heading) → address


def converted(
    table: view_tables.PageTable, title: str, *, most: int | None = None, note: str | None = None
) -> Table:
    """A table of the report."""
    rows = [
        [Cell(cell.shown, cell.sort, cell.why, cell.strong) for cell in row]
        for row in table.rows[:most]
    ]
    cut = table.cut if most is None or len(table.rows) <= most else _first(len(rows), table.total)
    return Table(title, list(table.headings), rows, table.total, cut, note)


def _first(n: int, total: int) -> str:
    return f"The first {n} of {total:,} rows; the variant's own page has the others."


def of_results(
    title: str,
    frame: pd.DataFrame,
    link_of: LinkOf,
    without: Sequence[str] = (),
    *,
    members: str,
) -> Table | None:
    """Rows of the results, with names that lead further; None where there are none.

    Columns `without` need not be there, because the title or the page says the same of every row.
    """
    if frame.empty:
        return None
    kept = view_tables.largest(frame)
    made = converted(view_tables.results_table("", title, kept, members), title)
    behind = {worded(heading, members) for heading in _BEHIND}
    order = sorted(made.headings, key=lambda heading: heading in behind)
    places = [made.headings.index(heading) for heading in order if heading not in without]
    made = replace(made, headings=[made.headings[i] for i in places])
    rows = [
        [
            replace(cells[i], link=link_of(row, heading))
            for i, heading in zip(places, made.headings, strict=True)
        ]
        for cells, row in zip(made.rows, records(kept), strict=True)
    ]
    cut = None
    if len(kept) < len(frame):
        shown = f"The {len(kept):,} of {len(frame):,} rows with the largest n"
        cut = f"{shown}; all are in tables/results.parquet."
    return replace(made, rows=rows, total=len(frame), cut=cut)


def first_cells_linked(table: Table, links: Sequence[str]) -> Table:
    """The same table with the name in each row leading to its own page."""
    rows = [
        [replace(row[0], link=address), *row[1:]]
        for row, address in zip(table.rows, links, strict=False)
    ]
    return replace(table, rows=rows)


# Which figures a page offers; each is drawn when it comes into view.


@dataclass(frozen=True)
class Offered:
    """A figure and the address of its specification."""

    id: str
    title: str
    caption: str
    more: bool
    link: str
    source: str


def offered(key: str, variant: str | None, members: str) -> list[Offered]:
    """Figures of one variant; without one, those that show all variants together."""
    return [
        _offered(figure, key, variant, members)
        for figure in figures()
        if figure.once == (variant is None)
    ]


def _offered(figure: Figure, key: str, variant: str | None, members: str) -> Offered:
    query = {"id": figure.id, "variant": variant}
    return Offered(
        figure.id,
        worded(figure.title, members),
        worded(figure.caption, members),
        figure.more or figure.explains,
        of_item(key, "figure", **query),
        of_item(key, "figure.json", **query),
    )


# What an audit found about one variant, in the words and tables of the report.


@dataclass(frozen=True)
class Said:
    """Sentences under one heading."""

    heading: str
    lines: list[str]


@dataclass(frozen=True)
class Side:
    """One of two questions: about these models, or about the method beyond retraining."""

    title: str
    question: str
    said: list[Said]


@dataclass(frozen=True)
class Section:
    """The finding about one variant."""

    variant: str
    baseline: str
    link: str
    pair: str
    said: list[Said]
    sides: list[Side]
    scope: list[str]
    reading: str
    tables: list[Table]


def section(result: AuditResult, key: str, variant: str, most: int | None = None) -> Section:
    """The finding with who loses, who loses more, and what is too small (`most` rows of each)."""
    finding = find(result, variant)
    told = sentences(finding)
    scopes = [verdict.scope for verdict in finding.verdicts]
    several = len(scopes) > 1
    members = finding.members.kind
    return Section(
        variant=variant,
        baseline=finding.baseline,
        link=of_variant(key, variant),
        pair=" ".join(s.text for s in told if s.topic == "pair"),
        said=_by_heading((s for s in told if s.scope is None or not several), members),
        sides=[
            Side(
                worded(SIDES[scope], members),
                worded(QUESTIONS[scope], members),
                _by_heading((s for s in told if s.scope == scope), members),
            )
            for scope in scopes
            if several
        ],
        scope=[s.text for s in told if s.topic == "scope"],
        reading=reading(finding),
        tables=list(_tables(finding, key, most)),
    )


def _by_heading(told: Iterable[Sentence], members: str) -> list[Said]:
    lines: dict[str, list[str]] = {}
    for sentence in told:
        if sentence.topic in HEADINGS:
            lines.setdefault(sentence.topic, []).append(sentence.text)
    return [
        Said(worded(heading, members), lines[topic])
        for topic, heading in HEADINGS.items()
        if topic in lines
    ]


def _tables(finding: Finding, key: str, most: int | None) -> Iterator[Table]:
    titles: tuple[tuple[Literal["pays more", "loses"], str], ...] = (
        ("pays more", "Who loses more than the rest"),
        ("loses", "Who loses"),
    )
    for what, title in titles:
        table = payer_table(finding, what)
        if table is not None:
            yield first_cells_linked(
                converted(table, title, most=most), [_of(p, key) for p in _told(finding, what)]
            )
    blind = blind_table(finding.blind)
    if blind is not None:
        links = [of_level(key, b.kind, b.name, b.task) for b in finding.blind]
        yield first_cells_linked(converted(blind, "Too few examples", most=most), links)
    small = small_table(finding.small)
    if small is not None:
        yield converted(small, "Not tested", most=most)


def _told(finding: Finding, what: Literal["pays more", "loses"]) -> list[Payer]:
    """Who stands in the report's table, in its order."""
    found: dict[object, Payer] = {}
    for verdict in finding.families:
        for payer in verdict.loses if what == "loses" else verdict.pays_more:
            found.setdefault(payer.key, payer)
    return list(found.values())


def _of(payer: Payer, key: str) -> str:
    return of_level(key, payer.kind, payer.name, payer.task)


# Everything about one variant.

# What was decided before the data were seen; every other metric is on the pages of the levels.
_TABLES = (
    ("By group: accuracy", "group", "accuracy"),
    ("By class: recall", "class", "recall"),
    ("Group columns as a whole", "grouping", None),
    ("Comparisons and overall numbers", "overall", None),
)


@dataclass(frozen=True)
class VariantPage:
    """One variant against the baseline."""

    key: str
    variant: str
    variants: list[str]
    section: Section
    tables: list[Table]
    figures: list[Offered]
    gallery: str | None


def variant(
    site: OfSite,
    item: OfItem,
    variant: Annotated[
        str | None, Query(description="A compressed variant; the first by default.")
    ] = None,
) -> VariantPage:
    """The finding about one variant, and its rows with intervals and noise floors."""
    name = variant_of(site.audit(item), variant)
    return site.kept(item, ("variant", name), lambda: _variant_page(site, item, name))


def _variant_page(site: Site, item: Item, name: str) -> VariantPage:
    result = site.audit(item)
    numbers = before_after(result, find(result, name))
    tables = [] if numbers is None else [converted(numbers, "Baseline and compressed numbers")]
    own = result.results[result.results["variant"] == name]
    for title, by, metric in _TABLES:
        keep = own["by"] == by
        rows = own[keep if metric is None else keep & (own["metric"] == metric)]
        said = ("variant",) if metric is None else ("variant", "metric")
        made = of_results(
            title,
            rows,
            lambda row, name: of_row(item.key, row, name),
            said,
            members=members_of(result),
        )
        tables += [] if made is None else [made]
    gallery = None if item.predictions is None else of_item(item.key, "examples", variant=name)
    return VariantPage(
        item.key,
        name,
        list(result.variants),
        section(result, item.key, name),
        tables,
        offered(item.key, name, members_of(result)),
        gallery,
    )


router = APIRouter(tags=["audit"])
add_page(
    router, "/audit/{key}/variant", variant, "variant.html.j2", summary="One variant", kept=True
)


# One class or group through all variants; without a name, all of them.

By = Literal["class", "group"]
_METRIC: dict[By, str] = {"class": "recall", "group": "accuracy"}
_READING = (
    "A shift is compressed minus baseline, with its interval. “Retraining alone, up to” is the "
    "noise floor: 95 % of pairs of retrained dense models move less. A dash is a number that "
    "cannot be had; its reason is in the tooltip and the status."
)


@dataclass(frozen=True)
class Lead:
    """A way into the examples."""

    title: str
    link: str


@dataclass(frozen=True)
class LevelPage:
    """Rows of one class or group (or of all, by their shift), with intervals and noise floors."""

    key: str
    by: str
    name: str | None
    task: str | None
    tasks: list[str]
    metric: str
    tables: list[Table]
    gallery: list[Lead]
    reading: str


def level(
    site: OfSite,
    item: OfItem,
    by: Annotated[By, Query(description="Classes or groups.")] = "group",
    name: Annotated[
        str | None, Query(description="A class, or a group such as sex=Female; all by default.")
    ] = None,
    task: Annotated[
        str | None, Query(description="One task; by default the only one, or the mean.")
    ] = None,
) -> LevelPage:
    """Every number about one class or group; without a name, who lost most first."""
    name, task = name or None, task or None
    result = site.audit(item)
    frame = result.results[result.results["by"] == by]
    if name is not None:
        known = frame[by].dropna().unique().tolist()
        found = known_group(name, known) if by == "group" else name if name in known else None
        if found is None:
            raise UnknownNameError(by.capitalize(), name, known)
        name = found
    at_task(frame, result, task)  # says which tasks there are
    return site.kept(
        item, ("level", by, name, task), lambda: _level_page(site, item, by, name, task)
    )


def _level_page(site: Site, item: Item, by: By, name: str | None, task: str | None) -> LevelPage:
    result = site.audit(item)
    tables = _all(result, item, by, task) if name is None else _one(result, item, by, name, task)
    return LevelPage(
        item.key, by, name, task, list(result.tasks), _METRIC[by],
        [table for table in tables if table is not None],
        [] if name is None or item.predictions is None else _leads(result, item, by, name, task),
        worded(_READING, members_of(result)),
    )  # fmt: skip


def _all(result: AuditResult, item: Item, by: By, task: str | None) -> list[Table | None]:
    """A table per variant, the largest loss first."""
    frame = result.results
    rows = at_task(frame[(frame["by"] == by) & (frame["metric"] == _METRIC[by])], result, task)
    rows = rows.drop(columns=["level"]).assign(level=None)
    return [
        of_results(
            variant,
            rows[rows["variant"] == variant].sort_values("shift", kind="stable"),
            lambda row, heading: of_row(item.key, row, heading),
            without=("variant", "metric"),
            members=members_of(result),
        )
        for variant in result.variants
    ]


def _one(
    result: AuditResult, item: Item, by: By, name: str, task: str | None
) -> list[Table | None]:
    """A table per metric: the confirmatory one first, all variants in each."""
    frame = result.results
    rows = at_task(frame[(frame["by"] == by) & (frame[by] == name)], result, task)
    metrics = sorted(rows["metric"].unique().tolist(), key=lambda m: (m != _METRIC[by], m))
    return [
        of_results(
            metric,
            rows[rows["metric"] == metric],
            lambda row, heading: of_row(item.key, row, heading),
            without=(by, "metric"),
            members=members_of(result),
        )
        for metric in metrics
    ]


def _leads(result: AuditResult, item: Item, by: By, name: str, task: str | None) -> list[Lead]:
    filters = {"label": name} if by == "class" else group_filters(name)
    if filters is None:
        return []
    places = {"task": task, **filters}
    return [
        Lead(title, of_item(item.key, "examples", **places, variant=variant, **more))
        for variant in result.variants[:12]
        for title, more in (
            (f"{variant}: all examples", {}),
            (f"{variant}: lost", {"changed": "lost"}),
            (f"{variant}: exemplars", {"kind": "modal"}),
        )
    ]


add_page(
    router, "/audit/{key}/level", level, "level.html.j2", summary="Classes and groups", kept=True
)


# One task of several; without a name, all of them.

_PARTS = (("Overall", "overall", "accuracy"), ("By group", "group", "accuracy"),
          ("By class", "class", "recall"))  # fmt: skip


@dataclass(frozen=True)
class TaskPage:
    """Rows of one task, or the overall row of every task."""

    key: str
    task: str | None
    tasks: list[str]
    tables: list[Table]
    gallery: str | None


def task(
    site: OfSite,
    item: OfItem,
    task: Annotated[str | None, Query(description="A task; all by default.")] = None,
) -> TaskPage:
    """The rows of one task with intervals and noise floors."""
    name = task or None
    result = site.audit(item)
    if not result.tasks:
        raise InputError(f"'{item.title}' has one task only; look at its overview.")
    at_task(result.results, result, name)  # says which tasks there are
    return site.kept(item, ("task", name), lambda: _task_page(result, item, name))


def _task_page(result: AuditResult, item: Item, name: str | None) -> TaskPage:
    frame, members = result.results, members_of(result)
    if name is None:
        rows = frame[(frame["by"] == "overall") & (frame["metric"] == "accuracy")]
        tables = [
            _table(
                variant, rows[(rows["variant"] == variant) & rows["task"].notna()], item, members
            )
            for variant in result.variants
        ]
    else:
        own = frame[frame["task"] == name]
        tables = [
            _table(title, own[(own["by"] == by) & (own["metric"] == metric)], item, members)
            for title, by, metric in _PARTS
        ]
    gallery = None if item.predictions is None else of_item(item.key, "examples", task=name)
    held = [table for table in tables if table is not None]
    return TaskPage(item.key, name, list(result.tasks), held, gallery)


def _table(title: str, rows: pd.DataFrame, item: Item, members: str) -> Table | None:
    ranked = rows.sort_values("shift", kind="stable")
    return of_results(
        title,
        ranked,
        lambda row, name: of_row(item.key, row, name),
        ("metric",),
        members=members,
    )


add_page(router, "/audit/{key}/task", task, "task.html.j2", summary="Tasks", kept=True)


# One figure: its specification for scripts, and a page of its own to share.


@dataclass(frozen=True)
class FigurePage:
    """A Vega-Lite specification, or the reason why there is none."""

    key: str
    id: str
    title: str
    caption: str
    variant: str | None
    task: str | None
    alt: str
    reason: str | None
    spec: dict[str, Any] | None
    source: str


def figure(
    site: OfSite,
    item: OfItem,
    id: Annotated[str, Query(description="The id of a figure, such as FW-1.")],
    variant: Annotated[str | None, Query(description="A variant; the first by default.")] = None,
    task: Annotated[str | None, Query(description="A task; by default the mean.")] = None,
) -> FigurePage:
    """A figure of the registry, drawn from this audit."""
    asked = (id, variant or None, task or None)
    return site.kept(item, ("figure", *asked), lambda: _figure_page(site, item, *asked))


def _figure_page(
    site: Site, item: Item, id: str, variant: str | None, task: str | None
) -> FigurePage:
    result = site.audit(item)
    drawing, members = draw(id, result, variant, task), members_of(result)
    entry = drawing.figure
    title, caption = worded(entry.title, members), worded(entry.caption, members)
    alt = title if drawing.spec is None else str(drawing.spec["description"])
    source = of_item(item.key, "figure.json", id=id, variant=variant, task=task)
    return FigurePage(
        item.key, entry.id, title, caption, variant, task, alt, drawing.reason,
        drawing.spec, source,
    )  # fmt: skip


add_page(router, "/audit/{key}/figure", figure, "figure.html.j2", summary="One figure", kept=True)


# The stored report, shut off from everything else here; its twin is the audit itself.


@router.get(
    "/audit/{key}/report",
    summary="The stored report",
    response_class=HTMLResponse,
    responses=PROBLEMS,
)
def report(item: OfItem) -> Response:
    """`report.html` as it was written."""
    if item.report is None or not item.report.is_file():
        raise HTTPException(404, "There is no stored report; make one with fairweight audit")
    require_own(item.report)  # it may have become a link since
    return FileResponse(
        item.report,
        media_type="text/html; charset=utf-8",
        headers={"Content-Security-Policy": STORED_REPORT_POLICY},
    )


@router.get("/audit/{key}/report.json", summary="The audit (JSON)", responses=PROBLEMS)
def report_json(item: OfItem) -> Response:
    """`audit.json` as it was written."""
    if item.audit_json is None or not item.audit_json.is_file():
        raise HTTPException(404, "There is no audit; make one with fairweight audit")
    require_own(item.audit_json)
    return FileResponse(item.audit_json, media_type="application/json")


# The overview of an audit: what was found, who pays, what cannot be told, figures.

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
    return site.kept(item, "overview", lambda: _overview_page(site, item))


def _overview_page(site: Site, item: Item) -> OverviewPage:
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


add_page(
    router, "/audit/{key}", overview, "overview.html.j2", summary="Overview of an audit", kept=True
)
