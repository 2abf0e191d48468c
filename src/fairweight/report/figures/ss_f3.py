"""SS-F3: change of the false positive rate against change of the false negative rate, per class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fairweight.auditing.result import at_task, records, select, variant_of
from fairweight.base.wording import missing
from fairweight.report.figures.parts import label, pair_title, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import BLUE, GREY, ORANGE

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

SIGMAS = 2.448  # 95 % of a two-dimensional normal distribution: sqrt(chi2(2, .95))


@figure(
    "SS-F3",
    title="Which classes trade which errors",
    caption=(
        "Change of the false positive rate against change of the false negative rate, in percent "
        "of the baseline's rate; a point is a class. The ellipse is the spread of classes, not "
        "uncertainty. Right and up: more errors."
    ),
)
def class_error_changes(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    changes: dict[str, dict[str, float]] = {}
    zero: set[str] = set()
    for metric in ("fpr", "fnr"):
        rows = at_task(select(result, name, metric, "class"), result, task)
        for row in records(rows, ("class", "baseline", "compressed")):
            base, compressed = row["baseline"], row["compressed"]
            if missing(base) or missing(compressed):
                continue
            if base == 0:
                zero.add(str(row["class"]))
                continue
            change = 100 * (compressed - base) / base
            changes.setdefault(str(row["class"]), {})[metric] = change
    found = {c: rates for c, rates in changes.items() if len(rates) == 2}
    if not found:
        return Absent("there is no class with both a false positive and a false negative rate")
    if len(result.classes) < 3:
        return Absent("with two classes the rates of one are those of the other")
    x = [rates["fpr"] for rates in found.values()]
    y = [rates["fnr"] for rates in found.values()]
    points = [
        {"class": label(c), "fpr": value(a), "fnr": value(b)}
        for c, a, b in zip(found, x, y, strict=True)
    ]
    plural = "class" if len(zero) == 1 else "classes"
    left_out = f"{len(zero)} {plural} with a baseline rate of 0 left out" if zero else ""
    layers: list[Spec] = [
        {
            "data": {"values": [{"at": 0}]},
            "mark": "rule",
            "encoding": {axis: {"field": "at", "type": "quantitative"}},
        }
        for axis in ("x", "y")
    ]
    outline = ellipse(x, y)
    if outline:
        layers.append(
            {
                "data": {"values": outline},
                "mark": {"type": "line", "color": BLUE, "opacity": 0.8},
                "encoding": {
                    "x": {"field": "fpr", "type": "quantitative"},
                    "y": {"field": "fnr", "type": "quantitative"},
                    "order": {"field": "i", "type": "quantitative"},
                },
            }
        )
    position = {
        "x": {"field": "fpr", "type": "quantitative", "title": "change of FPR, % of baseline"},
        "y": {"field": "fnr", "type": "quantitative", "title": "change of FNR, % of baseline"},
    }
    tooltip = [
        {"field": "class", "type": "nominal"},
        {"field": "fpr", "type": "quantitative", "format": "+.1f", "title": "FPR, %"},
        {"field": "fnr", "type": "quantitative", "format": "+.1f", "title": "FNR, %"},
    ]
    layers.append(
        {
            "data": {"values": points},
            "mark": {"type": "circle", "size": 60, "color": ORANGE, "opacity": 0.85},
            "encoding": {**position, "tooltip": tooltip},
        }
    )
    if len(points) <= 40:
        text = {"type": "text", "align": "left", "dx": 7, "limit": 120, "fontSize": 11}
        layers.append(
            {
                "data": {"values": points},
                "mark": text,
                "encoding": {**position, "text": {"field": "class", "type": "nominal"}},
            }
        )
    centre = {"fpr": value(sum(x) / len(x)), "fnr": value(sum(y) / len(y)), "class": "mean"}
    layers.append(
        {
            "data": {"values": [centre]},
            "mark": {"type": "point", "shape": "cross", "size": 160, "filled": True, "color": BLUE,
                     "stroke": GREY},
            "encoding": {**position, "tooltip": tooltip},
        }
    )  # fmt: skip
    return {
        "title": pair_title(result, name, left_out),
        "description": (
            f"Scatter plot of {len(points)} classes: change of the false positive rate against "
            f"change of the false negative rate of {label(name)}, in percent of "
            f"{label(result.baseline)}. Mean change {centre['fpr']:+.1f} % and "
            f"{centre['fnr']:+.1f} %. "
            "The ellipse shows the spread of classes, not uncertainty."
        ),
        "width": 520,
        "height": 360,
        "layer": layers,
    }


def ellipse(x: list[float], y: list[float], steps: int = 72) -> list[dict[str, float]]:
    """The outline of the covariance ellipse at 2.448 sigma; nothing below three points.

    Uncorrelated x and y of equal variance give a circle:

    >>> ring = ellipse([1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0])
    >>> sorted({round((p["fpr"] ** 2 + p["fnr"] ** 2) / SIGMAS**2, 3) for p in ring})
    [0.667]
    """
    if len(x) < 3:
        return []
    import numpy as np

    covariance = np.cov(x, y)
    sizes, axes = np.linalg.eigh(covariance)
    angle = np.linspace(0, 2 * math.pi, steps + 1)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    ring = axes @ (SIGMAS * np.sqrt(np.maximum(sizes, 0))[:, None] * circle)
    ring += np.array([[np.mean(x)], [np.mean(y)]])
    return [{"i": i, "fpr": float(a), "fnr": float(b)} for i, (a, b) in enumerate(ring.T)]
