"""PA-F3a: accuracy of every class against sparsity, coloured by its accuracy before pruning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import at_task, variant_of
from fairweight.base.wording import missing, real
from fairweight.report.figures.measured import Pair, pairs_of
from fairweight.report.figures.parts import label, labels, largest, selection, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.sparsity import NO_LEVELS
from fairweight.report.figures.techniques import technique_levels
from fairweight.report.numbers import count

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

CLASSES = 40
PANELS = 16
FEW = 6  # panels that are drawn large

Means = dict[tuple[str, str], float]  # (variant, class) → mean accuracy of the members


@figure(
    "PA-F3a",
    title="Accuracy of every class against sparsity",
    caption=(
        "A line is a class (mean over members), one panel per technique; the colour is its "
        "accuracy before pruning, drawn at sparsity 0. Thin: interval of these models. Lines that "
        "keep their order say that weak classes stay weak; lines that fan out, that classes pay "
        "differently."
    ),
    more=True,
    explains=True,
    once=True,
)
def class_accuracy(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    levels = technique_levels(result)
    if not levels:
        return Absent(NO_LEVELS)
    means = _means(at_task(result.per_seed, result, task))
    classes = sorted({c for _, c in means}, key=lambda c: result.classes.index(c))
    if not classes:
        return Absent("there is no accuracy by class")
    limits = pairs_of(result, list(levels), "recall", "class", task)
    fall = [
        max((abs(means[v, c] - means[result.baseline, c]) for v in levels if (v, c) in means),
            default=0.0)
        if (result.baseline, c) in means else 0.0
        for c in classes
    ]  # fmt: skip
    kept = largest(classes, fall, CLASSES)
    names = dict(zip(kept, labels(kept), strict=True))
    techniques = list(dict.fromkeys(level.method for level in levels.values()))
    panels = []
    for technique in techniques[:PANELS]:
        own = {v: level.sparsity for v, level in levels.items() if level.method == technique}
        panels.append((technique, _values(result.baseline, own, names, means, limits)))
    before = [means[result.baseline, c] for c in kept if (result.baseline, c) in means]
    return {
        "title": "; ".join(
            part
            for part in (
                f"{count(len(kept))} classes",
                selection(len(kept), len(classes), "classes"),
                selection(len(panels), len(techniques), "techniques", "the first names"),
            )
            if part
        ),
        "description": (
            f"Accuracy of {count(len(kept))} classes against sparsity under "
            f"{count(len(panels))} techniques, coloured by accuracy in {label(result.baseline)}"
            + (f", which lies between {min(before):.1%} and {max(before):.1%}." if before else ".")
        ),
        "concat": [_panel(text, values, small=len(panels) > FEW) for text, values in panels],
        "columns": 2 if len(panels) in (2, 4) else 3 if len(panels) <= FEW else 4,
        "resolve": {"scale": {"y": "shared"}},
    }


def _means(seeds: pd.DataFrame) -> Means:
    own = seeds[(seeds["metric"] == "recall") & (seeds["by"] == "class")]
    found = own[own["value"].notna()].groupby(["variant", "class"], sort=False)["value"].mean()
    names, classes = (found.index.get_level_values(i) for i in (0, 1))
    return {
        (str(v), str(c)): float(mean)
        for v, c, mean in zip(names, classes, found.tolist(), strict=True)
    }


def _values(
    baseline: str,
    levels: dict[str, float],
    names: dict[str, str],
    means: Means,
    limits: dict[str, dict[str | None, Pair]],
) -> list[dict[str, Any]]:
    made = []
    for c, text in names.items():
        before = value(means.get((baseline, c)), 100)
        if before is not None:
            at_zero = {"class": text, "sparsity": 0.0, "value": before, "before": before}
            made.append({**at_zero, "low": None, "high": None, "n": None})
        for variant, sparsity in levels.items():
            if (variant, c) not in means:
                continue
            pair = limits.get(variant, {}).get(c)
            row = {} if pair is None else pair[0]
            made.append(
                {
                    "class": text,
                    "sparsity": sparsity,
                    "value": value(means[variant, c], 100),
                    "before": before,
                    "low": value(real(row.get("compressed_low")), 100),
                    "high": value(real(row.get("compressed_high")), 100),
                    "n": None if missing(row.get("n")) else value(row["n"]),
                }
            )
    return made


def _panel(technique: str, values: list[dict[str, Any]], *, small: bool) -> Spec:
    x = {"field": "sparsity", "type": "quantitative", "title": "sparsity", "axis": {"tickCount": 5}}
    y = {"type": "quantitative", "title": "accuracy of the class, %", "scale": {"zero": False}}
    color = {
        "field": "before",
        "type": "quantitative",
        "title": "accuracy before pruning, %",
        "scale": {"scheme": "viridis"},
    }
    detail = {"field": "class", "type": "nominal"}
    tooltip = [
        {"field": "class", "type": "nominal"},
        {"field": "sparsity", "type": "quantitative"},
        *(
            {"field": field, "type": "quantitative", "format": ".1f", "title": words}
            for field, words in (("value", "accuracy, %"), ("low", "from"), ("high", "to"),
                                 ("before", "before pruning, %"))
        ),
        {"field": "n", "type": "quantitative", "format": ",.0f"},
    ]  # fmt: skip
    at = {"x": x, "y": {"field": "value", **y}, "color": color}
    return {
        "title": {"text": label(technique), "fontSize": 12},
        **({"width": 170, "height": 150} if small else {"width": 240, "height": 190}),
        "data": {"values": values},
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
                "mark": {"type": "rule", "opacity": 0.35},
                "encoding": {**at, "y": {"field": "low", **y}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "line", "strokeWidth": 1.4},
                "encoding": {**at, "detail": detail},
            },
            {
                "mark": {"type": "circle", "size": 22, "opacity": 1},
                "encoding": {**at, "tooltip": tooltip},
            },
        ],
    }
