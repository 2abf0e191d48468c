"""IO-F6: bias amplification against the budget of overrides, with human and with dense labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.report.figures.curve_bands import HEIGHT, WIDTH, banded
from fairweight.report.figures.explained import explained
from fairweight.report.figures.parts import label, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import AMBER, BLUE, GREEN, ORANGE, PURPLE, SKY
from fairweight.report.numbers import count

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

SOURCES = {"human": "human labels", "dense": "dense labels"}


@figure(
    "IO-F6",
    title="Overrides with human and dense labels",
    caption=(
        "Worst-case bias amplification of a column (0 is best) when the predictions of the "
        "examples that the dense model is least sure of are replaced, by human labels or by the "
        "dense model's. A line is a variant; dashed: a random choice of equal size, the mean over "
        "seeded draws. With several attributes, the mean over those that are overridden and lean "
        "to a side. Bands: 95 % bootstrap intervals over examples (clusters). Without annotation, "
        "the labels of the table stand for human ones: people who are always right."
    ),
    explains=True,
    once=True,
)
def override_curves(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    found = explained(result, "override_curves", None, task)
    if isinstance(found, Absent):
        return found
    known = found[(found["metric"] == "bias_amplification") & found["value"].notna()]
    if known.empty:
        return Absent("bias amplification is not estimable in any column")
    panels = [
        _panel(known[(known["group"] == group) & (known["source"] == source)], group, words)
        for group in dict.fromkeys(known["group"])
        for source, words in SOURCES.items()
    ]
    names = ", ".join(label(name) for name in dict.fromkeys(known["variant"]))
    return {
        "title": f"bias amplification of {names}, against the share of overridden examples",
        "description": (
            f"Bias amplification of {names} against the share of examples that are overridden, in "
            f"{count(len(panels))} panels: human and dense labels, for every column."
        ),
        "concat": panels,
        "columns": 2,
        "resolve": {"scale": {"y": "shared"}},
    }


def _panel(own: pd.DataFrame, group: Any, words: str) -> Spec:
    values = [
        {
            "variant": label(row["variant"]),
            "budget": value(row["budget"], 100),
            **{n: value(row[n], 100) for n in ("value", "low", "high", "random")},
        }
        for row in records(own)
    ]
    x = {"field": "budget", "type": "quantitative", "title": "overridden examples, %"}
    color = {
        "field": "variant",
        "type": "nominal",
        "title": None,
        "scale": {"range": [ORANGE, BLUE, GREEN, PURPLE, SKY, AMBER]},
        "legend": {"symbolOpacity": 1},
    }
    tooltip = [
        {"field": "variant", "type": "nominal"},
        *({"field": n, "type": "quantitative", "format": ".3g"}
          for n in ("budget", "value", "low", "high", "random")),
    ]  # fmt: skip
    title = "bias amplification, points"
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "title": {"text": f"{label(group)}: {words}", "fontSize": 12},
        "layer": [
            *banded(values, x, title, color, tooltip),
            {
                "data": {"values": values},
                "mark": {"type": "line", "strokeDash": [5, 4], "strokeWidth": 1.5},
                "encoding": {
                    "x": x,
                    "y": {"field": "random", "type": "quantitative", "title": title},
                    "color": color,
                },
            },
        ],
    }
