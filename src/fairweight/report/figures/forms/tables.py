"""Tables: text in cells, some of them coloured or bold; heat maps, whose cells are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.report.figures.forms.encoding import (
    Values,
    colors,
    layer,
    names,
    nominal,
    numbers,
    quantitative,
)
from fairweight.report.figures.theme import DIVERGING, Spec

WORSE, BETTER = "rgba(213,94,0,0.3)", "rgba(0,114,178,0.25)"
NONE = "rgba(0,0,0,0)"
# By whose limits a change is told, in a table that tells both apart.
WORSE_FOR = {"the method": "rgba(213,94,0,0.6)", "these models": "rgba(213,94,0,0.25)"}
BETTER_FOR = {"these models": "rgba(0,114,178,0.22)", "the method": "rgba(0,114,178,0.5)"}
_LEGEND = {f"worse, {whose}": ink for whose, ink in WORSE_FOR.items()} | {
    f"better, {whose}": ink for whose, ink in BETTER_FOR.items()
}


@dataclass(frozen=True)
class TextCell:
    """What stands in one cell; `why` says what is missing."""

    row: str
    column: str
    text: str
    ink: str = NONE
    strong: bool = False
    why: str | None = None


def columns_above(columns: Sequence[str], **axis: object) -> Spec:
    """The axis of a table: the names of its columns, above it."""
    shown = {"orient": "top", "labelAngle": 0, "domain": False, "ticks": False, **axis}
    order = list(columns)
    return nominal("column", title=None, sort=order, scale={"domain": order}, axis=shown)


def text_table(cells: list[TextCell], columns: list[str], *, step: int = 124) -> Spec:
    """The body of a specification; rows stand in the order of the cells."""
    rows = list(dict.fromkeys(cell.row for cell in cells))
    at: Spec = {
        "y": nominal("row", title=None, sort=rows, axis={"domain": False, "ticks": False}),
        "x": columns_above(columns, labelLimit=step - 4),
    }
    tooltip = names(row="row", column="column", text="value", why="why")
    written = {**at, "text": nominal("text"), "tooltip": tooltip}
    return {
        "width": {"step": step},
        "height": {"step": 20},
        "data": {"values": [asdict(cell) for cell in cells]},
        "layer": [
            layer("rect", {**at, "color": nominal("ink", scale=None, legend=None)}),
            *(
                layer("text", written, where=which, fontSize=11, fontWeight=weight, limit=step - 2)
                for which, weight in (("!datum.strong", "normal"), ("datum.strong", "bold"))
            ),
        ],
    }


def change_table(cells: Values, rows: list[str], columns: list[str]) -> Spec:
    """A table with a legend: `ink` of a cell says worse or better, and by whose limits.

    Cells whose `this` is true are bold.
    """
    inks = {cell.get("ink") for cell in cells}
    used = {ink: color for ink, color in _LEGEND.items() if ink in inks}
    at = {
        "y": nominal("row", title=None, sort=rows),
        "x": columns_above(columns, labelLimit=126),
    }
    tooltip = names(row="what", column="model", text="value", why="missing")
    written = {**at, "text": nominal("text"), "tooltip": tooltip}
    return {
        "width": {"step": 132},
        "height": {"step": 20},
        "data": {"values": cells},
        "layer": [
            layer("rect", {**at, "color": colors("ink", used)}, where="isValid(datum.ink)"),
            *(
                layer("text", written, where=which, fontSize=11, fontWeight=weight)
                for which, weight in (("!datum.this", "normal"), ("datum.this === true", "bold"))
            ),
        ],
    }


# --- heat maps ------------------------------------------------------------------------------------

READABLE = 12  # columns up to which numbers are written into the cells
_INK = ["rgba(0,114,178,0)", "rgba(0,114,178,1)"]


def change_map(values: Values, rows: list[str], columns: list[str]) -> Spec:
    """Changes in points: blue where they rise, orange where they fall."""
    reach = max(abs(v["change"]) for v in values)
    cell = max(14, min(44, 480 // max(1, len(columns))))
    slanted = {"labelAngle": -45, "labelLimit": 90}
    at = {
        "x": nominal("answer", title="answer", scale={"domain": columns}, axis=slanted),
        "y": nominal("label", title="label", scale={"domain": rows}),
    }
    color = quantitative(
        "change",
        title="points",
        scale={"domain": [-reach, 0, reach], "range": DIVERGING},
        legend={"orient": "right", "gradientLength": 120},
    )
    tooltip = [*names("label", "answer"), *numbers("+.2f", change="points")]
    layers = [layer("rect", {**at, "color": color, "tooltip": tooltip})]
    if len(columns) <= READABLE:
        text = quantitative("change", format="+.1f")
        written = {**at, "text": text}
        layers.append(layer("text", written, where="abs(datum.change) >= 0.05", fontSize=10))
    return {
        "width": {"step": cell},
        "height": {"step": cell},
        "data": {"values": values},
        "layer": layers,
    }


def unit_map(values: Values, rows: list[str], columns: list[str]) -> Spec:
    """What comes back by unit and group, in points; a dot where a unit stands out."""
    reach = max((abs(v["recovered"]) for v in values if v["recovered"] is not None), default=1.0)
    cell = max(22, min(44, 640 // max(1, len(columns))))
    slanted = {"labelAngle": -45, "labelLimit": 160, "orient": "top"}
    at = {
        "x": nominal("group", title=None, scale={"domain": columns}, axis=slanted),
        "y": nominal("unit", title=None, scale={"domain": rows}, axis={"labelLimit": 220}),
    }
    color = quantitative(
        "recovered",
        title="points that come back",
        scale={"domain": [-(reach or 1.0), 0, reach or 1.0], "range": DIVERGING},
        legend={"orient": "right", "gradientLength": 120},
    )
    tooltip = [
        *names("unit", "group"),
        *numbers("+.2f", recovered="comes back", low="from", high="to", loss="full compression"),
    ]
    layers = [
        layer("rect", {**at, "color": color, "tooltip": tooltip}),
        layer("point", at, where="datum.out", filled=True, size=30, color="black", yOffset=-6),
    ]
    if len(columns) <= READABLE:
        written = {**at, "text": quantitative("recovered", format="+.1f")}
        layers.append(layer("text", written, fontSize=9, dy=4))
    return {
        "width": {"step": cell},
        "height": {"step": 24},
        "data": {"values": values},
        "layer": layers,
    }


def rate_map(absolute: Values, change: Values, rows: list[str], columns: list[str]) -> Spec:
    """Rates as text beside their changes, which are coloured: orange where errors rise."""
    found = (abs(c["change"]) for c in change if c["change"] is not None)
    reach = max(found, default=1.0) or 1.0
    at = {"x": columns_above(columns), "y": nominal("who", title=None, sort=rows)}
    scale = {"domain": [-reach, 0, reach], "range": DIVERGING[::-1]}
    color = quantitative("change", legend=None, scale=scale)
    written = {**at, "text": {"field": "text"}}
    return {
        "width": {"step": 112},
        "height": {"step": 24},
        "layer": [
            layer("rect", {**at, "color": color}, values=change),
            layer("text", written, values=change),
            layer("text", written, values=absolute),
        ],
    }


def share_map(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    at: tuple[NDArray[np.float64], NDArray[np.float64]],
    axes: tuple[Spec, Spec],
) -> Spec:
    """A layer of cells, darker where more of their column lies; `at` are the edges of the bins."""
    scale = {"range": _INK, "domainMin": 0}
    encoding: Spec = {
        "x": axes[0],
        "x2": {"field": "x2"},
        "y": axes[1],
        "y2": {"field": "y2"},
        "color": quantitative("share", title="% of the column", scale=scale),
        "tooltip": [*numbers(",.0f", "n"), *numbers(".1f", share="%")],
    }
    return layer("rect", encoding, values=shares_by_column(x, y, *at))


def shares_by_column(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    at_x: NDArray[np.float64],
    at_y: NDArray[np.float64],
) -> list[dict[str, Any]]:
    """Cells of a two-way histogram as percent of their column; cells without values are left out.

    >>> import numpy as np
    >>> two = np.array([0.0, 1.0, 2.0])
    >>> cells = shares_by_column(np.array([.5, .5, 1.5]), np.array([.5, 1.5, 1.5]), two, two)
    >>> [(c["x"], c["y"], c["share"], c["n"]) for c in cells]
    [(0.0, 0.0, 50.0, 1), (0.0, 1.0, 50.0, 1), (1.0, 1.0, 100.0, 1)]
    """
    counts, _, _ = np.histogram2d(x, y, bins=(at_x, at_y))
    totals = counts.sum(axis=1)
    return [
        {
            "x": float(at_x[i]), "x2": float(at_x[i + 1]),
            "y": float(at_y[j]), "y2": float(at_y[j + 1]),
            "share": float(100 * counts[i, j] / totals[i]),
            "n": int(counts[i, j]),
        }
        for i, j in zip(*np.nonzero(counts), strict=True)
    ]  # fmt: skip
