"""Numbers of whole variants against their sparsity: what SS-F2 and SG-F3 share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import at_task, records
from fairweight.base.wording import missing, real
from fairweight.report.figures.parts import label, value
from fairweight.report.figures.registry import Spec
from fairweight.report.figures.theme import AMBER, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY
from fairweight.report.numbers import count, is_share

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

NO_LEVELS = "the variants table names fewer than two levels of sparsity"
_METHOD_COLUMNS = ("method", "treatment")
LEGEND_COLUMNS = 4
_DASHES = ([1, 0], [6, 3], [2, 2])


@dataclass(frozen=True)
class Level:
    """Where a variant stands on the axis, and on which line."""

    sparsity: float
    method: str


def sparsity_levels(result: AuditResult) -> dict[str, Level]:
    """The sparsity (mean over members) and method of every audited variant; none below two levels.

    A variant without a sparsity in the variants table is left out.
    """
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
        line = "compressed" if missing(given) else str(given)
        found[own] = Level(sparsity, line + _taught(rows))
    return found if len({level.sparsity for level in found.values()}) > 1 else {}


def _taught(rows: pd.DataFrame) -> str:
    """A method with a teacher is a line of its own."""
    given = rows["distillation"].iloc[0] if "distillation" in rows.columns else None
    return "" if missing(given) else f", {given}"


def point(
    row: dict[str, Any],
    level: Level,
    *,
    this: bool,
    corrected: bool = False,
    method: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Where a variant stands in one panel, with its interval and what retraining alone gives.

    Parameters
    ----------
    this
        Whether it is the variant that the figure is about.
    corrected
        Take the value corrected for noise.
    method
        The row of scope `method`, whose wider interval is drawn thin.
    """
    share = is_share(row["metric"])
    scale = 100.0 if share else 1.0
    found = row["debiased"] if corrected else row["compressed"]
    low, high = ("compressed_low", "compressed_high") if share else ("ci_low", "ci_high")
    floor, before = real(row["noise_floor"]), real(row["baseline"])
    known = not missing(floor) and not corrected
    wide = {} if method is None else method
    return {
        "variant": label(row["variant"]),
        "method": label(level.method),
        "sparsity": level.sparsity,
        "value": value(found, scale),
        "n": value(row["n"]),
        "low": value(row[low], scale),
        "high": value(row[high], scale),
        "wide_low": value(wide.get(low), scale),
        "wide_high": value(wide.get(high), scale),
        "baseline": value(before, scale) if share else None,
        "floor_low": value(before - floor if share else 0.0, scale) if known else None,
        "floor_high": value(before + floor if share else floor, scale) if known else None,
        "this": this,
    }


def member_values(
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
    scale = 100.0 if is_share(metric) else 1.0
    return [
        {
            "method": label(levels[row["variant"]].method),
            "sparsity": levels[row["variant"]].sparsity,
            "value": value(row["value"], scale),
        }
        for row in records(rows, ("variant", "value"))
    ]


def title_of(result: AuditResult, levels: dict[str, Level], name: str) -> str:
    """The title inside the figure: how many variants, and which one is ringed."""
    return f"{count(len(levels))} variants against {label(result.baseline)}; ring: {label(name)}"


def described(levels: dict[str, Level], name: str, what: str) -> str:
    """The alternative text: what is drawn, over which levels."""
    found = [level.sparsity for level in levels.values()]
    return (
        f"{what} of {count(len(levels))} variants against their sparsity, from {min(found):g} to "
        f"{max(found):g}; {label(name)} is ringed."
    )


def sparsity_panel(
    points: list[dict[str, Any]],
    ticks: list[dict[str, Any]],
    title: str,
    levels: dict[str, Level],
) -> Spec:
    """One metric: points with intervals, joined within a method, members as ticks."""
    x = {
        "field": "sparsity",
        "type": "quantitative",
        "title": "sparsity",
        "scale": {"zero": False, "padding": 16},
    }
    methods = list(dict.fromkeys(label(level.method) for level in levels.values()))
    colors = [ORANGE, BLUE, GREEN, PURPLE, SKY, AMBER]
    color: Spec = {
        "field": "method",
        "type": "nominal",
        "title": None,
        "scale": {
            "domain": methods,
            "range": [colors[i % len(colors)] for i in range(len(methods))],
        },
        "legend": None if len(methods) < 2 else {"columns": LEGEND_COLUMNS},
    }

    # More methods than colours: a second round of them is dashed.
    dash: Spec = {}
    if len(methods) > len(colors):
        color["legend"] = {
            "columns": LEGEND_COLUMNS,
            "symbolType": "stroke",
            "symbolStrokeWidth": 2,
            "symbolSize": 300,
        }
        rounds = [_DASHES[i // len(colors) % len(_DASHES)] for i in range(len(methods))]
        dash["strokeDash"] = {
            "field": "method",
            "type": "nominal",
            "title": None,
            "scale": {"domain": methods, "range": rounds},
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
    wide = [p for p in points if p["wide_low"] is not None and p["wide_high"] is not None]
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
            "encoding": {**at("value"), "color": color, **dash},
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
    if wide:
        layers.append(
            {
                "data": {"values": wide},
                "mark": {"type": "rule", "strokeWidth": 1.2},
                "encoding": {**at("wide_low", "wide_high"), "color": color},
            }
        )
    layers += [
        {
            "data": {"values": spans},
            "mark": {"type": "rule", "strokeWidth": 4 if wide else 2},
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
                    {"field": "n", "type": "quantitative", "format": ",.0f", "title": "n"},
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


def by_level(result: AuditResult) -> dict[str, float | None]:
    """Every variant in the order of its sparsity; those without one come last, as given."""
    import pandas as pd

    table = result.variants_table
    found: dict[str, float | None] = dict.fromkeys(result.variants)
    if table is not None and {"variant", "sparsity"} <= set(table.columns):
        names = table["variant"].astype(str)
        for name in found:
            own = pd.to_numeric(table.loc[names == name, "sparsity"], errors="coerce").mean()
            found[name] = None if missing(real(own)) else float(own)
    order = sorted(found, key=lambda name: (found[name] is None, found[name] or 0.0))
    return {name: found[name] for name in order}
