"""Pages and their JSON twins from the same data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.responses import Response

from fairweight.base.wording import shown, text
from fairweight.report import html
from fairweight.tables.names import MISSING, split_group

if TYPE_CHECKING:
    from fairweight.web.cards import ExampleCard


# Scripts and styles under names that carry their checksum, so that browsers keep them for good.

VEGA = "vega.js"
OF_REPORT = ("shared.css", "sort.js")
_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


@dataclass(frozen=True)
class Asset:
    """A file as it is sent."""

    content: bytes
    media_type: str


@cache
def asset(name: str) -> Asset:
    """A file of `static/`, one that the report has too, or the libraries that draw figures."""
    if name == VEGA:
        content = html.javascript().encode()
    elif name in OF_REPORT:
        content = (files("fairweight.report") / "templates" / name).read_bytes()
    else:
        content = (files("fairweight.web") / "static" / name).read_bytes()
    return Asset(content, _TYPES[name[name.rindex(".") :]])


@cache
def asset_path(name: str) -> str:
    """The address of a file."""
    stem, _, ending = name.rpartition(".")
    digest = hashlib.sha256(asset(name).content).hexdigest()[:16]
    return f"/static/{stem}.{digest}.{ending}"


@cache
def names() -> frozenset[str]:
    """Every file there is."""
    own = {entry.name for entry in (files("fairweight.web") / "static").iterdir()}
    return frozenset({name for name in own if name.endswith((".js", ".css"))} | {VEGA, *OF_REPORT})


def link(place: str, query: Mapping[str, Any] | None = None) -> str:
    """An address with its query; what is None is left out.

    >>> link("/audit/digits/variant", {"variant": "a&b", "task": None})
    '/audit/digits/variant?variant=a%26b'
    """
    kept = {name: value for name, value in (query or {}).items() if value is not None}
    # Half a character (a lone surrogate) has no bytes: it becomes a question mark, not an error.
    said = urlencode(kept, doseq=True, errors="replace")
    return quote(place, errors="replace") + (f"?{said}" if said else "")


@cache
def environment() -> Environment:
    """The templates; everything that they print is escaped."""
    made = Environment(
        # What is said of a variant is laid out as in the report.
        loader=ChoiceLoader([PackageLoader("fairweight.web"), PackageLoader("fairweight.report")]),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shown"] = shown
    made.filters["strictest"] = strictest
    made.filters["identity"] = identity
    made.globals["link"] = link
    made.globals["asset"] = asset_path
    return made


def identity(card: ExampleCard) -> str:
    """An example's names for scripts, in ASCII: a page cannot hold every character as it is."""
    return json.dumps({"id": card.id, "task": card.task or "", "label": card.label})


def strictest(kinds: list[str]) -> list[str]:
    """Of nested kinds of exemplars the strictest only: who is above 99 % is above 90 % too.

    >>> strictest(["modal", "taxicab-90", "taxicab-95"])
    ['modal', 'taxicab-95']
    """
    last = {kind.partition("-")[0]: kind for kind in kinds}
    return list(last.values())


def rendered(template: str, context: Mapping[str, Any], status: int = 200) -> Response:
    """A page."""
    return Response(page_bytes(template, context), status, media_type="text/html; charset=utf-8")


def page_bytes(template: str, context: Mapping[str, Any]) -> bytes:
    """The text of a page; names with half a character cannot break it."""
    return environment().get_template(template).render(context).encode("utf-8", "replace")


def as_json(data: Any, status: int = 200) -> Response:
    """The same data for programs."""
    return Response(json_bytes(data), status, media_type="application/json")


def json_bytes(data: Any) -> bytes:
    """JSON in ASCII, so that every name survives; NaN would be an error of ours."""
    return json.dumps(data, default=_as_dictionary, allow_nan=False).encode("ascii")


def _as_dictionary(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} has no JSON form")


# Where the pages of a study are.


def of_item(key: str, page: str = "", **query: Any) -> str:
    """A page of one study.

    >>> of_item("digits", "variant", variant="int8")
    '/audit/digits/variant?variant=int8'
    """
    return link(f"/audit/{key}/{page}".rstrip("/"), query)


def of_row(key: str, row: dict[str, Any], heading: str) -> str | None:
    """Where a name in a row of results leads."""
    name = text(row.get(heading))
    if name is None:
        return None
    if heading in ("variant", "task"):
        return of_item(key, heading, **{heading: name})
    if heading in ("class", "group") and row["by"] in ("class", "group"):
        return of_item(key, "level", by=heading, name=name, task=text(row["task"]))
    return None


def group_filters(name: str) -> dict[str, str] | None:
    """The filters of a group by its name; None where the name cannot be taken apart.

    >>> group_filters("sex=Female & age=old")
    {'group.sex': 'Female', 'group.age': 'old'}
    """
    levels = split_group(name)
    return {f"group.{c}": MISSING if v is None else v for c, v in levels} if levels else None
