"""SG-F6: precision of every group over the highest precision of any, over all variants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import variant_of
from fairweight.report.figures.group_panels import Shown, group_panels
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import BLUE

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

_RATIO = Shown({"ppv_ratio": ("PPV ratio", BLUE)}, "PPV ratio", "PPV ratio", 1.0, ".3f", False, 1.0)


@figure(
    "SG-F6",
    title="PPV ratio per group",
    caption=(
        "Precision of the positive class (PPV) in a group over the highest of any group of its "
        "column: 1 is the best-off group. The paper calls it disparate impact, a name that "
        "elsewhere means a ratio of selection rates. Thick: interval of these models; thin: of the "
        "method. Grey band: where retraining alone could have put it. The ring is the variant of "
        "this section. With several members their mean may stay below 1 in every group, because "
        "the best-off group differs between them."
    ),
    more=True,
)
def ppv_ratio_per_group(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    return group_panels(result, variant_of(result, variant), task, _RATIO)
