"""PA-F14: accuracies of classes as the model of them predicts them, against those measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import variant_of
from fairweight.report.figures.bins import shares_by_column
from fairweight.report.figures.explained import explained
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import GREY
from fairweight.report.numbers import count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairweight.auditing.result import AuditResult

BINS = 25
INK = ["rgba(0,114,178,0)", "rgba(0,114,178,1)"]


@figure(
    "PA-F14",
    title="Fit of the model of class accuracies",
    caption=(
        "Predicted against measured accuracy of classes, in percent of each column, so that rare "
        "accuracies are seen too. Cells near the dashed line: a good fit. A linear model may "
        "predict below 0 and above 100 %, where the fit must not be trusted."
    ),
    more=True,
    explains=True,
    once=True,
)
def predicted_against_target(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    import numpy as np

    variant_of(result, variant)
    found = fit_of(result)
    if isinstance(found, Absent):
        return found
    target, predicted, _ = found
    at_x = np.linspace(0, 100, BINS + 1)
    low, high = min(0.0, float(predicted.min())), max(100.0, float(predicted.max()))
    cells = shares_by_column(target, predicted, at_x, np.linspace(low, high, BINS + 1))
    x = {"field": "x", "type": "quantitative", "title": "measured accuracy of the class, %"}
    y = {"field": "y", "type": "quantitative", "title": "predicted, %"}
    return {
        "title": f"{count(len(target))} accuracies of classes",
        "description": (
            f"Heat map of {count(len(target))} accuracies of classes: predicted against measured, "
            "in percent of each column."
        ),
        "width": 360,
        "height": 320,
        "layer": [
            {"data": {"values": cells}, **heat(x, y)},
            {
                "data": {"values": [{"x": 0, "y": 0}, {"x": 100, "y": 100}]},
                "mark": {"type": "line", "strokeDash": [4, 4], "color": GREY},
                "encoding": {"x": x, "y": y},
            },
        ],
    }


def fit_of(
    result: AuditResult,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | Absent:
    """Measured and predicted accuracy and the residual of every row, in percent and points."""
    import numpy as np

    rows = explained(result, "class_rows")
    if isinstance(rows, Absent):
        return rows
    fits = explained(result, "class_residuals")
    if isinstance(fits, Absent):
        return fits
    place = fits["row"].to_numpy(dtype=int)
    target = 100 * rows["accuracy"].to_numpy(dtype=float)[place]
    predicted = 100 * fits["predicted"].to_numpy(dtype=float)
    residual = 100 * fits["residual"].to_numpy(dtype=float)
    known = np.isfinite(target) & np.isfinite(predicted) & np.isfinite(residual)
    if not known.any():
        return Absent("no accuracy of a class has a prediction")
    return target[known], predicted[known], residual[known]


def heat(x: Spec, y: Spec) -> Spec:
    """A layer of cells, darker where more of their column lies."""
    return {
        "mark": {"type": "rect"},
        "encoding": {
            "x": x,
            "x2": {"field": "x2"},
            "y": y,
            "y2": {"field": "y2"},
            "color": {
                "field": "share",
                "type": "quantitative",
                "title": "% of the column",
                "scale": {"range": INK, "domainMin": 0},
            },
            "tooltip": [
                {"field": "n", "type": "quantitative", "format": ",.0f"},
                {"field": "share", "type": "quantitative", "format": ".1f", "title": "%"},
            ],
        },
    }
