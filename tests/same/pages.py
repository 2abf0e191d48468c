"""What readers see of an audit: the numbers on its page and the specifications of its figures.

Wording may change; numbers, marks and encodings may not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd

import fairweight as fw
from fairweight.report.figures.registry import draw, figures

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


def page(audit: fw.Audit, folder: Path) -> pd.DataFrame:
    """How often each number stands on the page; versions, times and paths are not counted."""
    reader = Text()
    reader.feed(audit.save_html(folder / "page.html").read_text(encoding="utf-8"))
    text = " ".join(reader.parts).rpartition("Provenance")[0]
    found = Counter(NUMBER.findall(text))
    return pd.DataFrame(sorted(found.items()), columns=["part", "value"])


def drawn(audit: fw.Audit) -> dict[str, pd.DataFrame]:
    """Every figure that this audit can fill, of every variant."""
    variants = [name for name in audit.results["variant"].unique() if isinstance(name, str)]
    made: dict[str, pd.DataFrame] = {}
    for figure in figures():
        for variant in variants[:1] if figure.once else variants:
            spec = draw(figure.id, audit.result, variant).spec
            if spec is not None:
                leaves = list(_leaves(spec, ""))
                frame = pd.DataFrame(leaves, columns=["part", "value"], dtype=object)
                made[f"{figure.id} {variant}"] = frame
    return made


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Numbers, and texts that say how they are drawn."""
    if isinstance(node, dict | list):
        pairs = node.items() if isinstance(node, dict) else enumerate(node)
        for name, inner in pairs:
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif not isinstance(node, str) or path.rpartition(".")[2] in KEPT_TEXTS:
        yield path, node
