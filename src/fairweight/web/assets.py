"""Scripts and styles under names that carry their checksum, so that browsers keep them for good."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

VEGA = "vega.js"
OF_REPORT = ("shared.css", "sort.js")
_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


@dataclass(frozen=True)
class Asset:
    """A file as it is sent."""

    content: bytes
    media_type: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()[:16]


@cache
def asset(name: str) -> Asset:
    """A file of `static/`, one that the report has too, or the libraries that draw figures."""
    return Asset(_content(name), _TYPES[name[name.rindex(".") :]])


@cache
def asset_path(name: str) -> str:
    """The address of a file."""
    stem, _, ending = name.rpartition(".")
    return f"/static/{stem}.{asset(name).digest}.{ending}"


@cache
def names() -> frozenset[str]:
    """Every file there is."""
    own = {entry.name for entry in (files("fairweight.web") / "static").iterdir()}
    return frozenset({name for name in own if name.endswith((".js", ".css"))} | {VEGA, *OF_REPORT})


def _content(name: str) -> bytes:
    if name == VEGA:
        from fairweight.report.bundle import javascript

        return javascript().encode()
    if name in OF_REPORT:
        return (files("fairweight.report") / "templates" / name).read_bytes()
    return (files("fairweight.web") / "static" / name).read_bytes()
