"""Which stored row a claim is judged by, and what is said where there is none."""

from __future__ import annotations

from math import isnan, nan, sqrt
from pathlib import Path

import pandas as pd
import pytest

from fairweight.auditing.explain.individuals import individual_fits
from fairweight.errors import InputError
from fairweight.studies.claims import CANNOT_TELL, DOES_NOT, REPRODUCES, SMALLER

from .published import claim, judge, members, only, publish, results


def test_a_shift_with_its_interval_and_what_retraining_moves(tmp_path: Path) -> None:
    results(tmp_path, {})
    found, verdict = only(tmp_path)
    assert (found.value, found.low, found.high, found.floor) == (-0.05, -0.07, -0.03, 0.01)
    assert (verdict, found.scope, found.interval) == (REPRODUCES, "model", "by hand")
    assert only(tmp_path, smallest=0.08)[1] == SMALLER
    assert only(tmp_path, direction="up")[1] == DOES_NOT
    assert only(tmp_path, direction="not-down", smallest=0.05)[1] == DOES_NOT


def test_other_columns_have_their_own_limits_and_value_of_no_effect(tmp_path: Path) -> None:
    results(tmp_path, {})
    found, verdict = only(tmp_path, value="baseline", null=1.0, smallest=0.1)
    assert (found.value, found.low, found.high) == (0.9, 0.88, 0.92)
    assert verdict == REPRODUCES  # .08 to .12 below 1
    assert isnan(found.floor)
    assert only(tmp_path, value="compressed", null=0.8, smallest=0.05)[1] == DOES_NOT
    assert only(tmp_path, value="weight")[0].reason == "the table results has no column weight"


def test_a_comparison_has_its_limits_beside_no_baseline(tmp_path: Path) -> None:
    results(tmp_path, {"baseline": nan, "compressed_low": nan, "compressed_high": nan})
    found, _ = only(tmp_path, value="compressed")
    assert (found.value, found.low, found.high) == (0.85, -0.07, -0.03)


def test_what_a_row_is_about_is_named_or_empty(tmp_path: Path) -> None:
    other = {"shift": 0.5, "ci_low": 0.4, "ci_high": 0.6}
    named = [{"by": "group", "group": "sex=f"}, {"by": "class", "class": "a"}, {"task": "hat"}]
    results(tmp_path, *[key | other for key in named], {})
    assert only(tmp_path)[0].value == -0.05
    where = {"metric": "accuracy", "variant": "pruned-90"}
    for more in ({"group": "sex=f"}, {"class": "a"}, {"task": "hat"}):
        assert only(tmp_path, where=where | more)[0].value == 0.5
    found, verdict = only(tmp_path, where=where | {"task": "*"})
    assert (found.reason, verdict) == (
        "2 rows are meant; the claim must name more columns", CANNOT_TELL,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("n", "status", "scope"),
    [(5, "ok", "method"), (3, "ok", "model"), (5, "not_estimable: one baseline model", "model")],
)
def test_the_method_where_enough_models_were_trained(
    tmp_path: Path, n: int, status: str, scope: str
) -> None:
    wide = {"scope": "method", "n_seeds_compressed": n, "status": status, "ci_low": -0.2}
    results(tmp_path, {}, wide)
    found, _ = only(tmp_path)
    assert found.scope == scope
    assert found.low == (-0.2 if scope == "method" else -0.07)


def test_one_line_for_each_value_that_is_listed(tmp_path: Path) -> None:
    results(tmp_path, {}, {"variant": "pruned-99", "ci_low": -0.3, "ci_high": 0.1})
    found = judge(
        tmp_path,
        where={"metric": "accuracy", "variant": ["pruned-50", "pruned-90", "pruned-99"]},
        each=["variant"],
    )
    assert [(line, verdict) for line, _, verdict in found.lines] == [
        ("pruned-50", CANNOT_TELL), ("pruned-90", REPRODUCES), ("pruned-99", CANNOT_TELL),
    ]  # fmt: skip
    assert [estimate.reason for _, estimate, _ in found.lines] == [
        "these results have no such row", "", "",
    ]  # fmt: skip
    assert found.verdict == CANNOT_TELL


def test_one_line_for_each_value_that_is_stored(tmp_path: Path) -> None:
    results(tmp_path, {}, {"variant": "pruned-99"})
    found = judge(tmp_path, where={"metric": "accuracy"}, each=["variant"])
    assert [line for line, _, _ in found.lines] == ["pruned-90", "pruned-99"]
    none = judge(tmp_path, where={"metric": "recall"}, each=["variant"])
    assert [(line, told.reason) for line, told, _ in none.lines] == [
        ("", "these results have no such row")
    ]


def test_limits_for_all_lines_together(tmp_path: Path) -> None:
    results(tmp_path, {})
    found, _ = only(tmp_path, corrected=True)
    assert (found.low, found.high) == (-0.09, -0.01)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"ci_low": nan}, "no interval"),
        ({"status": "not_estimable: 3 clusters"}, "3 clusters"),
        ({"status": "too few splits", "ci_high": nan}, "too few splits"),
    ],
)
def test_what_cannot_be_told_has_its_reason(
    tmp_path: Path, row: dict[str, object], reason: str
) -> None:
    results(tmp_path, row)
    assert only(tmp_path)[1] == CANNOT_TELL
    assert only(tmp_path)[0].reason == reason


