"""The policy to start from."""

from __future__ import annotations

import tomllib
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.auditing.gate.sample_size import MARGINS
from fairweight.auditing.gate.starter import CHURN, starter_policy, toml_text
from fairweight.auditing.intervals.power import examples_to_pass, least_n
from fairweight.auditing.result import AuditResult
from fairweight.specs.policy import read_policy

pytestmark = pytest.mark.usefixtures("few_metrics")


def test_the_starter_is_a_policy_and_holds_the_table() -> None:
    text = starter_policy()
    policy = read_policy(tomllib.loads(text))
    assert policy.confirmatory() == (("accuracy", "group"), ("recall", "class"))
    for margin in MARGINS:
        sizes = least_n(margin), examples_to_pass(margin, CHURN)
        assert any(
            line.split()[1:] == [f"{margin:g}", *(f"{max(100, n):,}" for n in sizes)]
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
    assert "# Churn: int8 loses or gains 3 % of predictions.\n" in text
    assert "# Smallest of 2 groups: sex=Other, 100 examples.\n" in text
    # 2.7055 / (100 + 2.7055) = .0263, rounded up
    assert "certify a margin of 0.0264 at best" in text
    likely = f"{examples_to_pass(0.02, 0.03, rows=2):,}"
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


def test_a_table_of_outcomes_is_asked_about_the_outcome() -> None:
    i = np.arange(600)
    frames = {
        name: pd.DataFrame({"example_id": i, "right": right, "sex": np.where(i % 3, "F", "M")})
        for name, right in {"dense": np.ones(600, int), "int8": (i % 50 > 0).astype(int)}.items()
    }
    audit = fw.audit_table(frames, outcome="right", better="higher", groups=["sex"], n_boot=20)
    policy = read_policy(tomllib.loads(starter_policy(audit.result)))
    assert [(rule.metric, rule.by) for rule in policy.rule] == [("correct", "group")]
    assert set(policy.require_groups) == {"sex=F", "sex=M"}
    assert audit.gate(policy).outcome in ("pass", "fail", "cannot tell")
    assert fw.plan(audit, margin=0.05).rows["metric"].unique().tolist() == ["correct"]


@pytest.mark.parametrize("name", ['a "b"', "c\\d", "e\nf", "\x1b[31m", "ü{x}", "\U0001f600", "#"])
def test_hostile_names_stay_names(name: str) -> None:
    text = starter_policy(audited(small=name))
    assert f"sex={name}" in read_policy(tomllib.loads(text)).require_groups
    assert tomllib.loads(f"x = {toml_text(name)}") == {"x": name}
