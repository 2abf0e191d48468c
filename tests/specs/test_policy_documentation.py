"""The reference of policies: every key and field is documented, and nothing else is."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from fairweight.auditing.gate.endpoints import demands
from fairweight.auditing.gate.sample_size import MARGINS, PlanRequest, sizes_of
from fairweight.auditing.gate.starter import CHURN
from fairweight.auditing.gate.verdict import decide
from fairweight.report.gate import to_json
from fairweight.specs.policy import Limit, Policy, Rule, read_policy

from ..auditing.decide.made_bounds import answers, made_audit

DOCS = Path(__file__).resolve().parents[2] / "docs"


def documented(heading: str) -> list[str]:
    page = (DOCS / "reference/policy.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


def test_every_key_is_documented() -> None:
    assert set(documented("Keys of the policy")) == {field.name for field in fields(Policy)}
    assert documented("Keys of a rule") == [field.name for field in fields(Rule)]
    assert documented("Keys of a limit") == [field.name for field in fields(Limit)]


def test_every_key_of_the_json_is_documented() -> None:
    policy = read_policy({"rule": [{"metric": "accuracy", "by": "group", "margin": 0.02}]})
    verdict = decide(made_audit(answers(500, 0, 0, group="sex=F")), policy)
    assert documented("JSON") == list(json.loads(to_json(verdict, policy)))


@pytest.mark.parametrize("page", ["reference/policy.md", "how-to/choose-a-policy.md"])
def test_the_policies_of_the_pages_can_be_used(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found
    for block in found:
        assert demands(read_policy(tomllib.loads(block)))


def test_the_table_of_examples_needed_is_the_computed_one() -> None:
    text = (DOCS / "how-to/choose-a-policy.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d,]+) \| ([\d,]+) \|$", text, re.MULTILINE)
    expected = []
    for margin in MARGINS:
        sizes = sizes_of(PlanRequest(), 1, margin, CHURN)
        expected.append((f"{margin:g}", f"{sizes['n_identical']:,}", f"{sizes['n_needed']:,}"))
    assert rows == expected
