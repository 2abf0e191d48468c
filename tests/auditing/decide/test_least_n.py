"""How many examples a margin needs, against Tango's interval itself."""

from __future__ import annotations

import numpy as np
import pytest

from fairweight.auditing.decide.starter import MARGINS, least_n, likely_n
from fairweight.auditing.decide.starter import starter_policy
from fairweight.auditing.intervals.tango import tango
from fairweight.auditing.result import GATE_ALPHA
from fairweight.specs.read_policy import read_policy


def passes(n: int, margin: float, lost: int = 0, gained: int = 0) -> bool:
    low, _ = tango(n, lost, gained, 2 * GATE_ALPHA)
    return bool(low > -margin)


@pytest.mark.parametrize("margin", MARGINS)
def test_identical_predictions_pass_from_the_least_n_on(margin: float) -> None:
    n = least_n(margin)
    assert passes(n, margin)
    assert not passes(n - 1, margin)


def test_two_points_need_133() -> None:
    """z² = 1.6449² = 2.7055; 2.7055 × (1 / 0.02 − 1) = 132.57."""
    assert least_n(0.02) == 133


@pytest.mark.parametrize("margin", [0.01, 0.02, 0.05])
def test_the_likely_n_passes_four_times_in_five(margin: float) -> None:
    n = likely_n(margin, 0.05)
    rng = np.random.default_rng(0)
    draws = rng.multinomial(n, [0.025, 0.025, 0.95], size=4000)
    low, _ = tango(n, draws[:, 0], draws[:, 1], 2 * GATE_ALPHA)
    assert 0.75 < np.mean(low > -margin) < 0.86


def test_the_starter_is_a_policy_and_holds_the_table() -> None:
    import tomllib

    text = starter_policy()
    policy = read_policy(tomllib.loads(text))
    assert policy.confirmatory() == (("accuracy", "group"), ("recall", "class"))
    for margin in MARGINS:
        assert any(
            line.split()[1:3] == [f"{margin:g}", f"{least_n(margin):,}"]
            for line in text.splitlines()
            if line.startswith("#   ")
        )


def test_the_commented_rules_of_the_starter_are_rules_too() -> None:
    import tomllib

    lines = []
    for line in starter_policy().splitlines():
        inside = line.removeprefix("# ")
        commented = line.startswith("# ") and ("[[rule]]" in line or " = " in inside[:20])
        lines.append(inside if commented else line)
    policy = read_policy(tomllib.loads("\n".join(lines)))
    assert [rule.metric for rule in policy.rule] == ["accuracy", "recall", "fnr", "group_gap"]
    assert policy.require_groups == ("sex=Female", "sex=Male")
