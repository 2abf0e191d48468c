"""Where the pages of a study are."""

from __future__ import annotations

from typing import Any

from fairweight.report.numbers import text
from fairweight.tables.names import MISSING, split_group
from fairweight.web.rendering import link


def of_item(key: str, page: str = "", **query: Any) -> str:
    """A page of one study.

    >>> of_item("digits", "variant", variant="int8")
    '/audit/digits/variant?variant=int8'
    """
    return link(f"/audit/{key}/{page}".rstrip("/"), query)


def of_level(key: str, by: str, name: str, task: str | None = None) -> str:
    """The page of one class or group."""
    return of_item(key, "level", by=by, name=name, task=task)


def of_variant(key: str, variant: str) -> str:
    """The page of one variant."""
    return of_item(key, "variant", variant=variant)


def of_row(key: str, row: dict[str, Any], heading: str) -> str | None:
    """Where a name in a row of results leads."""
    name = text(row.get(heading))
    if name is None:
        return None
    if heading == "variant":
        return of_variant(key, name)
    if heading == "task":
        return of_item(key, "task", task=name)
    if heading in ("class", "group") and row["by"] in ("class", "group"):
        return of_level(key, heading, name, text(row["task"]))
    return None


def group_filters(name: str) -> dict[str, str] | None:
    """The filters of a group by its name; None where the name cannot be taken apart.

    >>> group_filters("sex=Female & age=old")
    {'group.sex': 'Female', 'group.age': 'old'}
    """
    levels = split_group(name)
    return {f"group.{c}": MISSING if v is None else v for c, v in levels} if levels else None
