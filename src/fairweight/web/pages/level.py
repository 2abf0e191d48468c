"""One class or group through all variants; without a name, all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Query

from fairweight.errors import UnknownNameError
from fairweight.report.members import members_of, worded
from fairweight.report.rows import at_task
from fairweight.tables.names import known_group
from fairweight.web.addresses import group_filters, of_item, of_row
from fairweight.web.item import Item
from fairweight.web.page import OfItem, OfSite, add_page
from fairweight.web.site import Site
from fairweight.web.tables import Table, of_results

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

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
    return site.kept(item, ("level", by, name, task), lambda: _made(site, item, by, name, task))


def _made(site: Site, item: Item, by: By, name: str | None, task: str | None) -> LevelPage:
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


router = APIRouter(tags=["audit"])
add_page(
    router, "/audit/{key}/level", level, "level.html.j2", summary="Classes and groups", kept=True
)
