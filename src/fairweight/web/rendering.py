"""Pages and their JSON twins from the same data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from starlette.responses import Response

from fairweight.report.numbers import shown
from fairweight.web.assets import asset_path

if TYPE_CHECKING:
    from jinja2 import Environment

    from fairweight.web.cards import Card


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
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("fairweight.web", "templates"),
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


def identity(card: Card) -> str:
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
