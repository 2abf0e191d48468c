"""One task of several; without a name, all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query

from fairweight.errors import InputError
from fairweight.report.members import members_of
from fairweight.report.rows import at_task
from fairweight.web.addresses import of_item, of_row
from fairweight.web.item import Item
from fairweight.web.page import OfItem, OfSite, add_page
from fairweight.web.tables import Table, of_results

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

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
    return site.kept(item, ("task", name), lambda: _made(result, item, name))


def _made(result: AuditResult, item: Item, name: str | None) -> TaskPage:
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


router = APIRouter(tags=["audit"])
add_page(router, "/audit/{key}/task", task, "task.html.j2", summary="Tasks", kept=True)
