"""Policies: what is read, and one sentence for everything that cannot be."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from fairweight.errors import InputError
from fairweight.specs.policy import REMEDIES, Limit, Policy, Rule, read_policy

RULE: dict[str, Any] = {"metric": "accuracy", "by": "group", "margin": 0.02}

FILE = """
schema = 1
min_group_size = 50
require_groups = ["sex=Female"]

[[rule]]
metric = "accuracy"
by = "group"
margin = 0.02
columns = ["sex"]

[[rule]]
metric = "recall"
by = "class"
margin = 0.05
min = 0.8
classes = ["cat", 3]
tasks = ["smiling"]
"""


def refused(source: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_policy(source)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith((".", "?"))
    return sentence


def test_a_file_with_everything(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(FILE)
    assert read_policy(path) == Policy(
        min_group_size=50,
        require_groups=("sex=Female",),
        rule=(
            Rule(metric="accuracy", by="group", margin=0.02, columns=("sex",)),
            Rule(
                metric="recall",
                by="class",
                margin=0.05,
                min=0.8,
                classes=("cat", "3"),
                tasks=("smiling",),
            ),
        ),
    )
    assert read_policy(str(path)) == read_policy(path)


def test_defaults() -> None:
    policy = read_policy({"rule": [RULE]})
    assert (policy.schema, policy.min_group_size, policy.require_groups) == (1, 100, ())


def test_a_policy_is_taken_as_it_is_and_cannot_be_changed() -> None:
    policy = read_policy({"rule": [RULE]})
    assert read_policy(policy) is policy
    with pytest.raises(FrozenInstanceError):
        policy.min_group_size = 1


def test_criteria_and_confirmatory_pairs() -> None:
    policy = read_policy(
        {"rule": [RULE | {"min": 0.8}, RULE | {"groups": ["sex=F"]}, RULE | {"by": "overall"}]}
    )
    assert policy.rule[0].criteria() == (("margin", 0.02), ("min", 0.8))
    # Two rules about accuracy by group are one family.
    assert policy.confirmatory() == (("accuracy", "group"), ("accuracy", "overall"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"margin": -1}, "margin = -1 cannot be used; give the largest tolerated loss"),
        ({"margin": "0.02"}, "margin = '0.02' cannot be used"),
        ({"margin": True}, "margin = True cannot be used"),
        ({"margin": float("nan")}, "margin = nan cannot be used"),
        ({"margin": float("inf")}, "margin = inf cannot be used"),
        ({"margin": None}, "asks for nothing; give a margin, a recovery, a min or a max"),
        ({"margn": 0.1}, "the key 'margn' does not exist"),
        ({"min": "high"}, "min = 'high' cannot be used"),
        ({"by": "groups"}, "by = 'groups' cannot be used; use \"overall\""),
        ({"metric": 7}, "metric = 7 cannot be used; give the name of a metric"),
        ({"groups": []}, "groups = [] cannot be used"),
        ({"groups": "sex=F"}, "groups = 'sex=F' cannot be used; give a list"),
        ({"classes": ["3"]}, 'has classes, which mean nothing with by = "group"; use groups'),
        ({"by": "overall", "groups": ["sex=F"]}, 'with by = "overall"; leave them out'),
        ({"by": "grouping", "groups": ["sex=F"]}, 'with by = "grouping"; use columns'),
        ({"min_group_size": 5}, "'min_group_size' belongs to the whole policy"),
    ],
)
def test_what_is_wrong_with_a_rule_names_the_rule(change: dict[str, Any], told: str) -> None:
    sentence = refused({"rule": [RULE, RULE | change]})
    assert "rule 2" in sentence
    assert told in sentence


def test_the_nearest_key_is_shown() -> None:
    assert refused({"rule": [RULE | {"margn": 1}]}).endswith("Did you mean 'margin'?")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "the key 'rule' is missing"),
        ({"rule": []}, "at least one of them"),
        ({"rule": RULE}, "[[rule]], with two brackets"),
        ({"rule": [3]}, "rule 1 cannot be 3"),
        ({"rules": [RULE]}, "the key 'rules' does not exist"),
        ({"rule": [RULE], "schema": 2}, "schema = 2 cannot be used; this version reads schema = 1"),
        ({"rule": [RULE], "schema": 2, "new": 1}, "schema = 2 cannot be used"),
        ({"rule": [RULE], "min_group_size": 0}, "min_group_size = 0 cannot be used"),
        ({"rule": [RULE], "min_group_size": 2.5}, "min_group_size = 2.5 cannot be used"),
        ({"rule": [RULE], "require_groups": "x"}, "require_groups = 'x' cannot be used"),
        ({"rule": [{"by": "group", "margin": 0.1}]}, "rule 1: the key 'metric' is missing"),
        (3, "policy= cannot be int"),
    ],
)
def test_what_is_wrong_with_a_policy(given: Any, told: str) -> None:
    assert told in refused(given)


def test_files_that_are_no_policy(tmp_path: Path) -> None:
    absent = tmp_path / "absent.toml"
    assert "absent.toml' does not exist; fairweight gate --init" in refused(absent)
    assert "cannot be read" in refused(tmp_path)
    broken = tmp_path / "broken.toml"
    broken.write_text("schema = 1\n[[rule\n")
    assert "broken.toml' is not valid TOML" in refused(broken)
    assert "line 2" in refused(broken)
    broken.write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8 text" in refused(broken)


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(b"\xef\xbb\xbf" + FILE.encode())
    assert read_policy(path).min_group_size == 50


def test_every_key_has_a_remedy() -> None:
    parts = (Policy, Rule, Limit)
    keys = {name for part in parts for name in part.__dataclass_fields__}
    assert set(REMEDIES) == keys