def test_missing_places(tmp_path: Path) -> None:
    results(tmp_path, {})
    assert only(tmp_path, folder="other")[0].reason == "these results have no other"
    assert only(tmp_path, table="risk")[0].reason == "digits has no table risk"
    nothing = only(tmp_path, where={"colour": "red"})[0].reason
    assert nothing == "the table has no column colour"
    unjudged = only(tmp_path, folder=None, where={}, unjudged="no such data")
    assert (unjudged[0].reason, unjudged[1]) == ("no such data", CANNOT_TELL)
    with pytest.raises(InputError, match=r"no results in .*--results DIR"):
        only(tmp_path / "nowhere")


def test_other_tables_and_numbers_as_keys(tmp_path: Path) -> None:
    row = {"variant": "v", "score": "low", "percentile": None, "auc": 0.9, "auc_low": 0.8}
    publish(tmp_path, "risk", [row | {"auc_high": 0.95, "status": "ok"}], folder="joint")
    found, verdict = only(
        tmp_path, folder="joint", table="risk", where={"variant": "v", "score": "low"},
        value="auc", null=0.5, direction="up", smallest=0.2,
    )  # fmt: skip
    assert (found.low, verdict) == (0.8, REPRODUCES)
    curve = {"variant": "v", "budget": 0.1 + 0.2, "change": -0.1}
    publish(tmp_path, "override_curves", [curve | {"change_low": -0.2, "change_high": 0.0}])
    asked = {"table": "override_curves", "value": "change"}
    assert only(tmp_path, where={"variant": "v", "budget": 0.3}, **asked)[0].value == -0.1
    assert only(tmp_path, where={"variant": "v", "budget": 0.31}, **asked)[0].reason


def test_a_slope_has_the_limits_of_its_standard_error(tmp_path: Path) -> None:
    row = {"side": "shift", "property": "tilt", "slope": -0.5, "slope_se": 0.1, "n": 12}
    publish(tmp_path, "individual_fits", [row | {"group": None}])
    found, verdict = only(
        tmp_path, table="individual_fits", where={"property": "tilt"}, value="slope"
    )
    assert found.low == pytest.approx(-0.5 - 2.2281389 * 0.1)  # t of 10 degrees of freedom
    assert (found.high, verdict) == (pytest.approx(-0.5 + 2.2281389 * 0.1), REPRODUCES)


def test_lines_through_the_changes_of_individuals_are_fitted(tmp_path: Path) -> None:
    # The change is −.1 times the tilt, and ± .01 in turn, which leaves the slope as it is.
    noise = [0.01, -0.01, -0.01, 0.01]
    people = [
        {"variant": "v", "group": "a", "baseline": 1.0, "compressed": 1 - 0.1 * x + e,
         "shift": -0.1 * x + e, "tilt": float(x), "n": 10}
        for x, e in enumerate(noise)
    ]  # fmt: skip
    publish(tmp_path, "individuals", people)
    found, _ = only(
        tmp_path, table="individual_change_fits", where={"property": "tilt", "group": "a"},
        value="slope",
    )  # fmt: skip
    fits = individual_fits(pd.DataFrame(people), sides=("shift",))
    error = fits.loc[(fits["group"] == "a") & (fits["property"] == "tilt"), "slope_se"].item()
    assert found.value == pytest.approx(-0.1)
    assert found.low == pytest.approx(-0.1 - 4.3026527 * error)  # t of 2 degrees of freedom


def test_differences_over_paired_members(tmp_path: Path) -> None:
    rows = members({"kd": [0.80, 0.83, 0.86], "plain": [0.79, 0.80, 0.81, 0.99]})
    publish(tmp_path, "per_seed", rows)
    where = {"metric": "accuracy", "variant": "kd"}
    found, verdict = only(
        tmp_path, where=where, against={"where": {"variant": "plain"}}, direction="up"
    )
    # .01, .03, .05 over the three seeds that both have: t of 2 degrees of freedom.
    assert found.value == pytest.approx(0.03)
    assert found.low == pytest.approx(0.03 - 4.3026527 * 0.02 / sqrt(3))
    assert (found.scope, found.interval) == ("members", "Student's t over 3 pairs by seed")
    assert verdict == CANNOT_TELL


def test_members_of_two_experiments_and_their_means_over_tasks(tmp_path: Path) -> None:
    joint = [
        *members({"dense": [0.5, 0.6, 0.4]}, task="hat"),
        *members({"dense": [0.7, 0.8, 0.9]}, task="beard"),
        *members({"dense": [0.1, nan, 0.1]}, task="scarf"),
    ]
    single = [
        *members({"dense": [0.6, 0.8, 0.7]}, task="hat"),
        *members({"dense": [0.8, 1.0, 1.0]}, task="beard"),
        *members({"dense": [0.9, 0.9, 0.9]}, task="scarf"),
    ]
    publish(tmp_path, "per_seed", joint, folder="joint")
    publish(tmp_path, "per_seed", single, folder="single")
    asked = {"folder": "single", "against": {"folder": "joint"}, "direction": "up"}
    where = {"metric": "accuracy", "variant": "dense"}
    found, _ = only(tmp_path, where=where, mean_over="task", **asked)
    assert found.value == pytest.approx((0.1 + 0.2 + 0.2) / 3)  # scarf lacks a member
    one, _ = only(tmp_path, where=where | {"task": "hat"}, **asked)
    assert one.value == pytest.approx((0.1 + 0.2 + 0.3) / 3)


