"""A verdict as terminal text, Markdown, JUnit XML and JSON; hostile names stay names."""

from __future__ import annotations

import io
import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from fairweight.auditing.gate.verdict import Verdict, decide
from fairweight.report.gate import decision, to_json
from fairweight.report.junit import verdict_to_junit
from fairweight.report.markdown import verdict_to_markdown
from fairweight.report.terminal import show_verdict
from fairweight.specs.policy import read_policy

from ...auditing.decide.made_bounds import answers, line, made_audit

POLICY = read_policy({"rule": [{"metric": "accuracy", "by": "group", "margin": 0.02, "min": 0.6}]})
HOSTILE = "sex=<script>alert('x')</script> | `a` [b](c) & \"d\"\n\x1b[31m"
MARGIN = read_policy({"rule": [{"metric": "accuracy", "by": "group", "margin": 0.02}]})


def verdict(*names: str) -> Verdict:
    """A failure in the first group, a doubt in the second, nothing wrong in the third."""
    rows: list[dict[str, Any]] = []
    for name, (lost, n) in zip(names, [(90, 1000), (1, 120), (0, 1000)], strict=True):
        rows += answers(n, lost, 0, group=name)
    return decide(made_audit(rows), POLICY)


@pytest.fixture(scope="module")
def plain() -> Verdict:
    return verdict("sex=Female", "sex=Male", "age=old")


@pytest.fixture(scope="module")
def hostile() -> Verdict:
    return verdict(HOSTILE, "sex=[red]Male[/red]", "age=old|new")


def printed(made: Verdict, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=100)
    show_verdict(made, console, **options)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


# --- terminal ------------------------------------------------------------------------------------


def test_the_terminal_leads_with_the_outcome_and_what_is_wrong(plain: Verdict) -> None:
    lines = printed(plain).splitlines()
    assert lines[0] == "Gate: FAIL (1 variant tried)"
    assert lines.pop(1) == (
        "int8 must not ship by this policy (accuracy of sex=Female: loss is at least 7.0 points; "
        "limit 2)."
    )
    assert lines[1] == "int8: fail (6 checks: 4 pass, 1 fail, 1 cannot tell)"
    # Six endpoints: 90 of 1,000 lost is at least 0.0706 at 5 % / 6; of 120, one lost is at most
    # 0.0364 and 119 right are at least 0.9637.
    assert lines[2].split(": ")[1].startswith("loss is at least 7.0 points; limit 2.")
    assert lines[3].startswith(
        "  cannot tell  accuracy of sex=Male (n = 120): loss may be up to 3.7 points; limit 2."
    )
    assert lines[6].split(": ")[1].startswith("at least 96.3 %; floor 60 %.")
    decisions = re.findall(r"^  (fail|cannot tell|pass)", "\n".join(lines), re.MULTILINE)
    assert decisions == ["fail", "cannot tell", "pass", "pass", "pass", "pass"]


def test_the_terminal_says_how_many_it_leaves_out(plain: Verdict) -> None:
    assert "  4 more (--json, --markdown)" in printed(plain, limit=2)


def test_the_terminal_gets_no_escape_sequences_and_no_markup(hostile: Verdict) -> None:
    text = printed(hostile)
    assert "\x1b" not in text
    assert "[red]Male[/red]" in text


def test_one_sentence_says_whether_a_variant_may_ship() -> None:
    """Lost are none, one or 90 of 1,000, or one of 120: below 2 points, above, or open."""

    def said(lost: int, n: int) -> str:
        made = decide(made_audit(answers(n, lost, 0, group="sex=Male")), MARGIN)
        return decision(made, "int8")

    assert said(0, 1000) == "int8 may ship by this policy: its check passes."
    assert said(90, 1000).startswith(
        "int8 must not ship by this policy (accuracy of sex=Male: loss is at least "
    )
    assert said(1, 120).startswith(
        "It is not shown that int8 may ship: 1 of 1 check cannot be decided."
    )


