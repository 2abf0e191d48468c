"""The assertion for other people's tests: what it lets through, what it stops, what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairweight.testing import assert_no_group_loses

N = 2000
LABEL = np.tile(["cat", "dog"], N // 2)
SEX = {"sex": np.where(np.arange(N) < 500, "F", "M")}


def wrong(first: int) -> Any:
    """Predictions that are wrong for half of the first so many examples."""
    made = LABEL.copy()
    made[:first] = "cat"
    return made


def test_an_unchanged_model_passes() -> None:
    verdict = assert_no_group_loses(LABEL, {"dense": LABEL, "int8": LABEL}, sensitive_features=SEX)
    assert verdict.passed


def test_a_group_that_loses_fails_by_name() -> None:
    with pytest.raises(AssertionError) as failure:
        assert_no_group_loses(LABEL, {"dense": LABEL, "int8": wrong(300)}, sensitive_features=SEX)
    first, *rows = str(failure.value).splitlines()
    assert first == "int8 fails: accuracy may lose at most 2 points."
    assert any("int8, sex=F" in row for row in rows)


def test_too_few_examples_are_no_pass_unless_allowed() -> None:
    few = slice(0, N, 20)
    given: dict[str, Any] = {
        "y_true": LABEL[few],
        "y_pred": {"dense": LABEL[few], "int8": LABEL[few]},
        "sensitive_features": {"sex": SEX["sex"][few]},
    }
    with pytest.raises(AssertionError, match="int8 cannot be judged"):
        assert_no_group_loses(**given)
    assert assert_no_group_loses(**given, allow_cannot_tell=True).exit_code == 3


def test_another_metric_and_intersections() -> None:
    groups = {**SEX, "age": np.where(np.arange(N) % 3 == 0, "old", "young")}
    with pytest.raises(AssertionError, match=r"sex=F & age=(old|young)"):
        assert_no_group_loses(
            LABEL,
            {"dense": LABEL, "int8": wrong(300)},
            sensitive_features=groups,
            groups=["sex", "sex*age"],
            metric="error_rate",
        )
