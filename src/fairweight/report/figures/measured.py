"""A value as figures show it: both intervals, what retraining gives, or why it is missing.

Thick intervals speak of these models, thin ones of the method, where members are a sample too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairweight.auditing.result import Scope, at_task, records
from fairweight.base.wording import missing, real, text
from fairweight.report.figures.parts import value
from fairweight.report.figures.registry import Spec
from fairweight.report.figures.theme import GREY
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

Side: TypeAlias = Literal["baseline", "compressed"]
Row: TypeAlias = dict[str, Any]
Pair: TypeAlias = tuple[Row, Row | None]  # the row of these models, and that of the method

UNDEFINED = "undefined in the data"  # the engine's reason where the metric's own says more
SCOPES: tuple[Scope, Scope] = ("model", "method")
_PREFIX = "not_estimable: "
_COLUMNS = (
    "variant", "metric", "group", "class", "n", "baseline", "baseline_low", "baseline_high",
    "compressed", "compressed_low", "compressed_high", "shift", "sim_low", "sim_high",
    "noise_floor", "debiased", "ci_low", "ci_high", "status",
)  # fmt: skip


def pairs(
    result: AuditResult, variant: str, metric: str, by: str, task: str | None = None
) -> dict[str | None, Pair]:
    """Rows of one metric by class or group (or overall, under None), each with its method's row."""
    return pairs_of(result, (variant,), metric, by, task)[variant]


def pairs_of(
    result: AuditResult, variants: Sequence[str], metric: str, by: str, task: str | None = None
) -> dict[str, dict[str | None, Pair]]:
    """The same of several variants, read at once: reading each alone takes a report seconds."""
    found: dict[tuple[str, Scope], dict[str | None, Row]] = {}
    for scope in SCOPES:
        places = [result.places.get((variant, metric, by, scope), ()) for variant in variants]
        rows = result.results.take([place for own in places for place in own])
        for row in records(at_task(rows, result, task), _COLUMNS):
            name = text(row[by]) if by in ("class", "group") else None
            found.setdefault((row["variant"], scope), {})[name] = row
    return {
        variant: {
            name: (row, found.get((variant, "method"), {}).get(name))
            for name, row in found.get((variant, "model"), {}).items()
        }
        for variant in variants
    }


def measured(pair: Pair, side: Side, scale: float = 100.0) -> dict[str, Any]:
    """The value of one side with its intervals, its n and, if there is none, the reason."""
    row, method = pair
    own = value(row[side], scale)
    wide = {} if method is None else method
    return {
        "value": own,
        "n": value(row["n"]),
        "low": value(row[f"{side}_low"], scale),
        "high": value(row[f"{side}_high"], scale),
        "wide_low": value(wide.get(f"{side}_low"), scale),
        "wide_high": value(wide.get(f"{side}_high"), scale),
        "why": why_missing(row) if own is None else None,
    }


def retrained(pair: Pair, scale: float = 100.0) -> dict[str, float | None]:
    """Where retraining alone could have put a share: the baseline's, and the floor either way.

    >>> retrained(({"baseline": 0.01, "noise_floor": 0.02}, None))
    {'floor_low': 0.0, 'floor_high': 3.0}
    """
    row, _ = pair
    base, floor = real(row["baseline"]), real(row["noise_floor"])
    if missing(base) or missing(floor):
        return {"floor_low": None, "floor_high": None}
    low, high = max(0.0, base - floor), min(1.0, base + floor)
    return {"floor_low": value(low, scale), "floor_high": value(high, scale)}


def why_missing(row: Row) -> str:
    """Why a row has no value, in the words of its status or of its metric.

    >>> why_missing({"status": "not_estimable: no scores", "metric": "auc"})
    'no scores'
    >>> why_missing({"status": "not_estimable: undefined in the data", "metric": "precision"})
    'the class is never predicted'
    """
    status = (text(row["status"]) or "").removeprefix(_PREFIX)
    if status != UNDEFINED:
        return status if status and status != "ok" else "no value"
    from fairweight.auditing.metrics.registry import metric

    return metric(str(row["metric"])).undefined.split(";")[0].split(" (")[0]


def left_blank(values: list[dict[str, Any]]) -> str:
    """What a title says about missing values; empty when there are none.

    >>> left_blank([{"why": "no examples"}, {"why": None}, {"why": "no examples"}])
    '×: 2 values are missing (no examples)'
    """
    reasons = [v["why"] for v in values if v["why"] is not None]
    if not reasons:
        return ""
    many = "1 value is" if len(reasons) == 1 else f"{count(len(reasons))} values are"
    return f"×: {many} missing ({'; '.join(dict.fromkeys(reasons))})"


def sizes(values: list[dict[str, Any]], of: str) -> str:
    """How many examples stand behind the values of a figure.

    >>> sizes([{"n": 900.0}, {"n": 1100.0}], "class"), sizes([{"n": 900.0}], "class")
    ('n 900 to 1,100 per class', 'n 900 per class')
    """
    known = [v["n"] for v in values if v["n"] is not None]
    if not known:
        return ""
    least, most = count(min(known)), count(max(known))
    return f"n {least if least == most else f'{least} to {most}'} per {of}"


def whiskers(
    values: list[dict[str, Any]], axis: Literal["x", "y"], place: Spec, axis_of: Spec
) -> list[Spec]:
    """Layers of the grey band, the thin and the thick interval, as far as any value has them.

    Parameters
    ----------
    place
        The other encodings: where on the other axis, and the colour.
    axis_of
        Title and scale of the axis along which the intervals lie.
    """

    def span(low: str, high: str, colored: bool, **mark: Any) -> Spec:
        there = place if colored else {k: v for k, v in place.items() if k != "color"}
        return {
            "transform": [{"filter": f"isValid(datum.{low}) && isValid(datum.{high})"}],
            "mark": {"type": "rule", "clip": True, **mark},
            "encoding": {
                **there,
                axis: {"field": low, "type": "quantitative", **axis_of},
                f"{axis}2": {"field": high},
            },
        }

    layers = {
        "floor_low": span("floor_low", "floor_high", False, strokeWidth=9, color=GREY, opacity=0.3),
        "wide_low": span("wide_low", "wide_high", True, strokeWidth=1.2),
        "low": span("low", "high", True, strokeWidth=4, opacity=0.55),
    }
    return [layer for end, layer in layers.items() if any(v[end] is not None for v in values)]


def tooltip(first: list[tuple[str, str]], form: str, unit: str) -> list[Spec]:
    """What a reader sees on pointing at a value: its names, the value, both intervals, n."""
    names = [{"field": field, "type": "nominal", "title": title} for field, title in first]
    numbers = [
        {"field": field, "type": "quantitative", "format": shape, "title": title}
        for field, shape, title in (
            ("value", form, unit),
            ("low", form, "these models from"),
            ("high", form, "to"),
            ("wide_low", form, "the method from"),
            ("wide_high", form, "to "),
            ("n", ",.0f", "n"),
        )
    ]
    return [*names, *numbers]
