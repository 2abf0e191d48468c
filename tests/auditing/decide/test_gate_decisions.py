"""Four outcomes, on limits whose arithmetic is visible."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.gate.verdict import Verdict, decide
from fairweight.auditing.result import (
    DIVISORS,
    LEFT_OUT_COLUMNS,
    AuditResult,
)
from fairweight.auditing.schema import column_names, frame
from fairweight.errors import InputError
from fairweight.specs.policy import read_policy

from .made_bounds import answers, line, made_audit, spread

FEMALE, MALE = {"group": "sex=Female"}, {"group": "sex=Male"}


def policy(*rules: dict[str, Any], **more: Any) -> Any:
    base = {"metric": "accuracy", "by": "group"}
    return read_policy({"rule": [base | rule for rule in rules]} | more)


MARGIN = policy({"margin": 0.02})


def gate(rows: list[dict[str, Any]], asked: Any = MARGIN, **more: Any) -> Verdict:
    return decide(made_audit(rows), asked, **more)


def only(verdict: Verdict) -> Any:
    assert len(verdict.rows) == 1
    return verdict.rows.iloc[0]


# --- the rule ------------------------------------------------------------------------------------


def test_pass() -> None:
    """1,000 answers, none lost: z² / (n + z²) = 2.7055 / 1002.7 = 0.0027 < 0.02."""
    verdict = gate(answers(1000, 0, 0, **FEMALE))
    row = only(verdict)
    assert (verdict.outcome, verdict.exit_code, verdict.passed) == ("pass", 0, True)
    assert row["low"] == pytest.approx(-2.7055 / 1002.7055, rel=1e-3)
    assert row["certifiable"] == pytest.approx(0.0027, abs=1e-4)
    assert row["reason"] == "the loss is at most 0.2698 points (limit 2 points)"
    assert row["equivalent"]


def test_fail() -> None:
    """60 of 1,000 lost: even the upper limit is far below −0.02."""
    verdict = gate(answers(1000, 60, 0, **FEMALE))
    assert (verdict.outcome, verdict.exit_code, verdict.passed) == ("fail", 1, False)
    assert only(verdict)["reason"].startswith("the loss is at least 4.")


def test_cannot_tell_names_the_margin_that_the_data_certify() -> None:
    verdict = gate([spread("shift", -0.01, 0.01, **FEMALE)])
    row = only(verdict)
    assert (verdict.outcome, verdict.exit_code, verdict.passed) == ("cannot tell", 3, False)
    # −0.01 − 1.6449 × 0.01 = −0.026449, so 0.0264 would not do and 0.0265 does.
    assert row["certifiable"] == pytest.approx(0.026449, abs=1e-6)
    assert row["reason"].endswith("(limit 2 points); margin = 0.0265 would pass")
    assert gate([spread("shift", -0.01, 0.01, **FEMALE)], policy({"margin": 0.0265})).passed
    assert not gate([spread("shift", -0.01, 0.01, **FEMALE)], policy({"margin": 0.0264})).passed


def test_point_estimates_would_get_the_small_sample_wrong() -> None:
    """One of 120 lost is a shift of −0.0083, well inside 2 points; the data cannot exclude 2."""
    verdict = gate(answers(120, 1, 0, **FEMALE))
    row = only(verdict)
    assert row["estimate"] == pytest.approx(-1 / 120)
    assert row["estimate"] > -0.02  # a gate on point estimates would let it pass
    assert row["low"] < -0.02
    assert verdict.outcome == "cannot tell"


@pytest.mark.parametrize(("n", "outcome"), [(132, "cannot tell"), (133, "pass")])
def test_identical_predictions_pass_two_points_from_133_examples_on(n: int, outcome: str) -> None:
    assert gate(answers(n, 0, 0, **FEMALE)).outcome == outcome


def test_the_limit_itself_is_not_above_the_limit() -> None:
    assert gate([line("shift", 0.0, -0.02, 0.02, n=500, **FEMALE)]).outcome == "cannot tell"
    assert gate([line("shift", -0.03, -0.04, -0.02, n=500, **FEMALE)]).outcome == "cannot tell"
    below = np.nextafter(-0.02, -1)
    assert gate([line("shift", -0.03, -0.04, below, n=500, **FEMALE)]).outcome == "fail"


def test_one_failure_fails_and_one_doubt_leaves_doubt() -> None:
    good, bad = answers(1000, 0, 0, **FEMALE), answers(1000, 90, 0, **MALE)
    doubt = answers(120, 1, 0, group="age=old")
    assert gate([*good, *bad, *doubt]).outcome == "fail"
    assert gate([*good, *doubt]).outcome == "cannot tell"
    assert gate(good).outcome == "pass"


def test_lower_is_better_so_a_loss_is_an_increase() -> None:
    asked = policy({"metric": "fnr", "margin": 0.02})
    more = gate([spread("shift", 0.06, 0.005, metric="fnr", **FEMALE)], asked)
    less = gate([spread("shift", -0.06, 0.005, metric="fnr", **FEMALE)], asked)
    assert (more.outcome, less.outcome) == ("fail", "pass")
    assert only(more)["reason"].startswith("the loss is at least 5.178 points (limit 2 points")
    doubt = gate([spread("shift", 0.01, 0.01, metric="fnr", **FEMALE)], asked)
    assert only(doubt)["certifiable"] == pytest.approx(0.026449, abs=1e-6)


def test_floors_speak_of_the_compressed_model_alone() -> None:
    """No loss, but the model was bad before: 700 of 1,000, 90 % interval .676 to .723."""
    rows = answers(1000, 0, 0, right=700, **FEMALE)
    assert gate(rows).passed
    assert gate(rows, policy({"min": 0.8})).outcome == "fail"
    assert gate(rows, policy({"min": 0.65})).outcome == "pass"
    doubt = only(gate(rows, policy({"min": 0.7})))
    assert doubt["decision"] == "cannot tell"
    assert doubt["reason"].endswith("(floor 70 %); min = 0.6756 would pass")
    assert gate(rows, policy({"min": 0.6756})).passed


def test_ceilings() -> None:
    rows = [spread("value", 0.1, 0.01, metric="fnr", **FEMALE)]
    assert gate(rows, policy({"metric": "fnr", "max": 0.2})).outcome == "pass"
    assert gate(rows, policy({"metric": "fnr", "max": 0.05})).outcome == "fail"
    doubt = only(gate(rows, policy({"metric": "fnr", "max": 0.11})))
    # 0.1 + 1.6449 × 0.01 = 0.11645
    assert doubt["reason"].endswith("(ceiling 11 %); max = 0.1165 would pass")


def test_margin_and_floor_are_two_endpoints() -> None:
    verdict = gate(answers(1000, 0, 0, right=700, **FEMALE), policy({"margin": 0.02, "min": 0.8}))
    assert verdict.rows[["criterion", "decision"]].values.tolist() == [
        ["margin", "pass"],
        ["min", "fail"],
    ]


def test_equivalent_means_inside_the_margin_on_both_sides() -> None:
    gain = [line("shift", 0.05, 0.03, 0.07, n=500, **FEMALE)]
    both = [line("shift", 0.0, -0.01, 0.01, n=500, **FEMALE)]
    assert not only(gate(gain))["equivalent"]
    assert only(gate(gain))["reason"] == "there is no loss (limit 2 points)"
    assert only(gate(both))["equivalent"]


# --- recovery ------------------------------------------------------------------------------------

RECOVERY = policy({"recovery": 0.99})


def recovered(rows: list[dict[str, Any]], baseline: float, asked: Any = RECOVERY) -> Any:
    return only(decide(made_audit(rows, baseline=baseline), asked))


def test_recovery_allows_a_share_of_the_baseline() -> None:
    """1,000 answers, none lost: at most .0027. 1 % of .9 is .009, and 1 % of .2 is .002."""
    row = recovered(answers(1000, 0, 0, **FEMALE), 0.9)
    assert (row["decision"], row["criterion"], row["limit"]) == ("pass", "recovery", 0.99)
    assert row["threshold"] == pytest.approx(-0.009)
    assert row["ratio"] == 1.0
    assert row["reason"] == (
        "the loss is at most 0.2698 points (limit 0.9 points, which keeps 99 % of 90 %)"
    )
    open_ = recovered(answers(1000, 0, 0, **FEMALE), 0.6, policy({"recovery": 0.996}))
    # 0.4 % of .6 is .0024; the strictest share that is certain is 1 − .002698 / .6 = .9955
    assert open_["decision"] == "cannot tell"
    assert open_["certifiable"] == pytest.approx(1 - 0.002698 / 0.6, abs=1e-6)
    assert open_["reason"].endswith("; recovery = 0.9955 would pass")
    assert recovered(answers(1000, 0, 0, **FEMALE), 0.6, policy({"recovery": 0.9955}))[
        "decision"
    ] == "pass"  # fmt: skip


def test_recovery_fails_where_the_upper_limit_is_below_it() -> None:
    """30 of 1,000 lost: the upper limit is −.0223; 1 % of .9 is .009, 3 % of .9 is .027."""
    row = recovered(answers(1000, 30, 0, **FEMALE), 0.9)
    assert row["decision"] == "fail"
    assert row["ratio"] == pytest.approx(1 - 0.03 / 0.9)
    assert row["bound"] == pytest.approx(-0.022317, abs=1e-6)
    open_ = recovered(answers(1000, 30, 0, **FEMALE), 0.9, policy({"recovery": 0.97}))
    assert open_["decision"] == "cannot tell"


def test_recovery_stands_beside_a_margin() -> None:
    audit = made_audit(answers(1000, 0, 0, **FEMALE), baseline=0.9)
    rows = decide(audit, policy({"margin": 0.02, "recovery": 0.99})).rows
    assert rows["criterion"].tolist() == ["margin", "recovery"]
    assert rows["ratio"].isna().tolist() == [True, False]


def test_recovery_of_a_guess_is_refused() -> None:
    """Two classes: half right is what a coin gives. Rows that are too small are not asked."""
    rows = answers(1000, 0, 0, **FEMALE)
    for baseline in (0.5, 0.3):
        with pytest.raises(InputError, match=r"is not above chance \(0.5 with 2 classes\); use m"):
            recovered(rows, baseline)
    assert recovered(rows, 0.501)["decision"] == "pass"
    assert recovered(answers(99, 0, 0, **FEMALE), 0.3)["decision"] == "cannot tell"


def test_recovery_without_the_baselines_value_is_no_pass() -> None:
    row = only(gate(answers(1000, 0, 0, **FEMALE), RECOVERY))
    assert (row["decision"], row["reason"]) == (
        "cannot tell", "the audit does not hold the baseline's value",
    )  # fmt: skip


def test_recovery_where_the_sizes_of_all_classes_are_withheld() -> None:
    """Six classes of five examples: none is told, 30 examples are."""
    import fairweight as fw

    label = np.arange(30) % 6
    small = np.where(np.arange(30) < 3, (label + 1) % 6, label)
    audit = fw.audit(label, {"dense": label, "small": small}, n_boot=40).suppressed()
    rule = {"metric": "accuracy", "by": "overall", "recovery": 0.5}
    assert len(audit.gate({"rule": [rule]}).rows) == 1


def test_recovery_of_an_engines_audit() -> None:
    """Dense right on 90 of 100 again and again; int8 loses 5 of 2,000 and gains 1."""
    import fairweight as fw

    label = np.arange(2000) % 2
    dense = np.where(np.arange(2000) % 10 == 0, 1 - label, label)
    int8 = dense.copy()
    int8[[1, 2, 3, 4, 5, 10]] = 1 - int8[[1, 2, 3, 4, 5, 10]]
    audit = fw.audit(label, {"dense": dense, "int8": int8}, n_boot=40)
    rule = {"metric": "accuracy", "by": "overall", "recovery": 0.99}
    (row,) = audit.gate({"rule": [rule]}).rows.to_dict("records")
    assert row["threshold"] == pytest.approx(-0.01 * 0.9)
    assert row["ratio"] == pytest.approx((1800 - 5 + 1) / 1800)
    assert row["decision"] == "pass"


# --- left out ------------------------------------------------------------------------------------


def left_out(
    rows: list[dict[str, Any]], *held: tuple[Any, ...], baseline: float | None = None
) -> AuditResult:
    """An audit from which these were left out: (task, kind, group, class, lacks, n)."""
    table = pd.DataFrame(
        [(*line, float(line[-1])) for line in held], columns=list(LEFT_OUT_COLUMNS), dtype=object
    )
    return replace(made_audit(rows, baseline=baseline), left_out=table)


def of_women(n: int) -> tuple[Any, ...]:
    return (None, "group", "sex=Female", None, "int8", n)


def test_what_was_left_out_counts_as_errors() -> None:
    """900 seen and identical: at most 2.7055 / 902.7 = .002997. With 10 errors more of 910:

    (900 × .002997 + 10) / 910 = .01395 < .02; with 20 of 920: .02467.
    """
    rows = answers(900, 0, 0, **FEMALE)
    z2 = 2.705543
    few = only(decide(left_out(rows, of_women(10)), MARGIN))
    assert few["decision"] == "pass"
    assert few["bound"] == pytest.approx(-(900 * z2 / (900 + z2) + 10) / 910, rel=1e-6)
    many = only(decide(left_out(rows, of_women(20)), MARGIN))
    assert many["decision"] == "cannot tell"
    assert "; it would pass without the examples that were left out; " in many["reason"]
    assert "margin = 0.0247 would pass" in many["reason"]
    assert many["reason"].endswith(
        "20 examples were left out (missing from int8) and are counted as errors of the compressed "
        "model"
    )


def test_what_others_left_out_is_not_this_groups() -> None:
    rows = [*answers(900, 0, 0, **FEMALE), *answers(900, 0, 0, **MALE)]
    decisions = decide(left_out(rows, of_women(90)), MARGIN).rows["decision"].tolist()
    assert decisions == ["cannot tell", "pass"]


def test_a_loss_that_is_shown_stays_shown() -> None:
    assert decide(left_out(answers(1000, 90, 0, **FEMALE), of_women(5)), MARGIN).outcome == "fail"


def test_floors_and_lower_is_better_take_the_worst_too() -> None:
    """Value: 990 of 1,000 are at least .983; with 100 errors more (1,000 × .983) / 1,100 = .894."""
    floor = only(decide(left_out(answers(1000, 0, 0, right=990, **FEMALE), of_women(100)),
                        policy({"min": 0.9})))  # fmt: skip
    assert floor["decision"] == "cannot tell"
    assert floor["bound"] == pytest.approx(floor["low"] * 1000 / 1100)
    rise = spread("shift", 0.0, 0.001, metric="fnr", n=900, **FEMALE)
    row = only(decide(left_out([rise], of_women(100)), policy({"metric": "fnr", "margin": 0.1})))
    assert row["decision"] == "cannot tell"
    # the upper end .001645 over 900, and 100 misses
    assert row["bound"] == pytest.approx((900 * 0.0016449 + 100) / 1000, rel=1e-4)


def test_a_recovery_counts_them_as_right_in_the_baseline() -> None:
    """900 of which the baseline had .8, 10 left out: (720 + 10) / 910 of which 1 % may be lost."""
    audit = left_out(answers(900, 0, 0, **FEMALE), of_women(10), baseline=0.8)
    row = only(decide(audit, policy({"recovery": 0.99})))
    assert row["threshold"] == pytest.approx(-0.01 * 730 / 910)
    assert row["decision"] == "cannot tell"


def test_a_level_of_which_nothing_is_left_is_an_endpoint() -> None:
    audit = left_out(answers(900, 0, 0, **FEMALE), (None, "group", "sex=Other", None, "int8", 40))
    verdict = decide(audit, MARGIN)
    assert verdict.rows["group"].tolist() == ["sex=Female", "sex=Other"]
    assert verdict.rows["decision"].tolist() == ["pass", "cannot tell"]
    assert verdict.rows["reason"].iloc[1] == "not estimable: all of its examples were left out"


def test_an_unknown_number_is_no_pass() -> None:
    """A published audit hides small numbers; that some were left out stays known."""
    audit = left_out(answers(900, 0, 0, **FEMALE), of_women(3))
    hidden = replace(audit, left_out=audit.left_out.assign(n=pd.NA, n_weighted=np.nan))
    row = only(decide(hidden, MARGIN))
    assert row["decision"] == "cannot tell"
    assert "an unknown number of examples were left out" in row["reason"]


def test_of_the_mean_over_tasks_the_task_that_lacks_most_counts() -> None:
    rows = [*answers(900, 0, 0, **FEMALE), *answers(900, 0, 0, task="a", **FEMALE)]
    lines = [(task, "group", "sex=Female", None, "int8", n) for task, n in (("a", 5), ("b", 30))]
    found = decide(left_out(rows, *lines), MARGIN).rows
    assert found["decision"].tolist() == ["cannot tell", "pass"]
    assert found["n_left_out"].tolist() == [30, 5]


# --- Holm ----------------------------------------------------------------------------------------


def reaching(divisor: int, **keys: Any) -> dict[str, Any]:
    """A row whose upper limit is below −0.02 up to this divisor, and above it beyond."""
    high = [-0.03 if j <= divisor else -0.01 for j in DIVISORS]
    return line("shift", -0.05, -0.09, high, n=500, **keys)


def test_failure_is_corrected_for_the_number_of_endpoints() -> None:
    groups = [f"age={i}" for i in range(5)]
    same = [line("shift", 0.0, -0.01, 0.01, n=500, group=g) for g in groups[1:]]
    # 5 endpoints: the first step needs 5, rounded up to 6.
    assert gate([reaching(6, group=groups[0]), *same]).outcome == "fail"
    spared = gate([reaching(4, group=groups[0]), *same])
    assert spared.outcome == "cannot tell"
    reason = spared.rows["reason"].iloc[0]
    assert "; by itself it would fail, but not as one of 5 checks (Holm)" in reason


def test_steps_go_down() -> None:
    """Three endpoints, 3, 2, 1: after the first fails, the second needs only 2."""
    rows = [reaching(3, group="age=a"), reaching(2, group="age=b"), reaching(1, group="age=c")]
    assert gate(rows).rows["decision"].tolist() == ["fail"] * 3
    rows = [reaching(2, group="age=a"), reaching(2, group="age=b"), reaching(1, group="age=c")]
    assert gate(rows).rows["decision"].tolist() == ["cannot tell"] * 3


def test_every_variant_has_its_own_correction() -> None:
    rows = [reaching(1, variant=name, group="age=a") for name in ("a", "b", "c")]
    assert gate(rows).variants == {"a": "fail", "b": "fail", "c": "fail"}


def test_groups_that_are_too_small_to_be_judged_do_not_dilute_the_others() -> None:
    tiny = [line("shift", 0.0, -0.2, 0.2, n=20, group=f"age={i}") for i in range(30)]
    verdict = gate([reaching(1, **FEMALE), *tiny])
    assert verdict.rows["decision"].tolist() == ["fail"] + ["cannot tell"] * 30


def test_unusable_rows_of_sufficient_size_do_count() -> None:
    """Who counts must not depend on what came out."""
    broken = line("shift", 0.0, np.nan, np.nan, n=500, status="not_estimable: unstable", **MALE)
    assert gate([reaching(1, **FEMALE), broken]).rows["decision"].tolist() == ["cannot tell"] * 2
    assert gate([reaching(2, **FEMALE), broken]).outcome == "fail"


def test_more_endpoints_than_levels_never_fail_and_it_is_said() -> None:
    rows = [reaching(1000, group=f"age={i}") for i in range(1001)]
    verdict = gate(rows)
    assert verdict.outcome == "cannot tell"
    assert "More than 1,000 checks" in verdict.notes[0]


# --- what is never a pass ------------------------------------------------------------------------


def test_a_small_group_is_never_a_pass() -> None:
    """99 examples, a gain for everyone; min_group_size is 100."""
    row = only(gate([line("shift", 0.5, 0.4, 0.6, n=99, **FEMALE)]))
    assert row["decision"] == "cannot tell"
    assert row["reason"] == "it has too few examples: min_group_size is 100"
    assert np.isnan(row["certifiable"])
    assert not row["equivalent"]
    assert gate([line("shift", 0.5, 0.4, 0.6, n=100, **FEMALE)]).passed


def test_a_small_group_is_no_failure_either() -> None:
    assert gate(answers(99, 90, 0, **FEMALE)).outcome == "cannot tell"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"status": "not_estimable: unstable"}, "not estimable: unstable"),
        ({"status": "small_group: n < 200"}, "small group: n < 200"),
        ({"low_1": np.nan}, "it has no limits"),
        ({"high_1": np.nan}, "it has no limits"),
        ({"low_1": -np.inf}, "it has no limits"),
        ({"n": None}, "its size is not known: min_group_size is 100"),
    ],
)
def test_rows_without_sound_limits_are_never_a_pass(change: dict[str, Any], reason: str) -> None:
    row = only(gate([line("shift", 0.5, 0.4, 0.6, n=500, **FEMALE) | change]))
    assert (row["decision"], row["reason"]) == ("cannot tell", reason)


def test_limits_without_width_are_never_a_pass() -> None:
    """A bootstrap of examples that all agree knows nothing of rarer ones."""
    for value in (0.0, 1.0):
        rows = [line("shift", value, value, value, n=500, metric="precision", **FEMALE)]
        row = only(gate(rows, policy({"metric": "precision", "margin": 0.02})))
        assert row["decision"] == "cannot tell"
        assert row["reason"] == "its interval has no width, because no example differs"


def test_limits_beyond_their_own_estimate_decide_nothing() -> None:
    """Gaps are biased upwards in replicates: an estimate of 0 with the interval .003 to .05."""
    gap = line("value", 0.0, 0.003, 0.05, n=500, metric="group_gap", kind="grouping", group="sex")
    asked = policy({"metric": "group_gap", "by": "grouping", "max": 0.002})
    assert gate([gap], asked).outcome == "cannot tell"
    assert gate([gap | {"estimate": 0.01}], asked).outcome == "fail"
    ratio = {"metric": "disparate_impact", "kind": "grouping", "group": "sex"}
    floor = policy({"metric": "disparate_impact", "by": "grouping", "min": 0.8})
    assert gate([line("value", 0.79, 0.81, 0.9, n=500, **ratio)], floor).outcome == "cannot tell"


def test_what_is_not_estimable_at_all_cannot_tell_why() -> None:
    """Such a metric has a single row, of its value, that holds the reason."""
    none = line(
        "value", np.nan, np.nan, np.nan, n=1000,
        metric="auc", kind="overall", status="not_estimable: no scores",
    )  # fmt: skip
    row = only(gate([none], policy({"metric": "auc", "by": "overall", "margin": 0.01})))
    assert (row["decision"], row["reason"]) == ("cannot tell", "not estimable: no scores")
    with pytest.raises(
        InputError, match=r'no shift of auc by = "group" \(not estimable: no scores.*give scores'
    ):
        gate([none], policy({"metric": "auc", "margin": 0.01}))


def test_a_gap_that_looks_past_a_small_group_is_no_pass() -> None:
    gap = spread("shift", 0.0, 0.001, metric="group_gap", kind="grouping", group="sex")
    asked = policy({"metric": "group_gap", "by": "grouping", "margin": 0.03})
    large, small = answers(800, 0, 0, **FEMALE), answers(40, 0, 0, **MALE)
    other = answers(40, 0, 0, group="age=old")
    assert gate([gap, *large, *other], asked).passed
    row = only(gate([gap, *large, *small], asked))
    assert row["decision"] == "cannot tell"
    assert row["reason"] == "sex=Male in it has fewer than min_group_size = 100 examples"


def test_a_gap_that_looks_past_missing_values_is_no_pass() -> None:
    gap = spread("shift", 0.0, 0.001, metric="group_gap", kind="grouping", group="sex")
    asked = policy({"metric": "group_gap", "by": "grouping", "margin": 0.03})
    rows = [gap, *answers(800, 0, 0, **FEMALE), *answers(4, 0, 0, group="sex=(missing)")]
    row = only(gate(rows, asked))
    assert row["decision"] == "cannot tell"
    assert row["reason"] == "4 examples have no value of sex, and it looks past them"


# --- which rows ----------------------------------------------------------------------------------


def everyone() -> AuditResult:
    rows = []
    for group in ("sex=Female", "sex=Male", "age=old", "age=young"):
        rows += answers(1000, 0, 0, group=group)
    rows += answers(1000, 0, 0, group="sex=Female & age=old", kind="intersection")
    rows += answers(1000, 0, 0, kind="overall")
    rows += answers(1000, 0, 0, group="sex=(missing)")
    for cls in ("0", "1"):
        rows += answers(1000, 0, 0, metric="recall", kind="class", **{"class": cls})
    return made_audit(rows)


@pytest.mark.parametrize(
    ("rule", "groups"),
    [
        ({}, ["sex=Female", "sex=Male", "age=old", "age=young", "sex=(missing)"]),
        ({"columns": ["sex"]}, ["sex=Female", "sex=Male", "sex=(missing)"]),
        ({"groups": ["age=old", "sex=Male"]}, ["sex=Male", "age=old"]),
        ({"groups": ["sex=(missing)"]}, ["sex=(missing)"]),
        ({"by": "intersection"}, ["sex=Female & age=old"]),
        ({"by": "intersection", "columns": ["sex*age"]}, ["sex=Female & age=old"]),
    ],
)
def test_rules_choose_groups(rule: dict[str, Any], groups: list[str]) -> None:
    verdict = decide(everyone(), policy({"margin": 0.02} | rule))
    assert verdict.rows["group"].tolist() == groups
    assert verdict.rows["by"].unique().tolist() == [rule.get("by", "group")]


def test_rules_choose_classes() -> None:
    asked = policy({"metric": "recall", "by": "class", "margin": 0.02, "classes": ["1"]})
    assert decide(everyone(), asked).rows["class"].tolist() == ["1"]


def test_missing_values_are_a_group_like_any_other() -> None:
    assert decide(everyone(), MARGIN).passed
    lost = [*answers(1000, 0, 0, **FEMALE), *answers(500, 40, 0, group="sex=(missing)")]
    assert gate(lost).rows["decision"].tolist() == ["pass", "fail"]
    few = [*answers(1000, 0, 0, **FEMALE), *answers(99, 0, 0, group="sex=(missing)")]
    assert gate(few).rows["decision"].tolist() == ["pass", "cannot tell"]


def test_missing_values_beside_groups_that_are_named_are_told_of() -> None:
    (note,) = decide(everyone(), policy({"margin": 0.02, "groups": ["sex=Male"]})).notes
    assert note == "Not judged, because the policy names its groups one by one: sex=(missing)."
    assert decide(everyone(), policy({"margin": 0.02, "columns": ["age"]})).notes == ()
    assert decide(everyone(), policy({"margin": 0.02, "groups": ["age=old"]})).notes == ()


def test_of_a_population_the_mean_is_judged_and_it_is_said() -> None:
    """Ten members may pass together while the one that ships would not."""
    audit = everyone()
    (variant,) = audit.variants
    members = {"variant": variant, "n_seeds_baseline": 3, "n_seeds_compressed": 10}
    rows = pd.DataFrame([members], columns=list(audit.results.columns))
    asked = policy({"margin": 0.02, "columns": ["age"]})
    (note,) = decide(replace(audit, results=rows), asked).notes
    assert note.startswith(f"Judged is the mean of the members, not any one of them: {variant} (10")
    single = rows.assign(n_seeds_baseline=1, n_seeds_compressed=1)
    assert decide(replace(audit, results=single), asked).notes == ()


def test_rules_choose_tasks() -> None:
    rows = [
        *answers(1000, 0, 0, kind="overall", task="smiling"),
        *answers(1000, 0, 0, kind="overall", task="young"),
        *answers(1000, 0, 0, kind="overall"),
    ]
    audit = made_audit(rows, tasks=("smiling", "young"))
    asked = {"by": "overall", "margin": 0.02}
    assert len(decide(audit, policy(asked)).rows) == 3
    one = decide(audit, policy(asked | {"tasks": ["young"]})).rows
    assert one["task"].tolist() == ["young"]
    mean = decide(audit, policy(asked | {"tasks": ["(mean)"]})).rows
    assert mean["task"].isna().tolist() == [True]
    with pytest.raises(InputError, match=r"the task 'yung' does not exist.*Did you mean 'young'"):
        decide(audit, policy(asked | {"tasks": ["yung"]}))


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"groups": ["sex=Femal"]}, "Rule 1 of the policy: the group 'sex=Femal' does not exist"),
        ({"groups": ["sex=Female"], "columns": ["age"]}, "the group 'sex=Female' does not exist"),
        ({"columns": ["race"]}, "Rule 1 of the policy: the column 'race' does not exist"),
        ({"metric": "recall", "by": "class", "classes": [7]}, "the class '7' does not exist"),
        ({"metric": "auc"}, 'the audit has no shift of auc by = "group"; name group columns'),
        ({"by": "class"}, 'no shift of accuracy by = "class"; leave the rule out'),
    ],
)
def test_what_is_named_and_absent_is_bad_input(rule: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        decide(everyone(), policy({"margin": 0.02} | rule))
    assert told in str(caught.value)


def test_required_groups() -> None:
    assert decide(everyone(), policy({"margin": 0.02}, require_groups=["age=old"])).passed
    with pytest.raises(InputError, match="'sex=Other' does not exist"):
        decide(everyone(), policy({"margin": 0.02}, require_groups=["sex=Other"]))


def test_a_variant_without_the_row_is_bad_input_not_a_pass() -> None:
    rows = [*answers(500, 0, 0, **FEMALE), *answers(500, 0, 0, variant="b", **MALE)]
    with pytest.raises(InputError, match="the group 'sex=Female' does not exist"):
        gate(rows, policy({"margin": 0.02, "groups": ["sex=Female"]}))


def test_an_audit_without_limits_is_bad_input() -> None:
    audit = replace(everyone(), bounds=frame("bounds"))
    with pytest.raises(InputError, match="holds no limits for a gate"):
        decide(audit, MARGIN)


# --- several variants ----------------------------------------------------------------------------


def variants(**outcomes: str) -> list[dict[str, Any]]:
    shifts = {"pass": (-0.001, 0.001), "fail": (-0.09, -0.05), "cannot tell": (-0.09, 0.05)}
    return [
        line("shift", sum(shifts[outcome]) / 2, *shifts[outcome], n=500, variant=name, **FEMALE)
        for name, outcome in outcomes.items()
    ]


@pytest.mark.parametrize(
    ("outcomes", "all_of_them", "any_of_them"),
    [
        (("pass", "pass"), "pass", "pass"),
        (("pass", "cannot tell"), "cannot tell", "pass"),
        (("pass", "fail"), "fail", "pass"),
        (("cannot tell", "fail"), "fail", "cannot tell"),
        (("fail", "fail"), "fail", "fail"),
    ],
)
def test_require(outcomes: tuple[str, str], all_of_them: str, any_of_them: str) -> None:
    rows = variants(a=outcomes[0], b=outcomes[1])
    assert gate(rows).outcome == all_of_them
    assert gate(rows, require="any").outcome == any_of_them
    assert gate(rows).variants == {"a": outcomes[0], "b": outcomes[1]}


@pytest.mark.parametrize("require", ["all", "any"])
def test_choosing_among_variants_is_said_to_be_choosing(require: Any) -> None:
    (note,) = gate(variants(a="pass", b="pass"), require=require).notes
    assert note.startswith("Selected on these data: 2 variants were tried, and the best of them")
    assert gate(variants(a="pass"), require=require).notes == ()


def test_require_is_all_or_any() -> None:
    with pytest.raises(InputError, match="cannot be 'most'; use all or any"):
        gate(variants(a="pass"), require="most")


def test_columns_of_the_verdict() -> None:
    assert tuple(gate(variants(a="pass")).rows.columns) == column_names("endpoints")
