"""IO-F3: attributes trained singly against trained jointly, by sparsity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import variant_of
from fairweight.report.figures.attribute_rows import as_they_are, at, attributes, many
from fairweight.report.figures.parts import label
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.setting_lines import setting_panel, shared_variants

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

METRICS: dict[str, float | None] = {"accuracy": None, "uncertainty": None, "tcb": 1.0}
BIAS = "bias_amplification"
BACKDOOR = "backdoor"  # the group column of marked examples


@figure(
    "IO-F3",
    title="Single against joint training",
    caption=(
        "A column is an attribute, a line a way to train it: by itself, with all others, or with "
        "one other. Points are means over members, with intervals over examples (of these "
        "models); variants stand in the order of their sparsity. TCB: 1 is as often as true. "
        "Settings also differ in how long they were trained: an association, not a cause."
    ),
    explains=True,
    once=True,
)
def single_and_joint(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    found = attributes(result, "settings")
    if isinstance(found, Absent):
        return found
    found = as_they_are(found)
    marked = set(found.loc[found["category"] == BACKDOOR, "setting"])
    clean = found[~found["setting"].isin(marked)]
    several = clean.groupby("task", sort=False)["setting"].nunique()
    tasks = [str(name) for name, n in several.items() if n > 1]
    if not tasks:
        return Absent("no attribute was trained in two settings")
    clean = clean[clean["task"].isin(tasks)]
    settings = list(dict.fromkeys(clean["setting"]))
    # The category that most can be told about stands for all.
    leaning = clean.loc[(clean["metric"] == BIAS) & clean["value"].notna(), "category"]
    category = None if leaning.empty else leaning.mode().iloc[0]
    rows = [
        {"hconcat": [_panel(clean, name, metric, None, rule, settings) for name in tasks]}
        for metric, rule in METRICS.items()
    ]
    if category is not None:
        rows.append(
            {"hconcat": [_panel(clean, name, BIAS, str(category), 0.0, settings) for name in tasks]}
        )
    return {
        "title": f"{many(len(settings), 'setting')}, {many(len(tasks), 'attribute')}",
        "description": (
            f"Accuracy, uncertainty, TCB and bias amplification of {', '.join(map(label, tasks))} "
            f"against sparsity, a line for each of {many(len(settings), 'setting')}: "
            f"{', '.join(map(label, settings))}."
        ),
        "vconcat": rows,
    }


def _panel(
    frame: pd.DataFrame,
    task: str,
    metric: str,
    category: str | None,
    rule: float | None,
    settings: list[str],
) -> Spec:
    own = frame[frame["task"] == task]
    words = label(task) if category is None else f"{label(task)}: {label(category)}"
    order = shared_variants(own)
    return setting_panel(at(own, metric, category), metric, order, settings, words, rule=rule)