def test_ratios_are_geometric_means(tmp_path: Path) -> None:
    rows = members({"kd-30": [1.0, 2.0, 2.0], "plain-30": [4.0, 4.0, 8.0]})
    publish(tmp_path, "per_seed", rows)
    asked = {"each": ["variant"], "against": {"replace": {"kd": "plain"}}, "ratio": True}
    where = {"metric": "accuracy", "variant": ["kd-30"]}
    ((line, found, _),) = judge(tmp_path, where=where, null=1.0, smallest=0.2, **asked).lines
    assert line == "kd-30"
    assert found.value == pytest.approx((1 / 4 * 1 / 2 * 1 / 4) ** (1 / 3))
    assert 0 < found.low < found.value < found.high


def test_correction_over_lines_of_members(tmp_path: Path) -> None:
    rows = members({"a": [0.1, 0.2, 0.3], "b": [0.1, 0.2, 0.3], "plain": [0.0, 0.0, 0.0]})
    publish(tmp_path, "per_seed", rows)
    where = {"metric": "accuracy", "variant": ["a", "b"]}
    asked = {"each": ["variant"], "against": {"where": {"variant": "plain"}}, "corrected": True}
    ((_, found, _), _) = judge(tmp_path, where=where, **asked).lines
    assert found.low == pytest.approx(0.2 - 6.2053468 * 0.1 / sqrt(3))  # t at 1 − .05 / 4


@pytest.mark.parametrize(
    ("own", "other", "reason"),
    [
        ([0.1, 0.2], [0.1, 0.1], "2 pairs of members, 3 are needed"),
        ([0.2, 0.2, 0.2], [0.1, 0.1, 0.1], "members do not differ, so their spread says nothing"),
        ([0.1, 0.2, nan], [0.1, 0.1, 0.1], "undefined for 1 of 3 pairs of members"),
    ],
)
def test_too_little_for_a_difference(
    tmp_path: Path, own: list[float], other: list[float], reason: str
) -> None:
    publish(tmp_path, "per_seed", members({"kd": own, "plain": other}))
    where = {"metric": "accuracy", "variant": "kd"}
    found, verdict = only(tmp_path, where=where, against={"where": {"variant": "plain"}})
    assert (found.reason, verdict) == (reason, CANNOT_TELL)
    absent, _ = only(tmp_path, where=where, against={"where": {"variant": "other"}})
    assert absent.reason == "these results have no such members"


def test_a_member_without_the_quantity_is_not_left_out(tmp_path: Path) -> None:
    rows = members({"kd": [0.1, 0.2, 0.4], "plain": [0.1, 0.1, 0.1, 0.2]})
    known = members({"kd": [0.5] * 4}, metric="recall")
    publish(tmp_path, "per_seed", rows + known)
    where = {"metric": "accuracy", "variant": "kd"}
    found, _ = only(tmp_path, where=where, against={"where": {"variant": "plain"}})
    assert found.reason == "undefined for 1 of 4 pairs of members"


def test_dense_models_speak_for_themselves_where_the_compressed_cannot(tmp_path: Path) -> None:
    row = {"baseline_low": nan, "baseline_high": nan, "status": "not_estimable: undefined"}
    results(tmp_path, row)
    publish(tmp_path, "per_seed", members({"dense": [0.5, 0.6, 0.7], "pruned-90": [0.1]}))
    found, verdict = only(tmp_path, value="baseline", null=1.0)
    assert found.value == pytest.approx(0.6)
    assert found.high == pytest.approx(0.6 + 4.3026527 * 0.1 / sqrt(3))
    assert (found.interval, found.scope) == ("Student's t over 3 dense members", "members")
    assert verdict == REPRODUCES
    assert only(tmp_path, value="compressed")[0].reason == "undefined"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"folder": None}, "'c' needs either folder or unjudged"),
        ({"unjudged": "no"}, "'c' needs either folder or unjudged"),
        ({"mean_over": "task"}, "'c' has mean_over or ratio, which need against"),
        ({"ratio": True, "against": {}}, "'c' is a ratio; give null = 1"),
        ({"needs": "some"}, "'c' needs some of its lines; give corrected = true"),
        ({"corrected": True, "value": "compressed"}, "only shift and against can be"),
        ({"smallest": 0}, "smallest = 0 cannot be used"),
        ({"direction": "sideways"}, "direction = 'sideways' cannot be used"),
        ({"wehre": {}}, "wehre"),
        ({"against": {"fodler": "a"}}, "fodler"),
    ],
)
def test_claims_that_cannot_be_used(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        claim(**fields)
