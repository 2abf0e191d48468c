"""What readers see: the numbers on pages and in texts, and the specifications of figures.

Wording may change; numbers, marks and encodings may not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd

import fairweight as fw

from .inside import figure_specs

# Paths of files and the version are no results.
PLACES = re.compile(r"\S*/\S*|\b\d+\.\d+\.\d+\S*")
NUMBER = re.compile(r"[−-]?\d[\d,]*(?:\.\d+)?(?:\s?%)?")
KEPT_TEXTS = ("mark", "type", "field", "aggregate", "shape", "scheme")
UNSEEN = {"script", "style", "head"}


class Text(HTMLParser):
    """The text of a page, without what a browser does not show, up to where it came from."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._unseen: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in UNSEEN:
            self._unseen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._unseen and self._unseen[-1] == tag:
            self._unseen.pop()

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(data)


def numbers(text: str) -> pd.DataFrame:
    """How often each number stands in a text, paths and versions left out."""
    found = Counter(NUMBER.findall(PLACES.sub(" ", text)))
    return pd.DataFrame(sorted(found.items()), columns=["part", "value"])


def seen(html: str) -> str:
    """What a browser shows of a page or of a part of one."""
    reader = Text()
    reader.feed(html)
    return " ".join(reader.parts)


def of_page(path: Path) -> pd.DataFrame:
    """The numbers on a report; versions, times and paths are not counted."""
    return numbers(seen(path.read_text(encoding="utf-8")).rpartition("Provenance")[0])


def page(audit: fw.Audit, folder: Path) -> pd.DataFrame:
    """The numbers on an audit's report."""
    return of_page(audit.save_html(folder / "page.html"))


def drawn(
    audit: fw.Audit, only: Collection[str] = (), **tables: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """The figures that this audit can fill, of every variant.

    Parameters
    ----------
    only
        The ids of figures that must be among them, and no others are drawn; by default all.
    tables
        Explanations in the place of the audit's own.
    """
    made = {
        f"{id} {variant}": pd.DataFrame(_leaves(spec, ""), columns=["part", "value"], dtype=object)
        for id, variant, spec in figure_specs(audit, **tables)
        if not only or id in only
    }
    if missing := set(only) - {name.partition(" ")[0] for name in made}:
        raise RuntimeError(f"The audit cannot fill {', '.join(sorted(missing))}")
    return made


def texts(audit: fw.Audit) -> dict[str, pd.DataFrame]:
    """The numbers in what an audit is for a pull request, a notebook and a model's card."""
    cards = {
        f"card {name}": audit.card(name) for name in audit.results["variant"].dropna().unique()
    }
    told = {"markdown": audit.to_markdown(), "notebook": seen(audit._repr_html_()), **cards}
    return {name: numbers(text) for name, text in told.items()}


def pictures(folder: Path) -> dict[str, pd.DataFrame]:
    """Of every SVG file below a folder the numbers that a screen reader says of its marks."""
    made: dict[str, pd.DataFrame] = {}
    for path in sorted(folder.rglob("*.svg")):
        marks = ElementTree.parse(path).iter()
        told = " ".join(label for mark in marks if (label := mark.get("aria-label")))
        made[path.relative_to(folder).as_posix()] = numbers(told)
    return made


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Numbers, and texts that say how they are drawn."""
    if isinstance(node, dict | list):
        pairs = node.items() if isinstance(node, dict) else enumerate(node)
        for name, inner in pairs:
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif not isinstance(node, str) or path.rpartition(".")[2] in KEPT_TEXTS:
        yield path, node
