"""FW-4: what a cascade and overrides do, against what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.report.figures.curve_bands import HEIGHT, WIDTH, banded
from fairweight.report.figures.explained import explained
from fairweight.report.figures.parts import label, pair_title, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import BLUE, GREY, ORANGE
from fairweight.report.numbers import count

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

TITLES = {
    "accuracy": "accuracy, %",
    "worst_group_shift": "worst-group shift, points",
    "bias_amplification": "bias amplification, points",
}
PANELS = 12


@figure(
    "FW-4",
    title="Cascade and overrides",
    caption=(
        "Cascade: accuracy, worst-group shift against the dense model and worst-case bias "
        "amplification, against the average cost of an input (the compressed model, and the dense "
        "one for those that it is unsure of); on the rows that chose the threshold (grey) and on "
        "those that judge it (orange). Large dot: the threshold used. Overrides: the same against "
        "the share of examples with a fixed label, the least sure first (blue), and chosen at "
        "random (grey). Bands: 95 % bootstrap intervals over examples (clusters), of the worst "
        "group simultaneous ones. With several tasks, means over those with an estimate."
    ),
    explains=True,
)
def curves(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    cascade = explained(result, "cascade_curve", name, task)
    overrides = explained(result, "override_curves", name, task)
    if isinstance(cascade, Absent) and isinstance(overrides, Absent):
        return Absent("neither a cascade nor overrides were tried")
    panels: list[Spec] = []
    if not isinstance(cascade, Absent):
        judged = cascade[(cascade["part"] == "judging") & cascade["value"].notna()]
        told = judged[["metric", "group"]].drop_duplicates()
        panels += _panels(cascade.merge(told), _cascade_panel)
    if not isinstance(overrides, Absent):
        panels += _panels(overrides[overrides["source"] == "dense"], _override_panel)
    shown = panels[:PANELS]
    cut = "" if len(shown) == len(panels) else f"the first {PANELS} of {count(len(panels))} panels"
    return {
        "title": pair_title(result, name, cut),
        "description": (
            f"{count(len(shown))} panels: accuracy and what groups lose, against the cost of a "
            f"cascade or the budget of overrides of {label(name)}."
        ),
        "concat": shown,
        "columns": 3,
        "resolve": {"scale": {"color": "independent"}},
    }


def _panels(frame: pd.DataFrame, panel: Any) -> list[Spec]:
    known = frame[frame["value"].notna()]
    order = {metric: place for place, metric in enumerate(TITLES)}
    parts = sorted(
        known.groupby(["metric", "group"], dropna=False, sort=False),
        key=lambda part: order[str(part[0][0])],
    )
    return [panel(str(metric), group, own) for (metric, group), own in parts]


def _cascade_panel(metric: str, group: Any, own: pd.DataFrame) -> Spec:
    measured = own["cost_ms"].notna().all()
    field = "cost" if measured else "share"
    values = [
        {
            "rows": row["part"],
            "threshold": value(row["threshold"]),
            "cost": value(row["cost_ms"]),
            "share": value(row["share_deferred"], 100),
            "used": bool(row["recommended"]),
            **_numbers(row),
        }
        for row in records(own)
    ]
    x = {
        "field": field,
        "type": "quantitative",
        "title": "cascade: ms per input" if measured else "cascade: % sent to the dense model",
        "scale": {"zero": False},
    }
    color = _color("rows", ["choosing", "judging"])
    tooltip = [_tip("rows"), _tip("threshold"), _tip("share"), _tip("cost"), *_limits(metric)]
    used = [v for v in values if v["used"] and v["rows"] == "judging"]
    return {
        **_size(group),
        "layer": [
            *banded(values, x, TITLES[metric], color, tooltip),
            {
                "data": {"values": used},
                "mark": {"type": "point", "filled": True, "size": 120, "color": ORANGE},
                "encoding": {"x": x, "y": {"field": "value", "type": "quantitative"}},
            },
        ],
    }


def _override_panel(metric: str, group: Any, own: pd.DataFrame) -> Spec:
    values = []
    for row in records(own):
        budget = {"budget": value(row["budget"], 100)}
        values.append({"choice": "least sure", **budget, **_numbers(row)})
        drawn = {"value": row["random"], "low": row["random_low"], "high": row["random_high"]}
        values.append({"choice": "random", **budget, **_numbers(drawn)})
    x = {"field": "budget", "type": "quantitative", "title": "overrides: % of the examples"}
    color = _color("choice", ["random", "least sure"])
    tooltip = [_tip("choice"), _tip("budget"), *_limits(metric)]
    return {**_size(group), "layer": banded(values, x, TITLES[metric], color, tooltip)}


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value(row[name], 100) for name in ("value", "low", "high")}


def _size(group: Any) -> Spec:
    told = "everybody" if not isinstance(group, str) else label(group)
    return {"width": WIDTH, "height": HEIGHT, "title": {"text": told, "fontSize": 12}}


def _color(field: str, names: list[str]) -> Spec:
    scale = {"domain": names, "range": [GREY, ORANGE if field == "rows" else BLUE]}
    legend = {"symbolOpacity": 1}
    return {"field": field, "type": "nominal", "title": None, "scale": scale, "legend": legend}


def _tip(field: str) -> Spec:
    kind = "nominal" if field in ("rows", "choice") else "quantitative"
    return {"field": field, "type": kind, **({} if kind == "nominal" else {"format": ".4g"})}


def _limits(metric: str) -> list[Spec]:
    named = {"value": TITLES[metric], "low": "low", "high": "high"}
    return [{"field": f, "type": "quantitative", "format": ".3f", "title": t}
            for f, t in named.items()]  # fmt: skip
