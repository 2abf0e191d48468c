"""HK-T4: change of subgroup errors at every level of compression, a grid of subgroups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import variant_of
from fairweight.base.wording import missing, real
from fairweight.report.figures.measured import Pair, pairs_of, why_missing
from fairweight.report.figures.parts import label, labels, largest, selection, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.sparsity import by_level
from fairweight.report.figures.theme import GREY, ORANGE
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

EVERYONE = "all examples"
GROUPS = 8
VARIANTS = 12
TOP = 100.0  # percent, as the paper cuts it
SIDE = 96
LINE = 13  # of a heading
_METRICS = {"error_rate": "error", "fpr": "FPR", "fnr": "FNR"}


@figure(
    "HK-T4",
    title="Errors of subgroups by level",
    caption=(
        "Change of the error, false positive and false negative rate in percent of the baseline's "
        "rate, at every level of compression; a column is a subgroup. Lines: interval of the "
        "shift, in percent of the same rate. Grey band: what retraining alone moves. The axis "
        "ends at ± 100 %, as in the paper; ▲: above it. ×: undefined, or the baseline makes no "
        "such error, or too few examples to tell."
    ),
    more=True,
    explains=True,
    once=True,
)
def errors_by_level(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    names = list(by_level(result))[:VARIANTS]
    if len(names) < 2:
        return Absent("there is one level of compression")
    tables = {metric: _by_group(result, names, metric, task) for metric in _METRICS}
    groups = [who for who in tables["error_rate"] if who is not None]
    if not groups:
        return Absent("there are no groups")
    kept = largest(groups, [_size(tables["error_rate"][who]) for who in groups], GROUPS)
    shown = ([None] if None in tables["error_rate"] else []) + kept
    texts = labels([EVERYONE if who is None else who for who in shown])
    order = labels(names)
    panels = []
    for i, (metric, heading) in enumerate(_METRICS.items()):
        for j, (text, who) in enumerate(zip(texts, shown, strict=True)):
            rows = tables[metric].get(who, {})
            values = [_value(at, rows.get(name)) for at, name in zip(order, names, strict=True)]
            last = i == len(_METRICS) - 1
            head = text if i == 0 else None
            panels.append(_panel(values, order, f"{heading}, change %", head, j == 0, last))
    return {
        "title": "; ".join(
            part
            for part in (
                f"{count(len(names))} variants against {label(result.baseline)}",
                selection(len(kept), len(groups), "groups"),
                selection(len(names), len(result.variants), "variants", "the lowest sparsity"),
            )
            if part
        ),
        "description": (
            f"Grid of {count(len(shown))} subgroups: change of error, false positive and false "
            f"negative rate of {count(len(names))} variants in percent of {label(result.baseline)}."
        ),
        "concat": panels,
        "columns": len(shown),
        "spacing": {"row": 12, "column": 8},
    }


def _by_group(
    result: AuditResult, names: list[str], metric: str, task: str | None
) -> dict[str | None, dict[str, Pair]]:
    table: dict[str | None, dict[str, Pair]] = {}
    for by in ("overall", "group"):
        for variant, rows in pairs_of(result, names, metric, by, task).items():
            for who, pair in rows.items():
                table.setdefault(who, {})[variant] = pair
    return table


def _size(rows: dict[str, Pair]) -> float:
    shifts = [abs(real(row["shift"])) for row, _ in rows.values() if not missing(row["shift"])]
    return max(shifts, default=-1.0)


def _value(at: str, pair: Pair | None) -> dict[str, Any]:
    """A change in percent of the baseline's rate with its interval and floor; or why not."""
    blank = dict.fromkeys(("value", "low", "high", "floor_low", "floor_high"))
    if pair is None:
        return {"at": at, **blank, "why": "not measured", "n": None}
    row = pair[0]
    base, compressed = real(row["baseline"]), real(row["compressed"])
    found = {"at": at, **blank, "n": value(row["n"]), "why": None}
    if str(row["status"]).startswith("small_group"):
        return found | {"why": f"cannot tell (n = {count(row['n'])})"}
    if missing(base) or missing(compressed):
        return found | {"why": why_missing(row)}
    if base == 0:
        return found | {"why": "the baseline's rate is 0"}
    floor = real(row["noise_floor"])
    scale = 100 / base
    return found | {
        "value": value(compressed - base, scale),
        "low": value(row["ci_low"], scale),
        "high": value(row["ci_high"], scale),
        "floor_low": None if missing(floor) else value(-floor, scale),
        "floor_high": None if missing(floor) else value(floor, scale),
    }


