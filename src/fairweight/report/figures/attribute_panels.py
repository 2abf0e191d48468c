"""Boxes over attributes, one for every variant in the order of its sparsity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.report.figures.attribute_rows import WORDS, box, in_order
from fairweight.report.figures.boxes import Placed, box_panel
from fairweight.report.figures.parts import labels
from fairweight.report.figures.registry import Spec
from fairweight.report.figures.theme import BLUE

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

_SERIES = "attributes"


def by_variant(
    result: AuditResult, frame: pd.DataFrame, metric: str, *, rule: float | None = None
) -> Spec | None:
    """The panel of one metric; None where no variant has a value."""
    order = in_order(result, frame)
    placed = [
        Placed(place, _SERIES, held)
        for place, variant in zip(labels(order), order, strict=True)
        if (held := box(frame, variant, metric)) is not None
    ]
    if not placed:
        return None
    return box_panel(placed, WORDS[metric][0], {_SERIES: BLUE}, rule=rule)
