"""IO-F4: bias amplification with backdoors, by sparsity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import variant_of
from fairweight.report.figures.attribute_rows import as_they_are, at, attributes, many
from fairweight.report.figures.io_f3 import BACKDOOR, BIAS
from fairweight.report.figures.parts import label
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.setting_lines import by_sparsity, setting_panel

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


@figure(
    "IO-F4",
    title="Bias amplification with backdoors",
    caption=(
        "How much more the positive predictions lean to marked examples than the positive labels "
        "do, where a mark went with the label in training and goes with nothing in the test "
        "data: whatever leans was learnt from the mark. Points are means over members, with "
        "intervals over examples (of these models); variants stand in the order of their sparsity."
    ),
    explains=True,
    once=True,
)
def backdoors(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    found = attributes(result, "settings")
    if isinstance(found, Absent):
        return found
    marked = at(as_they_are(found), BIAS, BACKDOOR)
    marked = marked[marked["value"].notna()]
    if marked.empty:
        return Absent("no setting has marked examples")
    settings = list(dict.fromkeys(marked["setting"]))
    tasks = list(dict.fromkeys(marked["task"]))
    panels = [
        setting_panel(own, BIAS, by_sparsity(own), settings, label(name), rule=0)
        for name in tasks
        if len(own := marked[marked["task"] == name])
    ]
    return {
        "title": f"{many(len(settings), 'backdoor')}, {many(len(tasks), 'attribute')}",
        "description": (
            f"Bias amplification towards marked examples against sparsity, for "
            f"{', '.join(map(label, tasks))} and the marks {', '.join(map(label, settings))}."
        ),
        "concat": panels,
        "columns": 2,
    }
