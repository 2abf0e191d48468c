"""How many examples a margin needs, against Tango's interval itself."""

from __future__ import annotations

import tomllib
from typing import Any

import numpy as np
import pytest

import fairweight as fw
from fairweight.auditing.gate.starter import (
    MARGINS,
    least_n,
    likely_margin,
    likely_n,
    starter_policy,
    toml_text,
)
from fairweight.auditing.intervals.proportion import tango
from fairweight.auditing.result import GATE_ALPHA, AuditResult
from fairweight.specs.policy import read_policy


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


@pytest.mark.parametrize(
    ("margin", "churn", "expected"),
    [
        (0.02, 0.01, 600), (0.02, 0.03, 1300), (0.02, 0.06, 2300),
        (0.05, 0.01, 160), (0.05, 0.03, 260), (0.05, 0.06, 400),
    ],
)  # fmt: skip
def test_seventeen_groups_that_all_pass(margin: float, churn: float, expected: int) -> None:
    """Against 4,000 draws: every group must pass with probability .8^(1/17) = .987."""
    n = likely_n(margin, churn, groups=17)
    assert n == pytest.approx(expected, rel=0.11)
    draws = np.random.default_rng(1).multinomial(n, [churn / 2, churn / 2, 1 - churn], size=4000)
    low, _ = tango(n, draws[:, 0], draws[:, 1], 2 * GATE_ALPHA)
    assert np.mean(low > -margin) ** 17 == pytest.approx(0.8, abs=0.11)


@pytest.mark.parametrize(("n", "churn"), [(90, 0.0), (300, 0.03), (5000, 0.06)])
def test_the_margin_that_a_group_can_certify_is_the_inverse(n: int, churn: float) -> None:
    margin = likely_margin(n, churn)
    assert likely_n(margin, churn) <= n
    assert likely_n(margin * 0.999, churn) > n


@pytest.mark.parametrize("margin", [0.01, 0.02, 0.05])
def test_the_likely_n_passes_four_times_in_five(margin: float) -> None:
    n = likely_n(margin, 0.05)
    rng = np.random.default_rng(0)
    draws = rng.multinomial(n, [0.025, 0.025, 0.95], size=4000)
    low, _ = tango(n, draws[:, 0], draws[:, 1], 2 * GATE_ALPHA)
    assert 0.75 < np.mean(low > -margin) < 0.86


def test_the_starter_is_a_policy_and_holds_the_table() -> None:
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
    lines = []
    for line in starter_policy().splitlines():
        inside = line.removeprefix("# ")
        commented = line.startswith("# ") and ("[[rule]]" in line or " = " in inside[:20])
        lines.append(inside if commented else line)
    policy = read_policy(tomllib.loads("\n".join(lines)))
    assert [rule.metric for rule in policy.rule] == ["accuracy", "recall", "fnr", "group_gap"]
    assert policy.require_groups == ("sex=Female", "sex=Male")


def audited(n: int = 1000, **more: Any) -> AuditResult:
    """A tenth of `n` are of a small group, 3 % of the answers change."""
    i = np.arange(n)
    int8 = i % 2
    int8 = np.where(i % 100 < 3, 1 - int8, int8)
    sex = np.where(i % 10 == 0, more.pop("small", "Other"), "Female")
    groups = {"sex": more.pop("sex", sex)}
    return fw.audit(
        i % 2, {"dense": i % 2, "int8": int8}, sensitive_features=groups, n_boot=20
    ).result


def test_a_table_tells_its_groups_its_churn_and_what_they_allow() -> None:
    text = starter_policy(audited(), "fairweight gate t.csv --policy policy.toml")
    policy = read_policy(tomllib.loads(text))
    assert policy.require_groups == ("sex=Female", "sex=Other")
    assert "#   fairweight gate t.csv --policy policy.toml\n" in text
    assert "# Churn: int8 loses or gains 3 % of answers.\n" in text
    assert "# Smallest of 2 groups: sex=Other, 100 examples.\n" in text
    # 2.7055 / (100 + 2.7055) = .0263, rounded up
    assert "certify a margin of 0.0264 at best" in text
    likely = f"{likely_n(0.02, 0.03, groups=2):,}"
    (row,) = [line.split() for line in text.splitlines() if line.startswith("#   0.02 ")]
    assert row[2:] == ["133", likely]
    assert "all 2 groups pass" in text


def test_small_groups_and_missing_values_are_told_of() -> None:
    i = np.arange(1000)
    sex = np.where(i % 20 == 0, "Other", np.where(i % 20 == 1, None, "Female"))
    text = starter_policy(audited(sex=sex))
    assert "smaller than min_group_size, so the gate cannot tell" in text
    assert "# Without a group value: 50 examples, judged as a group.\n" in text
    assert read_policy(tomllib.loads(text)).require_groups == ("sex=Female", "sex=Other")


def test_a_table_without_groups_is_asked_about_as_a_whole() -> None:
    i = np.arange(400)
    audit = fw.audit(i % 2, {"dense": i % 2, "int8": i % 2}, n_boot=20)
    policy = read_policy(tomllib.loads(starter_policy(audit.result)))
    assert (policy.rule[0].by, policy.require_groups) == ("overall", ())
    assert audit.gate(policy).passed


@pytest.mark.parametrize("name", ['a "b"', "c\\d", "e\nf", "\x1b[31m", "ü{x}", "\U0001f600", "#"])
def test_hostile_names_stay_names(name: str) -> None:
    text = starter_policy(audited(small=name))
    assert f"sex={name}" in read_policy(tomllib.loads(text)).require_groups
    assert tomllib.loads(f"x = {toml_text(name)}") == {"x": name}
