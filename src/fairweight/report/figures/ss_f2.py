"""SS-F2: accuracy, CEV and SDE against sparsity, one line per method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.report.figures.parts import label, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import AMBER, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY
from fairweight.report.numbers import count, missing, real
from fairweight.report.rows import at_task, is_ok, of_scope, records, variant_of

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

ENOUGH = 1000  # examples per class from which CEV and SDE are shown as published
_PANELS = ("accuracy", "cev", "sde")
_TITLES = {
    "accuracy": "accuracy, %",
    "cev": "CEV",
    "sde": "SDE",
    "cev_pp": "CEV in points",
    "sde_pp": "SDE in points",
}
_METHOD_COLUMNS = ("method", "treatment")


@figure(
    "SS-F2",
    title="Accuracy, CEV and SDE against sparsity",
    caption=(
        "Each point is a variant with its interval (these models), each line a method; small ticks "
        "are members, the ring is the variant of this section, the dashed line the baseline. Grey "
        "band: what retraining alone gives. CEV and SDE grow with noise: with fewer than 1,000 "
        "examples in some class they are shown corrected for it. They are taken in percentage "
        "points where a baseline rate is too near 0 for the published form, and a variant has no "
        "point where nothing can be estimated."
    ),
)
def against_sparsity(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    levels = _levels(result)
    if len({level.sparsity for level in levels.values()}) < 2:
        return Absent("the variants table names fewer than two levels of sparsity")
    every = result.results
    rows = every[every["metric"].isin(list(_TITLES)) & (every["by"] == "overall")]
    rows = at_task(rows[of_scope(rows, "model")], result, task)
    small = _smallest_class(result) < ENOUGH
    panels: list[Spec] = []
    rows = rows[rows["variant"].isin(list(levels))]
    for published in _PANELS:
        metric = _told(rows, published)
        corrected = small and metric != "accuracy"
        own = rows[(rows["metric"] == metric) & is_ok(rows)]
        points = [
            _point(row, levels[row["variant"]], corrected=corrected, this=row["variant"] == name)
            for row in records(own[own["debiased" if corrected else "compressed"].notna()])
        ]
        if not points:
            continue
        ticks = [] if corrected else _members(result, levels, metric, task)
        more = ", corrected" if corrected else ""
        panels.append(_panel(points, ticks, _TITLES[metric] + more, _methods(levels)))
    if not panels:
        return Absent("no variant with a sparsity has an accuracy, CEV or SDE")
    return {
        "title": f"{count(len(levels))} variants against {label(result.baseline)}; "
        f"ring: {label(name)}",
        "description": (
            f"Accuracy, CEV and SDE of {count(len(levels))} variants against their sparsity, from "
            f"{min(v.sparsity for v in levels.values()):g} to "
            f"{max(v.sparsity for v in levels.values()):g}; {label(name)} is ringed."
        ),
        "concat": panels,
        "columns": 2,
    }


def _told(rows: pd.DataFrame, metric: str) -> str:
    """The metric as published if it can be estimated in every variant, else in points."""
    usable = is_ok(rows[rows["metric"] == metric]).all()
    return metric if usable or metric == "accuracy" else f"{metric}_pp"


@dataclass(frozen=True)
class Level:
    """Where a variant stands on the axis, and on which line."""

    sparsity: float
    method: str


def _levels(result: AuditResult) -> dict[str, Level]:
    """The sparsity (mean over members) and method of every audited variant that has one."""
    import pandas as pd

    table = result.variants_table
    if table is None or not {"variant", "sparsity"} <= set(table.columns):
        return {}
    names = table["variant"].astype(str)
    method = next((c for c in _METHOD_COLUMNS if c in table.columns), None)
    found = {}
    for own in result.variants:
        rows = table[names == own]
        sparsity = real(pd.to_numeric(rows["sparsity"], errors="coerce").mean())
        if missing(sparsity):
            continue
        given = None if method is None else rows[method].iloc[0]
        found[own] = Level(sparsity, "compressed" if missing(given) else str(given))
    return found


def _methods(levels: dict[str, Level]) -> list[str]:
    return list(dict.fromkeys(label(level.method) for level in levels.values()))


def _smallest_class(result: AuditResult) -> float:
    data = result.data
    sizes = data.loc[(data["split"] == "test") & (data["by"] == "class"), "n"]
    return float(sizes.min()) if len(sizes) else 0.0


def _point(row: dict[str, Any], level: Level, *, corrected: bool, this: bool) -> dict[str, Any]:
    """Where a variant stands in one panel, with its interval and what retraining alone gives."""
    share = row["metric"] == "accuracy"
    scale = 100.0 if share else 1.0
    found = row["debiased"] if corrected else row["compressed"]
    low, high = ("compressed_low", "compressed_high") if share else ("ci_low", "ci_high")
    floor, before = real(row["noise_floor"]), real(row["baseline"])
    known = not missing(floor) and not corrected
    return {
        "variant": label(row["variant"]),
        "method": label(level.method),
        "sparsity": level.sparsity,
        "value": value(found, scale),
        "low": value(row[low], scale),
        "high": value(row[high], scale),
        "baseline": value(before, scale) if share else None,
        "floor_low": value(before - floor if share else 0.0, scale) if known else None,
        "floor_high": value(before + floor if share else floor, scale) if known else None,
        "this": this,
    }


def _members(
    result: AuditResult, levels: dict[str, Level], metric: str, task: str | None
) -> list[dict[str, Any]]:
    """The value of every single member of a population."""
    frame: pd.DataFrame = at_task(result.per_seed, result, task)
    rows = frame[
        (frame["metric"] == metric)
        & (frame["by"] == "overall")
        & frame["variant"].isin(list(levels))
        & frame["value"].notna()
    ]
    if not (rows.groupby("variant")["seed"].nunique() > 1).any():
        return []
    scale = 100.0 if metric == "accuracy" else 1.0
    return [
        {
            "method": label(levels[row["variant"]].method),
            "sparsity": levels[row["variant"]].sparsity,
            "value": value(row["value"], scale),
        }
        for row in records(rows, ("variant", "value"))
    ]


def _panel(
    points: list[dict[str, Any]], ticks: list[dict[str, Any]], title: str, methods: list[str]
) -> Spec:
    x = {
        "field": "sparsity",
        "type": "quantitative",
        "title": "sparsity",
        "scale": {"zero": False, "padding": 16},
    }
    colors = [ORANGE, BLUE, GREEN, PURPLE, SKY, AMBER]
    color = {
        "field": "method",
        "type": "nominal",
        "title": None,
        "scale": {
            "domain": methods,
            "range": [colors[i % len(colors)] for i in range(len(methods))],
        },
        "legend": None if len(methods) < 2 else {},
    }

    share = any(p["baseline"] is not None for p in points)
    scale: Spec = {"zero": not share, "nice": True}

    def at(field: str, until: str | None = None) -> Spec:
        y = {
            "field": field,
            "type": "quantitative",
            "title": title,
            "scale": scale,
        }
        return {"x": x, "y": y, **({} if until is None else {"y2": {"field": until}})}

    bands = [p for p in points if p["floor_high"] is not None]
    spans = [p for p in points if p["low"] is not None and p["high"] is not None]
    before = next((p["baseline"] for p in points if p["baseline"] is not None), None)
    layers: list[Spec] = []
    if bands:
        layers.append(
            {
                "data": {"values": bands},
                "mark": {"type": "rule", "strokeWidth": 14, "color": GREY, "opacity": 0.25},
                "encoding": at("floor_low", "floor_high"),
            }
        )
    if before is not None:
        layers.append(
            {
                "data": {"values": [{"at": before}]},
                "mark": {"type": "rule", "strokeDash": [4, 4], "color": GREY},
                "encoding": {"y": {"field": "at", "type": "quantitative"}},
            }
        )
    layers.append(
        {
            "data": {"values": points},
            "mark": {"type": "line", "opacity": 0.7},
            "encoding": {**at("value"), "color": color},
        }
    )
    if ticks:
        layers.append(
            {
                "data": {"values": ticks},
                "mark": {"type": "tick", "orient": "horizontal", "size": 12, "opacity": 0.6},
                "encoding": {**at("value"), "color": color},
            }
        )
    layers += [
        {
            "data": {"values": spans},
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {**at("low", "high"), "color": color},
        },
        {
            "data": {"values": points},
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
            "encoding": {
                **at("value"),
                "color": color,
                "tooltip": [
                    {"field": "variant", "type": "nominal"},
                    {"field": "sparsity", "type": "quantitative"},
                    {"field": "value", "type": "quantitative", "format": ".4g", "title": title},
                    {"field": "low", "type": "quantitative", "format": ".4g", "title": "from"},
                    {"field": "high", "type": "quantitative", "format": ".4g", "title": "to"},
                ],
            },
        },
        {
            "data": {"values": [p for p in points if p["this"]]},
            "mark": {"type": "point", "size": 220, "color": GREY, "strokeWidth": 2},
            "encoding": at("value"),
        },
    ]
    return {"width": 260, "height": 200, "layer": layers}
