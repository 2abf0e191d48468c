"""The tables of explanations as figures read them."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from fairweight.auditing.result import AuditResult
from fairweight.errors import InputError
from fairweight.report.figures import draw
from fairweight.report.figures.inputs import optional_table, shift_values

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


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [((-0.03, -0.01), "loses"), ((0.01, 0.03), "gains"), ((-0.01, 0.01), "undecided")],
)
def test_a_shift_is_in_points_and_its_simultaneous_limits_decide(
    limits: tuple[float, float], verdict: str
) -> None:
    row = {"group": "a", "n": 100, "shift": -0.02, "ci_low": -0.025, "ci_high": -0.015,
           "sim_low": limits[0], "sim_high": limits[1], "noise_floor": 0.005}  # fmt: skip
    (made,) = shift_values([row], [row["group"]])
    assert (made["shift"], made["low"], made["high"]) == (-2.0, -2.5, -1.5)
    assert (made["floor_low"], made["floor_high"]) == (-0.5, 0.5)
    assert made["verdict"] == verdict
    (bare,) = shift_values([row | {"noise_floor": float("nan")}], [row["group"]])
    assert (bare["floor_low"], bare["floor_high"]) == (None, None)


def test_a_figure_can_do_without_a_table(explained: AuditResult, bare: AuditResult) -> None:
    assert optional_table(bare, "individuals") is None
    assert optional_table(explained, "individuals") is not None
