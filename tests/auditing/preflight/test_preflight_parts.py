"""Who is at risk before compression: ranks, limits, verdicts, and every way of not knowing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.exemplars.enrichment import partitions
from fairweight.auditing.intervals.proportion import wilson
from fairweight.auditing.prediction_matrix import Answers, from_arrays
from fairweight.auditing.preflight.evidence import mean_of, rarity
from fairweight.auditing.preflight.preflight import (
    AT_RISK,
    CANNOT_TELL,
    NOT_HIGHER,
    preflight,
)
from fairweight.auditing.schema import column_names

NOTHING = pd.DataFrame(columns=list(column_names("evidence")))


def evidence(value: float, *, level: str = "group", score: str = "error_rate") -> pd.DataFrame:
    """Four studies in which a score was worth about `value`."""
    rows = [
        (f"study {i}", level, "one", score, "rank_correlation", value + 0.01 * i, 3, "")
        for i in range(4)
    ]
    return pd.DataFrame(rows, columns=list(column_names("evidence")))


def dense(*, wrong_in_b: int = 12, **more: Any) -> Answers:
    """100 examples in a with 4 errors, 30 in b with 12; no scores, one member."""
    label = np.zeros(130, dtype=int)
    label[::2] = 1
    given = label.copy()
    for place in [*range(4), *range(100, 100 + wrong_in_b)]:
        given[place] = 1 - given[place]
    return from_arrays(label, {"dense": given}, groups={"g": ["a"] * 100 + ["b"] * 30}, **more)


def of(parts: pd.DataFrame, group: str, score: str = "error_rate") -> pd.Series:
    (row,) = parts[(parts["group"] == group) & (parts["score"] == score)].to_dict("records")
    return pd.Series(row)


def test_values_limits_and_ranks_by_hand() -> None:
    parts = preflight([dense()], NOTHING).parts
    assert tuple(parts.columns) == column_names("preflight")
    b = of(parts, "g=b")
    low, high = wilson(12, 30, modified=True)
    assert (b["value"], b["low"], b["high"]) == pytest.approx((0.4, float(low), float(high)))
    assert b["excess"] == pytest.approx(0.4 - 0.04)
    # Limits of the difference hold for both levels together: alpha / 2, Newcombe's.
    low, high = wilson([12, 4], [30, 100], 0.025, modified=True)
    assert b["excess_low"] == pytest.approx(0.36 - np.hypot(0.4 - low[0], high[1] - 0.04))
    assert (b["rank"], of(parts, "g=a")["rank"]) == (1, 2)


def test_without_evidence_nothing_can_be_told() -> None:
    parts = preflight([dense()], NOTHING).parts
    assert set(parts["verdict"]) == {CANNOT_TELL}
    assert of(parts, "g=b")["status"] == "no study has tried this score"


def test_with_evidence_the_group_that_stands_out_is_at_risk() -> None:
    found = preflight([dense()], evidence(0.6))
    assert of(found.parts, "g=b")["verdict"] == AT_RISK
    assert of(found.parts, "g=a")["verdict"] == NOT_HIGHER
    assert found.chosen["group"] == "error_rate"
    assert found.support["group"].n_studies == 4


def test_a_score_that_foretold_nothing_cannot_tell() -> None:
    found = preflight([dense()], evidence(-0.01))
    row = of(found.parts, "g=b")
    assert row["verdict"] == CANNOT_TELL
    assert "not foretell" in row["status"]


def test_few_examples_and_a_single_level_cannot_tell() -> None:
    small = dense()
    (column,) = small.columns
    code = column.code.copy()
    code[100:] = 0
    code[125:] = 1
    few = replace(small, columns=(replace(column, code=code),))
    assert of(preflight([few], evidence(0.6)).parts, "g=b")["status"] == "fewer than 10 examples"
    alone = replace(small, columns=(replace(column, values=("a",), code=np.zeros(130, np.int32)),))
    row = of(preflight([alone], evidence(0.6)).parts, "g=a")
    assert row["verdict"] == CANNOT_TELL
    assert row["status"] == "every example is in this group"


def test_few_clusters_cannot_tell() -> None:
    clustered = replace(dense(), cluster=np.arange(130) // 10)
    row = of(preflight([clustered], evidence(0.6)).parts, "g=b")
    assert (row["verdict"], row["status"]) == (CANNOT_TELL, "too few examples or clusters")


def test_no_scores_and_one_member_cannot_rank_examples() -> None:
    found = preflight([dense()], NOTHING)
    assert found.notes == ("Single examples cannot be ranked: one dense member and no scores.",)
    assert "example" not in found.chosen
    assert found.examples["rank"].isna().all()


def test_examples_are_ranked_by_the_score_at_hand() -> None:
    score = np.linspace(0.5, 1.0, 130)[:, None]
    found = preflight([dense(score={"dense": score})], NOTHING)
    assert found.chosen["example"] == "low_confidence"
    assert found.examples["example_id"].tolist()[:2] == [0, 1]
    assert found.examples["rank"].tolist()[:2] == [1, 2]


def test_attributes_stand_against_the_mean_of_the_others() -> None:
    tasks = [replace(dense(wrong_in_b=k), task=name) for k, name in ((0, "x"), (2, "y"), (20, "z"))]
    found = preflight(tasks, evidence(0.6, level="attribute"))
    rows = found.parts[found.parts["by"] == "attribute"].set_index("task")
    assert rows.loc["z", "value"] == pytest.approx(24 / 130)
    assert rows.loc["z", "excess"] == pytest.approx(24 / 130 - (4 / 130 + 6 / 130) / 2)
    assert rows["rank"].to_dict() == {"x": 3, "y": 2, "z": 1}
    assert rows["verdict"].to_dict() == {"x": NOT_HIGHER, "y": NOT_HIGHER, "z": AT_RISK}


def test_rarity_is_against_an_even_share_of_the_training_data() -> None:
    """10 of 100 in b, two levels: an even share would be 50, so it is 5 times rarer."""
    train = pd.DataFrame({"label": ["0", "0"], "g": ["a", "b"], "n": [90.0, 10.0]})
    answers = replace(dense(), train=train)
    by_group = partitions(answers)[1]
    found = rarity(answers, by_group, 0.05)
    assert found is not None
    assert found[1].value == pytest.approx(5)
    low, high = wilson(10, 100, modified=True)
    assert (found[1].low, found[1].high) == pytest.approx((1 / (2 * high), 1 / (2 * low)))
    row = of(preflight([answers], evidence(0.6, score="rarity")).parts, "g=b", "rarity")
    assert (row["n_train"], row["excess"], row["verdict"]) == (10, pytest.approx(4), AT_RISK)
    assert rarity(dense(), by_group, 0.05) is None


def test_means_of_fractions_are_linearised() -> None:
    score = np.array([0.1, 0.5, 0.3, np.nan])
    found = mean_of(score, np.array([True, True, True, True]), None, 0.05)
    error = np.std([0.1, 0.5, 0.3], ddof=1) / np.sqrt(3)
    assert found.value == pytest.approx(0.3)
    assert found.high == pytest.approx(min(1, 0.3 + 4.302652729911275 * error))
    assert np.isnan(mean_of(score, np.array([True, False, False, False]), None, 0.05).low)
