"""Images in figures: PNG inside the specification, never an address to fetch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from fairweight.base.wording import shown
from fairweight.errors import InputError
from fairweight.report.figures.registry import Spec

SIZE = 96
GAP = 14
LINE = 14  # of text
_PNG = re.compile(r"data:image/png;base64,[A-Za-z0-9+/]+={0,2}")


def picture(address: Any) -> str:
    """A PNG data URI as it was given.

    Raises
    ------
    InputError
        It is anything else: a figure that fetched an image would tell others who reads it.
    """
    if isinstance(address, str) and _PNG.fullmatch(address):
        return address
    raise InputError(
        "An image of a figure must be a data URI (data:image/png;base64,…), because reports load "
        f"nothing; given was '{shown(address, 60)}'; encode the image."
    )


@dataclass(frozen=True)
class Tile:
    """An image with its place in the grid and the lines below it."""

    image: str
    column: int
    row: int
    lines: tuple[str, ...]


def tiles(placed: list[Tile], headings: dict[int, str] | None = None) -> Spec:
    """The body of a specification: images in a grid, with text below each and before rows."""
    step_y = SIZE + GAP + LINE * max(len(tile.lines) for tile in placed)
    if headings:
        step_y += LINE + 6
    above = LINE + 6 if headings else 0
    step_x = SIZE + 4 * GAP
    values = [
        {
            "x": tile.column * step_x,
            "y": tile.row * step_y + above,
            "image": picture(tile.image),
            "said": "; ".join(tile.lines),
        }
        for tile in placed
    ]
    words = [
        {"x": tile.column * step_x, "y": tile.row * step_y + above + SIZE + 4 + i * LINE, "t": line}
        for tile in placed
        for i, line in enumerate(tile.lines)
    ]
    heads = [{"x": 0, "y": row * step_y, "t": t} for row, t in (headings or {}).items()]
    layers: list[Spec] = [
        {
            "data": {"values": values},
            "mark": {"type": "image", "width": SIZE, "height": SIZE, "align": "left",
                     "baseline": "top", "smooth": False},
            "encoding": {
                **_raw(),
                "url": {"field": "image", "type": "nominal"},
                "tooltip": {"field": "said", "type": "nominal", "title": "example"},
            },
        },
        *(
            {
                "data": {"values": said},
                "mark": {"type": "text", "align": "left", "baseline": "top", "fontSize": size,
                         "fontWeight": weight, "limit": limit},
                "encoding": {**_raw(), "text": {"field": "t", "type": "nominal"}},
            }
            for said, size, weight, limit in (
                (words, 11, "normal", step_x - 6),
                (heads, 12, "bold", 640),
            )
            if said
        ),
    ]  # fmt: skip
    return {
        "width": max(360, step_x * (1 + max(tile.column for tile in placed))),
        "height": step_y * (1 + max(tile.row for tile in placed)),
        "layer": layers,
    }


def _raw() -> Spec:
    """Pixels, without axes."""
    return {
        axis: {"field": axis, "type": "quantitative", "scale": None, "axis": None}
        for axis in ("x", "y")
    }