def _panel(
    values: list[dict[str, Any]],
    order: list[str],
    title: str,
    heading: str | None,
    left: bool,
    bottom: bool,
) -> Spec:
    x = {
        "field": "at",
        "type": "nominal",
        "title": None,
        "sort": order,
        "scale": {"domain": order},
        "axis": {"labels": bottom, "ticks": bottom, "labelAngle": -60, "labelLimit": 110,
                 "labelFontSize": 10, "grid": False},
    }  # fmt: skip
    y = {
        "type": "quantitative",
        "title": title if left else None,
        "scale": {"domain": [-TOP, TOP]},
        "axis": {"labels": left, "ticks": left, "tickCount": 5},
    }

    def span(low: str, high: str, **mark: Any) -> Spec:
        return {
            "transform": [{"filter": f"isValid(datum.{low}) && isValid(datum.{high})"}],
            "mark": {"type": "rule", "clip": True, **mark},
            "encoding": {"x": x, "y": {"field": low, **y}, "y2": {"field": high}},
        }

    tooltip = [
        {"field": "at", "type": "nominal", "title": "variant"},
        *(
            {"field": field, "type": "quantitative", "format": "+.1f", "title": words}
            for field, words in (("value", "change, %"), ("low", "from"), ("high", "to"),
                                 ("floor_high", "retraining, up to"))
        ),
        {"field": "n", "type": "quantitative", "format": ",.0f"},
        {"field": "why", "type": "nominal", "title": "missing"},
    ]  # fmt: skip
    at = {"x": x, "y": {"field": "value", **y}}
    layers: list[Spec] = [
        span("floor_low", "floor_high", strokeWidth=9, color=GREY, opacity=0.3),
        {
            "data": {"values": [{"zero": 0}]},
            "mark": {"type": "rule", "color": GREY},
            "encoding": {"y": {"field": "zero", **y}},
        },
        span("low", "high", strokeWidth=1.5, color=ORANGE),
        {
            "transform": [{"filter": f"isValid(datum.value) && abs(datum.value) <= {TOP}"}],
            "mark": {"type": "point", "filled": True, "size": 36, "color": ORANGE, "opacity": 1},
            "encoding": {**at, "tooltip": tooltip},
        },
        *_marks(values, x, tooltip),
    ]
    if heading is not None:
        lines = heading.split(" & ")
        layers.append(
            {
                "data": {"values": [{}]},
                "mark": {"type": "text", "text": lines, "baseline": "top", "fontSize": 11,
                         "lineHeight": LINE, "limit": SIDE + 4},
                "encoding": {"x": {"value": SIDE / 2}, "y": {"value": -LINE * len(lines) - 4}},
            }
        )  # fmt: skip
    return {"width": SIDE, "height": SIDE, "data": {"values": values}, "layer": layers}


def _marks(values: list[dict[str, Any]], x: Spec, tooltip: list[Spec]) -> list[Spec]:
    """Signs for what lies beyond the frame and for what is missing."""
    signs = (
        ("▲", f"isValid(datum.value) && datum.value > {TOP}", 6,
         any(v["value"] is not None and v["value"] > TOP for v in values)),
        ("▼", f"isValid(datum.value) && datum.value < {-TOP}", SIDE - 6,
         any(v["value"] is not None and v["value"] < -TOP for v in values)),
        ("×", "!isValid(datum.value)", SIDE / 2, any(v["value"] is None for v in values)),
    )  # fmt: skip
    return [
        {
            "transform": [{"filter": which}],
            "mark": {"type": "text", "text": sign, "fontSize": 11},
            "encoding": {"x": x, "y": {"value": place}, "tooltip": tooltip},
        }
        for sign, which, place, there in signs
        if there
    ]
