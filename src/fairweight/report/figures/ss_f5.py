"""SS-F5: CEV against the distance of representations, one panel per block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import missing, real
from fairweight.report.figures.explained import correlation, explained, untold
from fairweight.report.figures.parts import label, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import BLUE, GREY, ORANGE
from fairweight.report.numbers import count

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

STEPS = 25  # of the band, which is curved


@figure(
    "SS-F5",
    title="CEV against the distance of representations",
    caption=(
        "A point is a variant: its CEV against the mean distance of its members' representations "
        "to those of their own dense models, by block. Line: least squares over variants; grey: "
        "the interval of its mean. r: Pearson's correlation with Fisher's interval. Dashed: the "
        "distance between dense models, which retraining alone gives. Variants share dense models, "
        "so they are not independent, and whatever moves representations (sparsity, above all) "
        "moves errors too: an association over variants, not a cause. CEV is as published and "
        "grows with noise."
    ),
    explains=True,
    once=True,
)
def bias_against_distance(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    found = explained(result, "similarity_points", None, task)
    if isinstance(found, Absent):
        return found
    known = found[found[["distance", "cev"]].notna().all(axis=1)]
    if known.empty:
        return Absent("no variant has both a distance and a CEV")
    lines = _lines(result)
    alpha = float(result.provenance.options.get("alpha", 0.05))
    color = _color(known)
    top = 1.15 * float(known["cev"].max()) or 1.0
    panels = [
        _panel(own, lines, top, color, alpha)
        for _, own in known.groupby(["measure", "block"], sort=False)
    ]
    n = known["variant"].nunique()
    plural = "variant" if n == 1 else "variants"
    return {
        "title": f"{count(n)} {plural} against {label(result.baseline)}",
        "description": (
            f"CEV of {count(n)} {plural} against the distance of their representations to those "
            f"of {label(result.baseline)}, in {count(len(panels))} panels, one per block, with "
            "lines over variants where there are enough."
        ),
        "concat": panels,
        "columns": 2,
    }


def _lines(result: AuditResult) -> dict[tuple[str, str], dict[str, Any]]:
    frame = result.explanations.get("similarity")
    if frame is None or frame.empty:
        return {}
    rows = records(frame[frame["metric"] == "cev"])
    return {(str(row["measure"]), str(row["block"])): row for row in rows}


def _color(points: pd.DataFrame) -> Spec:
    """By sparsity where there are at least two; the legend is one for all panels."""
    if points["sparsity"].nunique() < 2:
        return {"value": ORANGE}
    return {
        "field": "sparsity",
        "type": "quantitative",
        "title": "sparsity",
        "scale": {
            "domain": [float(points["sparsity"].min()), float(points["sparsity"].max())],
            "range": [BLUE, ORANGE],
            "interpolate": "lab",
        },
        "legend": {"gradientLength": 160, "tickCount": 4},
    }


def _panel(
    own: pd.DataFrame,
    lines: dict[tuple[str, str], dict[str, Any]],
    top: float,
    color: Spec,
    alpha: float,
) -> Spec:
    measure, block = (str(own[name].iloc[0]) for name in ("measure", "block"))
    axis = f"{measure.upper()} distance, {label(block)}"
    x = {"field": "distance", "type": "quantitative", "title": axis,
         "scale": {"zero": False, "padding": 14}, "axis": {"tickCount": 5}}  # fmt: skip
    y = {"field": "cev", "type": "quantitative", "title": "CEV", "scale": {"domain": [0, top]}}
    points = [
        {
            "variant": label(row["variant"]),
            **{name: value(row[name]) for name in ("distance", "cev", "sparsity")},
        }
        for row in records(own)
    ]
    floor = real(own["floor"].iloc[0])
    layers: list[Spec] = _drawn_line(own, x, y, alpha)
    if not missing(floor):
        layers.append(
            {
                "data": {"values": [{"distance": floor}]},
                "mark": {"type": "rule", "strokeDash": [4, 4], "color": GREY},
                "encoding": {"x": x},
            }
        )
    layers += [_dots([p for p in points if (p["sparsity"] is None) == bare], bare, x, y, color)
               for bare in (False, True)]  # fmt: skip
    return {
        "width": 270,
        "height": 210,
        "title": {"text": f"{label(block)}: {_said(lines.get((measure, block)))}", "fontSize": 12},
        "layer": layers,
    }


def _said(line: dict[str, Any] | None) -> str:
    if line is None:
        return "no line was fitted"
    if missing(line["correlation"]):
        return untold(line) or "cannot tell"
    return f"r {correlation(line)}, {count(line['n_variants'])} variants"


def _dots(points: list[dict[str, Any]], bare: bool, x: Spec, y: Spec, color: Spec) -> Spec:
    """Variants as points; those without a sparsity are grey."""
    return {
        "data": {"values": points},
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
        "encoding": {
            "x": x,
            "y": y,
            "color": {"value": GREY} if bare and "field" in color else color,
            "tooltip": [
                {"field": "variant", "type": "nominal"},
                {"field": "sparsity", "type": "quantitative"},
                {"field": "distance", "type": "quantitative", "format": ".4g"},
                {"field": "cev", "type": "quantitative", "format": ".4g", "title": "CEV"},
            ],
        },
    }


def _drawn_line(own: pd.DataFrame, x: Spec, y: Spec, alpha: float) -> list[Spec]:
    import numpy as np

    from fairweight.auditing.explain.similarity import band, regress

    distance = own["distance"].to_numpy()
    fit = regress(distance, own["cev"].to_numpy(), alpha=alpha)
    if missing(fit.slope):
        return []
    at = np.linspace(distance.min(), distance.max(), STEPS)
    middle, low, high = band(fit, at)
    values = [
        {"distance": value(a), "cev": value(m), "low": value(b), "high": value(c)}
        for a, m, b, c in zip(at, middle, low, high, strict=True)
    ]
    limits = {**y, "field": "low"}
    return [
        {
            "data": {"values": values},
            "mark": {"type": "area", "color": GREY, "opacity": 0.25, "clip": True},
            "encoding": {"x": x, "y": limits, "y2": {"field": "high"}},
        },
        {
            "data": {"values": values},
            "mark": {"type": "line", "color": GREY, "strokeWidth": 2, "clip": True},
            "encoding": {"x": x, "y": y},
        },
    ]
