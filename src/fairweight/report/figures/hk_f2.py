"""HK-F2: the share of every group among exemplars against its share in the data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import missing, real
from fairweight.report.figures.explained import (
    at_cut,
    cut_name,
    explained,
    noted,
    untold,
    usual_cut,
)
from fairweight.report.figures.parts import label, labels, largest, pair_title, selection, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import GREY, ORANGE
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

LIMIT = 30
ALPHA = 0.05
ROW = 18


@figure(
    "HK-F2",
    title="Who is common among exemplars",
    caption=(
        "Left: share among exemplars against share in the training data (in the test data where "
        "those are not known); above the dashed line a group is more common among exemplars than "
        "in the data. Right: the odds of being an exemplar against those of all others, with "
        "interval; grey: the same for dense against dense models at equal sizes, which is what "
        "difficulty alone gives. Filled: at equal numbers of members the ratio of the two differs "
        "from 1 after correction. "
        "An association with the group, not a cause."
    ),
    explains=True,
)
def over_indexing(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    found = explained(result, "enrichment", name, task)
    if isinstance(found, Absent):
        return found
    groups = found[found["by"] == "group"]
    if groups.empty:
        return Absent("there are no groups among the exemplars")
    cut = usual_cut(groups)
    rows = records(at_cut(groups, cut))
    kept = largest(rows, [_size(row) for row in rows], LIMIT)
    source = "share_train" if any(not missing(row["share_train"]) for row in kept) else "share_test"
    texts = labels([row["group"] for row in kept])
    values = [_value(text, row, source) for text, row in zip(texts, kept, strict=True)]
    beyond = sum(v["told"] == "yes" for v in values)
    return {
        "title": pair_title(
            result,
            name,
            f"exemplars: {cut_name(*cut)}",
            selection(len(kept), len(rows), "groups", "the odds farthest from 1"),
            *dict.fromkeys(noted(row) or "" for row in kept if _known(row)),
        ),
        "description": (
            f"Share of {count(len(kept))} groups among the exemplars of {label(name)} against "
            "their share in the data, and their odds of being an exemplar beside those that "
            f"retraining alone gives. The two differ beyond chance in {count(beyond)} groups."
        ),
        "data": {"values": values},
        "hconcat": [_shares(values, source), _odds(values)],
        "resolve": {"scale": {"color": "independent"}},
    }


def _known(row: dict[str, Any]) -> bool:
    """Whether a row has odds to draw; what its status says then belongs to the whole figure."""
    return _size(row) >= 0 and not str(row["status"]).startswith("small")


def _size(row: dict[str, Any]) -> float:
    odds = real(row["odds_ratio"])
    return abs(math.log(odds)) if odds > 0 and math.isfinite(odds) else -1.0


def _value(text: str, row: dict[str, Any], source: str) -> dict[str, Any]:
    limits = ("odds_ratio", "or_low", "or_high", "retraining_odds_ratio", "retraining_low",
              "retraining_high")  # fmt: skip
    p = real(row["p_adjusted"])
    return {
        "group": text,
        "source": value(row[source], 100),
        "exemplars": value(row["share_exemplars"], 100),
        "n": value(row["n_exemplars"]),
        # An axis of ratios has no place for 0.
        **{key: value(row[key]) if real(row[key]) > 0 else None for key in limits},
        "ratio": value(row["ratio"]),
        "p": value(p),
        "told": "yes" if p <= ALPHA and untold(row) is None else "no",
        "why": None if _known(row) else untold(row),
    }


def _tooltip() -> list[Spec]:
    return [
        {"field": "group", "type": "nominal"},
        {"field": "n", "type": "quantitative", "format": ",.0f", "title": "exemplars"},
        *(
            {"field": field, "type": "quantitative", "format": ".3g", "title": words}
            for field, words in (
                ("source", "share in the data, %"),
                ("exemplars", "share of exemplars, %"),
                ("odds_ratio", "odds ratio"),
                ("or_low", "from"),
                ("or_high", "to"),
                ("retraining_odds_ratio", "retraining alone"),
                ("ratio", "ratio at equal sizes"),
                ("p", "p, corrected"),
            )
        ),
        {"field": "why", "type": "nominal", "title": "status"},
    ]


def _shares(values: list[dict[str, Any]], source: str) -> Spec:
    known = [v[k] for v in values for k in ("source", "exemplars") if v[k] is not None and v[k] > 0]
    ends = [min(known) / 1.3, max(known) * 1.3] if known else [1.0, 100.0]
    data = "training" if source == "share_train" else "test"
    axis = {"type": "quantitative", "scale": {"type": "log", "domain": ends}}
    grid = {"format": ".2~r", "tickCount": 4}
    place = {
        "x": {"field": "source", "title": f"share of the {data} data, %", "axis": grid, **axis},
        "y": {"field": "exemplars", "title": "share of exemplars, %", "axis": grid, **axis},
    }
    positive = {"filter": "datum.source > 0 && datum.exemplars > 0"}
    line = [{"source": end, "exemplars": end} for end in ends]
    return {
        "width": 240,
        "height": max(240, ROW * len(values)),
        "layer": [
            {
                "data": {"values": line},
                "mark": {"type": "line", "strokeDash": [4, 4], "color": GREY},
                "encoding": place,
            },
            {
                "transform": [positive],
                "mark": {"type": "circle", "size": 55, "color": ORANGE, "opacity": 0.85},
                "encoding": {**place, "tooltip": _tooltip()},
            },
        ],
    }


def _odds(values: list[dict[str, Any]]) -> Spec:
    y = {"field": "group", "type": "nominal", "title": None, "sort": None}
    x = {
        "type": "quantitative",
        "title": "odds of being an exemplar, against all others",
        "scale": {"type": "log"},
        "axis": {"format": ".2~r", "tickCount": 5},
    }

    def span(low: str, high: str, **mark: Any) -> Spec:
        return {
            "transform": [{"filter": f"isValid(datum.{low}) && isValid(datum.{high})"}],
            "mark": {"type": "rule", **mark},
            "encoding": {"y": y, "x": {"field": low, **x}, "x2": {"field": high}},
        }

    layers: list[Spec] = [
        {
            "data": {"values": [{"one": 1}]},
            "mark": {"type": "rule", "strokeDash": [4, 4], "color": GREY},
            "encoding": {"x": {"field": "one", **x}},
        },
        span("retraining_low", "retraining_high", strokeWidth=9, color=GREY, opacity=0.35),
        {
            "transform": [{"filter": "isValid(datum.retraining_odds_ratio)"}],
            "mark": {"type": "tick", "thickness": 2, "color": GREY, "size": 12},
            "encoding": {"y": y, "x": {"field": "retraining_odds_ratio", **x}},
        },
        span("or_low", "or_high", strokeWidth=2, color=ORANGE),
        {
            "transform": [{"filter": "isValid(datum.odds_ratio)"}],
            "mark": {"type": "point", "size": 60, "strokeWidth": 1.8, "color": ORANGE,
                     "fill": ORANGE, "opacity": 1},
            "encoding": {
                "y": y,
                "x": {"field": "odds_ratio", **x},
                "fillOpacity": {
                    "field": "told",
                    "type": "nominal",
                    "legend": None,
                    "scale": {"domain": ["no", "yes"], "range": [0, 1]},
                },
                "tooltip": _tooltip(),
            },
        },
    ]  # fmt: skip
    if any(v["why"] is not None for v in values):
        layers.append(
            {
                "transform": [{"filter": "isValid(datum.why)"}],
                "mark": {"type": "text", "align": "left", "fontSize": 10, "limit": 200},
                "encoding": {"y": y, "x": {"value": 4}, "text": {"field": "why"}},
            }
        )
    return {"width": 260, "height": max(240, ROW * len(values)), "layer": layers}
