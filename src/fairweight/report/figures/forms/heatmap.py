"""Heat maps: cells coloured by a number, named rows and columns or counted bins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.report.figures.forms.encoding import (
    Values,
    layer,
    names,
    nominal,
    numbers,
    quantitative,
)
from fairweight.report.figures.forms.text_table import columns_above
from fairweight.report.figures.theme import DIVERGING, Spec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    import numpy as np

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
