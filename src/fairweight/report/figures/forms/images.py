"""Images in figures: PNG inside the specification, never an address to fetch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from fairweight.base.wording import real, shown
from fairweight.errors import InputError
from fairweight.report.figures.forms.encoding import DASHED, layer, nominal, quantitative
from fairweight.report.figures.theme import GREY, ORANGE, Spec

SIZE = 96
GAP = 14
LINE = 14  # of text
HEIGHT = 220  # of one large image
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
    at = {axis: quantitative(axis, scale=None, axis=None) for axis in ("x", "y")}  # pixels
    image = {**at, "url": nominal("image"), "tooltip": nominal("said", title="example")}
    corner = {"align": "left", "baseline": "top"}
    return {
        "width": max(360, step_x * (1 + max(tile.column for tile in placed))),
        "height": step_y * (1 + max(tile.row for tile in placed)),
        "layer": [
            layer("image", image, values=values, width=SIZE, height=SIZE, smooth=False, **corner),
            *(
                layer("text", {**at, "text": nominal("t")}, values=said, fontSize=size,
                      fontWeight=weight, limit=limit, **corner)
                for said, size, weight, limit in (
                    (words, 11, "normal", step_x - 6),
                    (heads, 12, "bold", 640),
                )
                if said
            ),
        ],
    }  # fmt: skip


def tilted_image(row: dict[str, Any], *, line: bool) -> Spec:
    """One large image; with the line through its foreground, and an upright one, if asked for."""
    width, height = real(row["width"]), real(row["height"])
    across = HEIGHT * width / height
    # Pixels have their numbers at their centres.
    at = {
        "x": quantitative(
            "column", scale={"domain": [-0.5, width - 0.5], "nice": False}, axis=None
        ),
        "y": quantitative(
            "row",
            scale={"domain": [-0.5, height - 0.5], "nice": False, "reverse": True},
            axis=None,
        ),
    }
    middle = {"column": (width - 1) / 2, "row": (height - 1) / 2, "image": picture(row["image"])}
    layers: list[Spec] = [
        layer("image", {**at, "url": nominal("image")}, values=[middle], width=across,
              height=HEIGHT, smooth=False, aspect=False)
    ]  # fmt: skip
    if line:
        slope, start = real(row["slope"]), real(row["intercept"])
        upright = start + slope * (height - 1) / 2
        rows = (-0.5, height - 0.5)
        lines: list[tuple[list[float], Spec]] = [
            ([start + slope * i for i in rows], {"color": ORANGE, "strokeWidth": 3}),
            ([upright, upright], {"color": GREY, "strokeWidth": 1.5, "strokeDash": DASHED}),
        ]
        for columns, mark in lines:
            ends = [{"row": i, "column": c} for i, c in zip(rows, columns, strict=True)]
            order = {**at, "order": {"field": "row"}}
            layers.append(layer("line", order, values=ends, clip=True, **mark))
    return {"width": across, "height": HEIGHT, "layer": layers}
