"""FW-4 and IO-F6, and the sentences about what a mitigation did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.result import AuditResult
from fairweight.auditing.schema import column_names
from fairweight.report.explanation_sentences import mitigation_sentences
from fairweight.report.figures import draw


def override_rows(variant: str) -> pd.DataFrame:
    rows = [
        {"variant": variant, "source": source, "metric": metric, "group": group, "budget": budget,
         "value": 0.05 - budget / 10, "low": 0.01, "high": 0.09, "random": 0.05, "status": "ok",
         "random_low": 0.02, "random_high": 0.08}
        for source in ("dense", "human")
        for metric, group in (("accuracy", None), ("bias_amplification", "sex"))
        for budget in (0.0, 0.1, 0.2)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(column_names("override_curves")))


def cascade_rows(variant: str, cost: float) -> pd.DataFrame:
    rows = [
        {"variant": variant, "part": part, "metric": "worst_group_shift", "group": "sex",
         "threshold": t, "share_deferred": t, "cost_ms": cost + t, "value": t / 10 - 0.1,
         "low": -0.2, "high": 0.0, "recommended": t == 0.5, "status": "ok"}
        for part in ("choosing", "judging")
        for t in (0.0, 0.5, 1.0)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(column_names("cascade_curve")))


def with_tables(audit: AuditResult, **tables: pd.DataFrame) -> AuditResult:
    return replace(audit, explanations={**audit.explanations, **tables})


def values(panel: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = panel["layer"][0]["data"]["values"]
    return found


def test_cascade_and_overrides_stand_side_by_side(explained: AuditResult) -> None:
    name = explained.variants[0]
    made = with_tables(
        explained, cascade_curve=cascade_rows(name, 3.0), override_curves=override_rows(name)
    )
    spec = draw("FW-4", made).spec
    assert spec is not None
    cascade, *overrides = spec["concat"]
    assert len(overrides) == 2
    assert cascade["layer"][0]["encoding"]["x"]["title"] == "cascade: ms per input"
    (used,) = cascade["layer"][2]["data"]["values"]
    assert (used["rows"], used["cost"], used["value"]) == ("judging", 3.5, pytest.approx(-5))
    random = [v for v in values(overrides[0]) if v["choice"] == "random"]
    assert {v["value"] for v in random} == {5.0}
    assert draw("FW-4", made, explained.variants[-1]).reason or len(explained.variants) == 1


def test_what_was_not_judged_has_no_panel_and_a_cut_is_told(explained: AuditResult) -> None:
    name = explained.variants[0]
    whole = cascade_rows(name, 3.0)
    unjudged = whole[whole["part"] == "choosing"].assign(group="age")
    many = [whole.assign(group=f"column {i}") for i in range(14)]
    for frames, panels, title in (
        ([whole, unjudged], 1, ""),
        (many, 12, "; the first 12 of 14 panels"),
    ):
        rows = pd.concat(frames, ignore_index=True)
        spec = draw("FW-4", replace(explained, explanations={"cascade_curve": rows})).spec
        assert spec is not None
        assert len(spec["concat"]) == panels
        assert spec["title"] == f"{name} against {explained.baseline}{title}"


def test_without_latencies_the_share_is_drawn(explained: AuditResult) -> None:
    name = explained.variants[0]
    made = with_tables(explained, cascade_curve=cascade_rows(name, np.nan))
    spec = draw("FW-4", made).spec
    assert spec is not None
    assert "sent to the dense model" in spec["concat"][0]["layer"][0]["encoding"]["x"]["title"]


def test_human_and_dense_labels_have_panels(explained: AuditResult) -> None:
    made = with_tables(explained, override_curves=override_rows(explained.variants[0]))
    spec = draw("IO-F6", made).spec
    assert spec is not None
    titles = [panel["title"]["text"] for panel in spec["concat"]]
    assert titles == ["sex: human labels", "sex: dense labels"]
    assert [v["budget"] for v in values(spec["concat"][0])] == pytest.approx([0, 10, 20])


def test_without_tables_the_reason_is_said(result: AuditResult) -> None:
    assert draw("FW-4", result).reason == "neither a cascade nor overrides were tried"
    assert draw("IO-F6", result).reason == "no overrides were tried"


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
    assert "it helps, threshold bias" in helped
    assert "TCB 0.600 → 0.700" in helped
    assert "worse in 1 of 1 comparison by group" in worse
    assert "sex=f" in worse
    assert dense.endswith("against dense: no group or class is shown to be worse in 1 comparison.")


@pytest.mark.parametrize(
    ("verdict", "words"),
    [("worse", "it does not help"), ("cannot tell", "it is not shown to help")],
)
def test_where_it_does_not_help_it_is_said(verdict: str, words: str) -> None:
    assert words in said(change("tcb", "overall", verdict))[0]
