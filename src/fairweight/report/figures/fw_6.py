"""FW-6: every member of a population per class and group, with those of the baseline beside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import at_task, records, select, variant_of
from fairweight.base.wording import shown
from fairweight.report.figures.parts import (
    label,
    labels,
    largest,
    models,
    pair_title,
    selection,
    value,
)
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.finding import CONFIRMATORY
from fairweight.report.numbers import count

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

LIMIT = 25  # rows per panel: each holds two boxes
BOX_MEMBERS = 5  # quartiles of fewer are not worth a box


@figure(
    "FW-6",
    title="Every member, class by class",
    caption=(
        "Each tick is one model of the population; a box (from five members on) spans the middle "
        "half of them, its line is the median. The spread of the baseline's own members is what "
        "training again does; a compressed population that lies beside it has moved further than "
        "that. Members are not paired in this picture."
    ),
)
def members(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    seeds = at_task(result.per_seed, result, task)
    seeds = seeds[seeds["variant"].isin([result.baseline, name]) & seeds["value"].notna()]
    sizes = seeds.groupby("variant")["seed"].nunique()
    if sizes.empty or sizes.max() < 2:
        return Absent("there is one model on each side")
    panels: list[Spec] = []
    said: list[str] = []
    for metric, by in CONFIRMATORY:
        rows = at_task(select(result, name, metric, by), result, task)
        own = seeds[(seeds["metric"] == metric) & (seeds["by"] == by)]
        rows = rows[rows["shift"].notna() & rows[by].isin(own[by])]
        if rows.empty:
            continue
        kept = largest(rows[by].tolist(), rows["shift"].abs().tolist(), LIMIT)
        said.append(selection(len(kept), len(rows), "classes" if by == "class" else "groups"))
        panels.append(_panel(_points(own, by, kept), models(result, name), f"{metric} by {by}, %"))
    if not panels:
        return Absent("there are no numbers of single members by class or group")
    before, after = (count(sizes.get(v, 0)) for v in (result.baseline, name))
    return {
        "title": pair_title(result, name, *said),
        "description": (
            f"Accuracy by group and recall by class of every member: {before} of "
            f"{label(result.baseline)} and {after} of {label(name)} beside each other."
        ),
        "vconcat": panels,
    }


def _points(own: pd.DataFrame, by: str, kept: list[str]) -> list[dict[str, Any]]:
    """One value per class or group and member, in the order of the rows kept."""
    texts = dict(zip(kept, labels(kept), strict=True))
    rows = sorted(
        records(own[own[by].isin(kept)], ("variant", "seed", by, "value")),
        key=lambda row: kept.index(row[by]),
    )
    return [
        {
            "name": texts[row[by]],
            "model": label(row["variant"]),
            "member": shown(row["seed"]),
            "value": value(row["value"], 100),
        }
        for row in rows
    ]


def boxes(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Least value, quartiles and largest value wherever there are enough members.

    >>> found = boxes([{"name": "a", "model": "m", "value": v} for v in (1.0, 2.0, 3.0, 4.0, 9.0)])
    >>> [found[0][key] for key in ("least", "lower", "median", "upper", "most")]
    [1.0, 2.0, 3.0, 4.0, 9.0]
    >>> boxes([{"name": "a", "model": "m", "value": v} for v in (1.0, 2.0, 3.0, 4.0)])
    []
    """
    import numpy as np

    groups: dict[tuple[str, str], list[float]] = {}
    for point in points:
        groups.setdefault((point["name"], point["model"]), []).append(point["value"])
    keys = ("least", "lower", "median", "upper", "most")
    return [
        {"name": name, "model": model}
        | dict(zip(keys, np.quantile(found, [0, 0.25, 0.5, 0.75, 1]).tolist(), strict=True))
        for (name, model), found in groups.items()
        if len(found) >= BOX_MEMBERS
    ]


def _panel(points: list[dict[str, Any]], color: Spec, title: str) -> Spec:
    place = {
        "y": {"field": "name", "type": "nominal", "title": None, "sort": None},
        "yOffset": {"field": "model", "type": "nominal", "sort": color["scale"]["domain"]},
        "color": {**color, "legend": {"symbolOpacity": 1}},
    }

    def across(field: str, until: str | None = None) -> Spec:
        x: Spec = {
            "x": {
                "field": field,
                "type": "quantitative",
                "title": title,
                "scale": {"zero": False, "nice": True},
            }
        }
        return {**place, **x, **({} if until is None else {"x2": {"field": until}})}

    drawn = boxes(points)
    layers: list[Spec] = []
    if drawn:
        layers = [
            {
                "data": {"values": drawn},
                "mark": {"type": "rule", "strokeWidth": 1.5},
                "encoding": across("least", "most"),
            },
            {
                "data": {"values": drawn},
                "mark": {"type": "bar", "opacity": 0.35},
                "encoding": across("lower", "upper"),
            },
            {
                "data": {"values": drawn},
                "mark": {"type": "tick", "thickness": 3},
                "encoding": across("median"),
            },
        ]
    layers.append(
        {
            "data": {"values": points},
            "mark": {"type": "tick", "thickness": 1, "opacity": 0.7}
            if drawn
            else {"type": "point", "filled": True, "size": 45, "opacity": 0.85},
            "encoding": {
                **across("value"),
                "tooltip": [
                    {"field": "name", "type": "nominal", "title": "who"},
                    {"field": "model", "type": "nominal"},
                    {"field": "member", "type": "nominal"},
                    {"field": "value", "type": "quantitative", "format": ".2f", "title": "%"},
                ],
            },
        }
    )
    return {"width": 420, "height": {"step": 14}, "layer": layers}