def test_the_number_of_variants_tried_is_printed() -> None:
    rows = [line("shift", 0.0, -0.01, 0.01, n=500, variant=name, group="a=b") for name in "xyz"]
    policy = read_policy({"rule": [{"metric": "accuracy", "by": "group", "margin": 0.02}]})
    assert "PASS (all of 3 variants must pass)" in printed(decide(made_audit(rows), policy))
    chosen = printed(decide(made_audit(rows), policy, "any"))
    assert "PASS (any of 3 variants must pass)" in chosen
    assert "Selected on these data" in chosen


def test_those_that_pass_are_named_where_there_are_several(plain: Verdict) -> None:
    policy = read_policy({"rule": [{"metric": "accuracy", "by": "group", "margin": 0.02}]})
    rows = [
        line("shift", 0.0, -0.01, low, n=500, variant=name, group="a=b")
        for name, low in (("x", 0.01), ("y", 0.01))
    ]
    rows.append(line("shift", -0.2, -0.3, -0.1, n=500, variant="z", group="a=b"))
    several = decide(made_audit(rows), policy)
    assert printed(several).splitlines()[1] == "Passing: x, y."
    assert "Passing: x, y." in verdict_to_markdown(several).splitlines()
    assert json.loads(to_json(several, policy))["passing"] == ["x", "y"]
    none = decide(made_audit(rows[2:]), policy)
    assert json.loads(to_json(none, policy))["passing"] == []
    assert "Passing" not in printed(plain)


# --- Markdown ------------------------------------------------------------------------------------


def cells(row: str) -> list[str]:
    return re.split(r"(?<!\\)\|", row)[1:-1]


def test_markdown_is_a_heading_and_a_table(plain: Verdict) -> None:
    lines = verdict_to_markdown(plain).splitlines()
    assert lines[0] == r"## Gate: FAIL \(1 variant tried\)"
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 6
    assert [cell.strip() for cell in cells(table[2])][:3] == [
        "fail",
        r"accuracy of sex=Female, margin 2 points",
        "1,000",
    ]


def test_markdown_escapes_names(hostile: Verdict) -> None:
    text = verdict_to_markdown(hostile)
    assert "<script>" not in text
    assert r"\<script\>" in text
    assert "\x1b" not in text
    for row in text.splitlines():
        if row.startswith("|"):
            assert len(cells(row)) == 5
    assert r"age=old\|new" in text


# --- JUnit ---------------------------------------------------------------------------------------


def test_junit_has_one_test_per_endpoint(plain: Verdict) -> None:
    root = ElementTree.fromstring(verdict_to_junit(plain))
    (suite,) = root.findall("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("6", "1", "1")
    assert len(suite.findall("testcase")) == 6
    (failure,) = suite.iter("failure")
    assert "the loss is at least 7.061 points (limit 2 points" in str(failure.get("message"))
    (error,) = suite.iter("error")
    assert error.get("type") == "cannot tell"
    names = {str(case.get("name")) for case in suite.iter("testcase")}
    assert "rule 1: accuracy of sex=Female, margin 2 points" in names
    assert len(names) == 6


def test_junit_is_valid_xml_whatever_the_names(hostile: Verdict) -> None:
    root = ElementTree.fromstring(verdict_to_junit(hostile))
    assert any("<script>alert('x')</script>" in str(c.get("name")) for c in root.iter("testcase"))


# --- JSON ----------------------------------------------------------------------------------------


def test_json_holds_outcome_policy_and_rows(plain: Verdict) -> None:
    read = json.loads(to_json(plain, POLICY), parse_constant=lambda name: pytest.fail(name))
    assert (read["schema"], read["outcome"], read["exit_code"]) == (1, "fail", 1)
    assert read["variants"] == {"int8": "fail"}
    assert read["variants_tried"] == 1
    assert read["policy"]["rule"][0]["min"] == 0.6
    assert [row["decision"] for row in read["endpoints"]].count("pass") == 4
    assert list(read["endpoints"][0]) == list(plain.rows.columns)


def test_json_has_null_where_there_is_no_number() -> None:
    policy = read_policy({"rule": [{"metric": "accuracy", "by": "group", "margin": 0.02}]})
    small = decide(made_audit(answers(20, 0, 0, group="a=b")), policy)
    (row,) = json.loads(to_json(small, policy))["endpoints"]
    assert row["certifiable"] is None
    assert row["class"] is None
