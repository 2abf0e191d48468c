"""The tables of explanations as figures read them."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from fairweight.auditing.result import AuditResult
from fairweight.errors import InputError
from fairweight.report.figures import draw

from .specs import cell


def test_a_variant_without_rows_has_a_reason(explained: AuditResult) -> None:
    frames = {
        name: frame[frame["variant"] == "int8"] if "variant" in frame.columns else frame
        for name, frame in explained.explanations.items()
    }
    audit = replace(explained, explanations=frames)
    assert draw("HK-F2", audit, "int8").spec is not None
    reason = draw("HK-F2", audit, "pruned-90").reason
    assert reason == "the groups among exemplars were not counted for pruned-90"


def test_a_table_of_tasks_is_read_by_task(explained: AuditResult) -> None:
    frame = explained.explanations["exemplar_counts"]
    both = pd.concat([frame.assign(task="Blond"), frame.assign(task="Smiling", n_exemplars=7)])
    audit = replace(explained, tasks=("Blond", "Smiling"), explanations={"exemplar_counts": both})
    first = draw("HK-T1", audit).spec
    smiling = draw("HK-T1", audit, None, "Smiling").spec
    assert first is not None
    assert smiling is not None
    assert cell(first, "int8", "modal")["text"] == "40 (1.00 %)"
    assert cell(smiling, "int8", "modal")["text"] == "7 (1.00 %)"
    with pytest.raises(InputError, match="Task 'Old' does not exist"):
        draw("HK-T1", audit, None, "Old")
