"""Who is judged: excluded groups, groups that are too small, and limits of size and latency."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.gate.verdict import Verdict, decide
from fairweight.auditing.result import AuditResult
from fairweight.errors import InputError
from fairweight.report.gate import deciding_bound, endpoints, headline, subject
from fairweight.specs.policy import read_policy

from .made_bounds import answers, made_audit

RULE = {"metric": "accuracy", "by": "group", "margin": 0.02}


def judged(result: AuditResult, *rules: dict[str, Any], **keys: Any) -> Verdict:
    return decide(result, read_policy({"rule": list(rules) or [RULE], **keys}))


def audit(**sizes: int) -> AuditResult:
    """Groups `sex=NAME` of these sizes, of which none loses anything."""
    rows = [row for name, n in sizes.items() for row in answers(n, 0, 0, group=f"sex={name}")]
    return made_audit(rows)


def test_an_excluded_group_is_not_judged_and_is_named() -> None:
    rows = [*answers(1000, 0, 0, group="sex=F"), *answers(1000, 90, 0, group="sex=M")]
    assert judged(made_audit(rows)).outcome == "fail"
    verdict = judged(made_audit(rows), exclude=["sex=M"])
    assert (verdict.outcome, verdict.excluded) == ("pass", ("sex=M",))
    assert verdict.rows["group"].tolist() == ["sex=F"]
    assert "not judged, excluded by the policy: sex=M" in headline(verdict)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"exclude": ["sex=N"]}, "excludes"),
        ({"exclude": ["sex=M"], "require_groups": ["sex=M"]}, "both requires and excludes"),
        ({"exclude": ["sex=(missing)"]}, "without a value"),
        ({"exclude": ["sex=F", "sex=M"]}, "every group that rule 2 applies to"),
    ],
)
def test_what_must_not_be_excluded_is_refused(keys: dict[str, Any], said: str) -> None:
    names = ("F", "M", "(missing)")
    rows = [row for name in names for row in answers(500, 0, 0, group=f"sex={name}")]
    named = RULE | {"groups": ["sex=F", "sex=M"]}
    with pytest.raises(InputError, match=said):
        judged(made_audit(rows), RULE, named, **keys)


def test_small_groups_are_skipped_and_named_where_the_policy_says_so() -> None:
    held = audit(F=1000, M=40)
    assert judged(held).outcome == "cannot tell"
    verdict = judged(held, small_groups="skip")
    assert (verdict.outcome, verdict.skipped) == ("pass", ("sex=M",))
    assert headline(verdict) == "PASS (1 variant tried; not judged, too small: sex=M)"


def test_skipping_covers_neither_required_groups_nor_the_missing_value() -> None:
    rows = [*answers(1000, 0, 0, group="sex=F"), *answers(40, 0, 0, group="sex=(missing)")]
    assert judged(made_audit(rows), small_groups="skip").outcome == "cannot tell"
    held = audit(F=1000, M=40)
    required = judged(held, small_groups="skip", require_groups=["sex=M"])
    assert (required.outcome, required.skipped) == ("cannot tell", ())


def test_a_group_that_is_small_because_rows_were_left_out_is_not_skipped() -> None:
    held = audit(F=1000, M=40)
    lacking = pd.DataFrame(
        {"task": [None], "kind": ["group"], "group": ["sex=M"], "class": [None], "lacks": ["int8"],
         "n": [80], "n_weighted": [80.0]}
    )  # fmt: skip
    verdict = judged(replace(held, left_out=lacking), small_groups="skip")
    assert (verdict.outcome, verdict.skipped) == ("cannot tell", ())


def test_a_rule_of_which_all_rows_are_too_small_cannot_pass() -> None:
    verdict = judged(audit(F=50, M=40), small_groups="skip")
    assert verdict.outcome == "cannot tell"
    assert len(verdict.rows) == 2


def with_models(result: AuditResult, **columns: Any) -> AuditResult:
    return replace(result, variants_table=pd.DataFrame(columns))


SIZES = {"variant": ["dense", "int8"], "seed": ["0", "0"], "size_bytes": [9e6, 2.5e6]}


def test_limits_of_size_and_latency_are_rows_of_the_verdict() -> None:
    held = with_models(audit(F=1000), **SIZES, latency_ms=[20.0, 12.0])
    limits = [{"column": "size_bytes", "max": 3e6}, {"column": "latency_ms", "max": 10}]
    verdict = judged(held, limit=limits)
    assert verdict.outcome == "fail"
    rows = endpoints(verdict, "int8")
    found = [(row["decision"], subject(row), deciding_bound(row)) for row in rows]
    assert found[0] == ("fail", "latency_ms", "12; at most 10")
    assert ("pass", "size_bytes", "2,500,000; at most 3,000,000") in found
    assert verdict.rows["by"].tolist() == ["group", "variant", "variant"]


def test_of_several_members_the_worst_counts_and_an_absent_number_is_no_pass() -> None:
    limit = [{"column": "size_bytes", "max": 100}]
    several = {"variant": ["int8", "int8"], "seed": ["0", "1"], "size_bytes": [90.0, 110.0]}
    assert judged(with_models(audit(F=1000), **several), limit=limit).outcome == "fail"
    several["size_bytes"] = [90.0, np.nan]
    assert judged(with_models(audit(F=1000), **several), limit=limit).outcome == "cannot tell"
    other = {"variant": ["dense"], "seed": ["0"], "size_bytes": [90.0]}
    assert judged(with_models(audit(F=1000), **other), limit=limit).outcome == "cannot tell"


def test_a_limit_without_its_column_is_refused() -> None:
    with pytest.raises(InputError, match=r"--variants"):
        judged(audit(F=1000), limit=[{"column": "size_bytes", "max": 100}])
    with pytest.raises(InputError, match="Did you mean 'size_bytes'"):
        judged(with_models(audit(F=1000), **SIZES), limit=[{"column": "size", "max": 100}])


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"small_groups": "ignore"}, '"cannot tell" or "skip"'),
        ({"limit": [{"column": "size_bytes"}]}, "limit 1 asks for nothing"),
        ({"limit": [{"max": 3}]}, "limit 1: the key 'column' is missing"),
        ({"limit": [{"column": "size_bytes", "max": "3"}]}, "limit 1: max"),
        ({"limit": [{"colum": "size_bytes", "max": 3}]}, "Did you mean 'column'"),
    ],
)
def test_keys_that_cannot_be_used_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_policy({"rule": [RULE], **keys})


def test_acc_means_accuracy() -> None:
    with pytest.raises(InputError, match="Did you mean 'accuracy'"):
        judged(audit(F=1000), {"metric": "acc", "by": "group", "margin": 0.02})


def test_a_policy_without_new_keys_is_the_same_look_as_before() -> None:
    from dataclasses import asdict

    from fairweight.auditing.gate.looks import _stated

    plain = read_policy({"rule": [RULE]})
    assert set(asdict(plain)) - set(_stated(plain)) == {"small_groups", "exclude", "limit"}
    assert "exclude" in _stated(read_policy({"rule": [RULE], "exclude": ["a=b"]}))
