"""PA-F15: what the model of class accuracies leaves unexplained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import variant_of
from fairweight.report.figures.bins import edges, histogram, shares_by_column
from fairweight.report.figures.pa_f14 import BINS, fit_of, heat
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import BLUE, GREY, ORANGE
from fairweight.report.numbers import count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairweight.auditing.result import AuditResult


@figure(
    "PA-F15",
    title="Residuals of the model of class accuracies",
    caption=(
        "Left: how residuals (measured minus predicted) are distributed. Right: residuals against "
        "the measured accuracy, in percent of each column, with their median (orange). A median "
        "that leaves 0 says where the linear model fails."
    ),
    more=True,
    explains=True,
    once=True,
)
def residuals(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    import numpy as np

    variant_of(result, variant)
    found = fit_of(result)
    if isinstance(found, Absent):
        return found
    target, _, left = found
    at_y = edges(left.tolist(), 40)
    at_x = np.linspace(0, 100, BINS + 1)
    spread = float(np.std(left))
    return {
        "title": f"{count(len(left))} residuals, standard deviation {spread:.1f} points",
        "description": (
            f"Histogram of {count(len(left))} residuals with a standard deviation of "
            f"{spread:.1f} points, and residuals against measured accuracy."
        ),
        "hconcat": [_bars(left, at_y), _against(target, left, at_x, at_y)],
    }


def _bars(left: NDArray[np.float64], at: NDArray[np.float64]) -> Spec:
    return {
        "width": 280,
        "height": 260,
        "data": {"values": histogram(left.tolist(), at)},
        "mark": {"type": "bar", "color": BLUE, "opacity": 0.8},
        "encoding": {
            "x": {"field": "low", "type": "quantitative", "title": "residual, points",
                  "bin": {"binned": True}, "axis": {"tickCount": 6}},
            "x2": {"field": "high"},
            "y": {"field": "n", "type": "quantitative", "title": "accuracies of classes"},
        },
    }  # fmt: skip


def _against(
    target: NDArray[np.float64],
    left: NDArray[np.float64],
    at_x: NDArray[np.float64],
    at_y: NDArray[np.float64],
) -> Spec:
    import numpy as np

    column = np.clip(np.searchsorted(at_x, target, side="right") - 1, 0, BINS - 1)
    medians: list[dict[str, Any]] = [
        {"x": float((at_x[i] + at_x[i + 1]) / 2), "y": float(np.median(left[column == i]))}
        for i in np.unique(column)
    ]
    x = {"field": "x", "type": "quantitative", "title": "measured accuracy of the class, %"}
    y = {"field": "y", "type": "quantitative", "title": "residual, points"}
    return {
        "width": 280,
        "height": 260,
        "layer": [
            {"data": {"values": shares_by_column(target, left, at_x, at_y)}, **heat(x, y)},
            {
                "data": {"values": [{"y": 0}]},
                "mark": {"type": "rule", "color": GREY, "strokeDash": [4, 4]},
                "encoding": {"y": y},
            },
            {
                "data": {"values": medians},
                "mark": {"type": "line", "color": ORANGE, "strokeWidth": 2},
                "encoding": {"x": x, "y": y},
            },
        ],
    }
