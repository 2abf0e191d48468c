"""Which figures a page offers; each is drawn when it comes into view."""

from __future__ import annotations

from dataclasses import dataclass

from fairweight.report.figures import Figure, figures
from fairweight.report.members import worded
from fairweight.web.addresses import of_item


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
