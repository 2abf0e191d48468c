"""Everything about an audit: overview, variants, classes and groups, tasks, figures, the report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

from fairweight.auditing.result import at_task, variant_of
from fairweight.errors import InputError, UnknownNameError
from fairweight.report import sections
from fairweight.report.brief import Brief
from fairweight.report.figures import draw, figures
from fairweight.report.finding import Finding, find
from fairweight.report.members import members_of, worded
from fairweight.report.numbers import written_in
from fairweight.report.view_model import view
from fairweight.report.view_tables import (
    LIMIT,
    ShownTable,
    finding_tables,
    number_tables,
    results_table,
)
from fairweight.tables.names import known_group
from fairweight.web.items import Item, require_own
from fairweight.web.page import PROBLEMS, OfItem, OfSite, add_page
from fairweight.web.rendering import group_filters, of_item, of_row
from fairweight.web.security import STORED_REPORT_POLICY
from fairweight.web.site import Site

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult


# What every page of an audit is made of: tables with links, figures, what is said of a variant.


def _table(
    title: str, rows: pd.DataFrame, item: Item, members: str, without: tuple[str, ...]
) -> list[ShownTable]:
    """Rows of the results, with names that lead further; none where there are none."""
    if rows.empty:
        return []
    return [
        results_table(title, rows, members, without, lambda row, key: of_row(item.key, row, key))
    ]


@dataclass(frozen=True)
class Offered:
    """A figure, drawn when it comes into view, and the address of its specification."""

    id: str
    title: str
    caption: str
    more: bool
    link: str
    source: str


def figure_links(key: str, variant: str | None, members: str) -> list[Offered]:
    """Figures of one variant; without one, those that show all variants together."""
    return [
        Offered(
            figure.id,
            worded(figure.title, members),
            worded(figure.caption, members),
            figure.more or figure.explains,
            of_item(key, "figure", id=figure.id, variant=variant),
            of_item(key, "figure.json", id=figure.id, variant=variant),
        )
        for figure in figures()
        if figure.once == (variant is None)
    ]


@dataclass(frozen=True)
class VariantSection(sections.Section):
    """The finding about one variant, with its tables and its page."""

    link: str
    tables: list[ShownTable]


def section(
    key: str, finding: Finding, said: sections.Section, most: int | None = None
) -> VariantSection:
    """What is said, who loses, who loses more, and what is too small (`most` rows of each)."""
    with written_in(finding.unit):
        tables = finding_tables(
            finding,
            lambda by, name, task: of_item(key, "level", by=by, name=name, task=task),
            LIMIT if most is None else most,
        )
    for name, table in tables.items():
        if most is not None and table.total > most:
            cut = f"The first {most} of {table.total:,} rows; the variant's own page has the "
            tables[name] = replace(table, rows=table.rows[:most], cut=f"{cut}others.")
    link = of_item(key, "variant", variant=finding.variant)
    return VariantSection(**vars(said), link=link, tables=list(tables.values()))


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
    section: VariantSection
    tables: list[ShownTable]
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
    """The page of a variant, made once per audit."""
    result = site.audit(item)
    finding, members = find(result, name), members_of(result)
    with written_in(finding.unit):
        said = sections.section(finding)
    tables = list(number_tables(result, finding).values())
    own = result.results[result.results["variant"] == name]
    for title, by, metric in _TABLES:
        rows = own[own["by"] == by]
        if metric == "accuracy" and result.primary != metric:
            title, metric = f"By group: {finding.unit.name}", result.primary
        if metric is None:
            tables += _table(title, rows, item, members, ("variant",))
        else:
            rows = rows[rows["metric"] == metric]
            tables += _table(title, rows, item, members, ("variant", "metric"))
    gallery = None if item.tables is None else of_item(item.key, "examples", variant=name)
    return VariantPage(
        item.key,
        name,
        list(result.variants),
        section(item.key, finding, said),
        tables,
        figure_links(item.key, name, members),
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
    "cannot be estimated; its reason is in the tooltip and the status."
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
    tables: list[ShownTable]
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
    frame, members, tables = result.results, members_of(result), []
    rows = frame[frame["by"] == by]
    main = result.primary if by == "group" else _METRIC[by]
    if name is None:  # a table per variant, the largest loss first
        rows = at_task(rows[rows["metric"] == main], result, task).assign(level=None)
        for variant in result.variants:
            own = rows[rows["variant"] == variant].sort_values("shift", kind="stable")
            tables += _table(variant, own, item, members, ("variant", "metric"))
    else:  # a table per metric: the confirmatory one first, all variants in each
        rows = at_task(rows[rows[by] == name], result, task)
        for metric in sorted(rows["metric"].unique(), key=lambda m: (m != main, m)):
            tables += _table(metric, rows[rows["metric"] == metric], item, members, (by, "metric"))
    leads: list[Lead] = []
    if name is not None and item.tables is not None:
        filters = {"label": name} if by == "class" else group_filters(name)
        wanted: tuple[tuple[str, dict[str, str]], ...] = (
            ("all examples", {}), ("lost", {"changed": "lost"}), ("exemplars", {"kind": "modal"}),
        )  # fmt: skip
        for variant in () if filters is None else result.variants[:12]:
            places = {"task": task, **(filters or {}), "variant": variant}
            leads += [
                Lead(f"{variant}: {title}", of_item(item.key, "examples", **places, **more))
                for title, more in wanted
            ]
    return LevelPage(
        item.key, by, name, task, list(result.tasks), main, tables, leads,
        worded(_READING, members),
    )  # fmt: skip


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
    tables: list[ShownTable]
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
    frame = result.results.sort_values("shift", kind="stable")
    tables: list[ShownTable] = []
    if name is None:
        frame = frame[(frame["by"] == "overall") & (frame["metric"] == result.primary)]
        parts = [
            (v, frame[(frame["variant"] == v) & frame["task"].notna()]) for v in result.variants
        ]
    else:
        own = frame[frame["task"] == name]
        parts = [
            (t, own[(own["by"] == by) & own["metric"].isin([m, result.primary])])
            for t, by, m in _PARTS
        ]
    for title, rows in parts:
        tables += _table(title, rows, item, members_of(result), ("metric",))
    gallery = None if item.tables is None else of_item(item.key, "examples", task=name)
    return TaskPage(item.key, name, list(result.tasks), tables, gallery)


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


# The overview of an audit: what was found, who pays, what these data cannot show, figures.

SECTIONS = 12  # variants in full; more than that are in the table only
ROWS = 8


@dataclass(frozen=True)
class OverviewPage:
    """What an audit found; empty lists where a table of predictions has no audit."""

    key: str
    title: str
    has_audit: bool
    brief: Brief | None
    baseline: str
    n_examples: int
    classes: list[str]
    tasks: list[str]
    groupings: list[str]
    leaks: list[str]
    variants: ShownTable | None
    sections: list[VariantSection]
    figures: list[Offered]
    notes: list[str]


def overview(site: OfSite, item: OfItem) -> OverviewPage:
    """The finding of every variant, who pays, and what these data cannot show."""
    return site.kept(item, "overview", lambda: _overview_page(site, item))


def _overview_page(site: Site, item: Item) -> OverviewPage:
    if item.audit_json is None:
        return OverviewPage(
            item.key, item.title, False, None, "", 0, [], [], [], [], None, [], [], []
        )
    result = site.audit(item)
    made = view(result)
    return OverviewPage(
        key=item.key,
        title=item.title,
        has_audit=True,
        brief=made.brief,
        baseline=result.baseline,
        n_examples=result.n_examples,
        classes=list(result.classes),
        tasks=list(result.tasks),
        groupings=list(result.groupings),
        leaks=list(made.leaks),
        variants=made.summary_table(lambda name: of_item(item.key, "variant", variant=name)),
        sections=[
            section(item.key, finding, said, ROWS)
            for finding, said in zip(made.findings[:SECTIONS], made.sections, strict=False)
        ],
        figures=[
            figure
            for name in (None, *result.variants[:1])
            for figure in figure_links(item.key, name, made.members)
            if not figure.more
        ],
        notes=list(made.notes),
    )


add_page(
    router, "/audit/{key}", overview, "overview.html.j2", summary="Overview of an audit", kept=True
)
