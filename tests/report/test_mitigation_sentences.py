"""The sentences about what a mitigation did."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from fairweight.auditing.schema import column_names
from fairweight.report.explanation_sentences import mitigation_sentences


def change(metric: str, by: str, verdict: str, against: str = "small", **more: Any) -> dict:
    return {"variant": "small+thresholds", "against": against, "metric": metric, "by": by,
            "before": 0.6, "after": 0.7, "shift": 0.1, "low": 0.05, "high": 0.15,
            "verdict": verdict, **more}  # fmt: skip


def said(*rows: dict) -> list[str]:
    return mitigation_sentences(
        pd.DataFrame(rows, columns=list(column_names("mitigation"))), "thresholds"
    )


def test_what_helps_and_who_pays_is_said() -> None:
    helped, worse, dense = said(
        change("tcb", "overall", "better"),
        change("accuracy", "group", "worse", group="sex=f", shift=-0.1, low=-0.15, high=-0.05),
        change("accuracy", "group", "cannot tell", "dense", group="sex=f"),
    )
    assert "it helps: threshold bias (TCB) (best at 1) improves in 1 of 1 rows" in helped
    assert "(TCB) 0.600 → 0.700" in helped
    assert "worse in 1 of 1 comparison by group" in worse
    assert "sex=f" in worse
    assert dense.endswith("against dense: no group or class got clearly worse (1 comparison).")


@pytest.mark.parametrize(
    ("verdict", "words"),
    [("worse", "it does not help"), ("cannot tell", "no clear improvement of threshold bias")],
)
def test_where_it_does_not_help_it_is_said(verdict: str, words: str) -> None:
    assert words in said(change("tcb", "overall", verdict))[0]
