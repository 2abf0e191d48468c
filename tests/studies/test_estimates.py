"""Which stored row a claim is judged by, and what is said where there is none."""

from __future__ import annotations

from math import isnan, nan, sqrt
from pathlib import Path

import pandas as pd
import pytest
from tests.studies.published import claim, judge, members, only, publish, results

from fairweight.auditing.explain.individuals import individual_fits
from fairweight.errors import InputError
from fairweight.studies.claims import CANNOT_TELL, DOES_NOT, NOT_REACHED, REPRODUCES, WEAKER


def test_a_shift_with_its_interval_and_what_retraining_moves(tmp_path: Path) -> None:
    results(tmp_path, {})
    found, verdict = only(tmp_path)
    assert (found.value, found.low, found.high, found.floor) == (-0.05, -0.07, -0.03, 0.01)
    assert (verdict, found.scope, found.interval) == (REPRODUCES, "model", "by hand")
    assert only(tmp_path, smallest=0.08)[1] == WEAKER
    assert only(tmp_path, direction="up")[1] == DOES_NOT
    assert only(tmp_path, direction="not-down", smallest=0.05)[1] == CANNOT_TELL
    assert only(tmp_path, direction="not-down", smallest=0.02)[1] == DOES_NOT


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
    assert [(line.name, line.verdict) for line in found.lines] == [
        ("pruned-50", CANNOT_TELL), ("pruned-90", REPRODUCES), ("pruned-99", CANNOT_TELL),
    ]  # fmt: skip
    assert [line.estimate.reason for line in found.lines] == [
        "these results have no such row", "", "",
    ]  # fmt: skip
    assert found.verdict == CANNOT_TELL


def test_one_line_for_each_value_that_is_stored(tmp_path: Path) -> None:
    results(tmp_path, {}, {"variant": "pruned-99"})
    found = judge(tmp_path, where={"metric": "accuracy"}, each=["variant"])
    assert [line.name for line in found.lines] == ["pruned-90", "pruned-99"]
    none = judge(tmp_path, where={"metric": "recall"}, each=["variant"])
    assert [(line.name, line.estimate.reason) for line in none.lines] == [
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
    rows = members({"kd": [0.80, 0.83, 0.86, 0.83], "plain": [0.79, 0.80, 0.81, 0.80, 0.99]})
    publish(tmp_path, "per_seed", rows)
    where = {"metric": "accuracy", "variant": "kd"}
    found, verdict = only(
        tmp_path, where=where, against={"where": {"variant": "plain"}}, direction="up"
    )
    # .01, .03, .05, .03 over the four seeds that both have: t of 3 degrees of freedom; the
    # squared distances from .03 are 4, 0, 4 and 0 times 1e-4.
    assert found.value == pytest.approx(0.03)
    assert found.low == pytest.approx(0.03 - 3.1824463 * sqrt(8e-4 / 3) / sqrt(4))
    assert (found.scope, found.interval) == ("members", "Student's t over 4 pairs by seed")
    assert verdict == REPRODUCES


def test_members_of_two_experiments_and_their_means_over_tasks(tmp_path: Path) -> None:
    joint = [
        *members({"dense": [0.5, 0.6, 0.4, 0.5]}, task="hat"),
        *members({"dense": [0.7, 0.8, 0.9, 0.8]}, task="beard"),
        *members({"dense": [0.1, nan, 0.1, 0.1]}, task="scarf"),
    ]
    single = [
        *members({"dense": [0.6, 0.8, 0.7, 0.6]}, task="hat"),
        *members({"dense": [0.8, 1.0, 1.0, 0.9]}, task="beard"),
        *members({"dense": [0.9, 0.9, 0.9, 0.9]}, task="scarf"),
    ]
    publish(tmp_path, "per_seed", joint, folder="joint")
    publish(tmp_path, "per_seed", single, folder="single")
    asked = {"folder": "single", "against": {"folder": "joint"}, "direction": "up"}
    where = {"metric": "accuracy", "variant": "dense"}
    found, _ = only(tmp_path, where=where, mean_over="task", **asked)
    assert found.value == pytest.approx((0.1 + 0.2 + 0.2 + 0.1) / 4)  # scarf lacks a member
    one, _ = only(tmp_path, where=where | {"task": "hat"}, **asked)
    assert one.value == pytest.approx((0.1 + 0.2 + 0.3 + 0.1) / 4)


def test_ratios_are_geometric_means(tmp_path: Path) -> None:
    rows = members({"kd-30": [1.0, 2.0, 2.0, 1.0], "plain-30": [4.0, 4.0, 8.0, 2.0]})
    publish(tmp_path, "per_seed", rows)
    asked = {"each": ["variant"], "against": {"replace": {"kd": "plain"}}, "ratio": True}
    where = {"metric": "accuracy", "variant": ["kd-30"]}
    (line,) = judge(tmp_path, where=where, null=1.0, smallest=0.2, **asked).lines
    assert line.name == "kd-30"
    found = line.estimate
    assert found.value == pytest.approx((1 / 4 * 1 / 2 * 1 / 4 * 1 / 2) ** (1 / 4))
    assert 0 < found.low < found.value < found.high


def test_correction_over_lines_of_members(tmp_path: Path) -> None:
    rows = members({"a": [0.1, 0.2, 0.3, 0.2], "b": [0.1, 0.2, 0.3, 0.2], "plain": [0.0] * 4})
    publish(tmp_path, "per_seed", rows)
    where = {"metric": "accuracy", "variant": ["a", "b"]}
    asked = {"each": ["variant"], "against": {"where": {"variant": "plain"}}, "corrected": True}
    found = judge(tmp_path, where=where, **asked).lines[0].estimate
    # t of 3 degrees of freedom at 1 − .05 / 4
    assert found.low == pytest.approx(0.2 - 4.1765349 * sqrt(0.02 / 3) / 2)


@pytest.mark.parametrize(
    ("own", "other", "reason"),
    [
        ([0.1, 0.2, 0.3], [0.1] * 3, "3 pairs of members, 4 are needed"),
        ([0.2] * 4, [0.1] * 4, "members do not differ, so their spread says nothing"),
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
    publish(tmp_path, "per_seed", members({"dense": [0.5, 0.6, 0.7, 0.6], "pruned-90": [0.1]}))
    found, verdict = only(tmp_path, value="baseline", null=1.0)
    assert found.value == pytest.approx(0.6)
    assert found.high == pytest.approx(0.6 + 3.1824463 * sqrt(0.02 / 3) / 2)
    assert (found.interval, found.scope) == ("Student's t over 4 dense members", "members")
    assert verdict == REPRODUCES
    assert only(tmp_path, value="compressed")[0].reason == "undefined"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"folder": None}, "'accuracy' needs either folder or unjudged"),
        ({"unjudged": "no"}, "'accuracy' needs either folder or unjudged"),
        ({"mean_over": "task"}, "'accuracy' has mean_over or ratio, which need against"),
        ({"ratio": True, "against": {}}, "'accuracy' is a ratio; give null = 1"),
        ({"needs": "some"}, "'accuracy' needs some of its lines; give corrected = true"),
        ({"corrected": True, "value": "compressed"}, "only shift and against can be"),
        ({"smallest": 0}, "smallest = 0 cannot be used"),
        ({"says": 0.1}, "says 0.1, which is not down"),
        ({"direction": "none", "says": 0.1}, "claims no change, so it says no number"),
        ({"level": {"family": "p-*", "loss": [0.01]}}, "has a level, which says the variant"),
        ({"where": {"variant": "{level}"}}, r"names \{level\}; give level"),
        ({"where": {}, "level": {"family": "p-*"}}, "needs either loss or between"),
        ({"direction": "sideways"}, "direction = 'sideways' cannot be used"),
        ({"wehre": {}}, "wehre"),
        ({"against": {"fodler": "a"}}, "fodler"),
    ],
)
def test_claims_that_cannot_be_used(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        claim(**fields)


def losing(**by_variant: float) -> list[dict[str, object]]:
    """Rows of accuracy of variants `pruned_90` that lose so much."""
    return [
        {"variant": name.replace("_", "-"), "shift": -loss, "ci_low": -loss - 0.01,
         "ci_high": -loss + 0.01}
        for name, loss in by_variant.items()
    ]  # fmt: skip


def test_levels_are_matched_by_loss_of_accuracy(tmp_path: Path) -> None:
    results(tmp_path, *losing(pruned_50=0.002, pruned_90=0.012, pruned_99=0.05, int8=0.013))
    asked = {"where": {"metric": "accuracy"}, "smallest": 0.001}
    found = judge(tmp_path, level={"family": "pruned-*", "loss": [0.0134, 0.02, 0.2]}, **asked)
    # .012 is nearest to .0134; to .02 it is, too: log(.02 / .012) = .51 < log(.05 / .02) = .92, and
    # .05 is out of [.01, .04]; nothing is between .1 and .4.
    assert [line.name for line in found.lines] == [
        "pruned-90 (loses 1.2, the paper 1.3)", "pruned-90 (loses 1.2, the paper 2.0)",
        "a loss of 20 points",
    ]  # fmt: skip
    assert [line.verdict for line in found.lines] == [REPRODUCES, REPRODUCES, NOT_REACHED]
    assert found.lines[2].estimate.reason == (
        "no level loses about 20.0 points, as the paper's does (they lose 0.2, 1.2, 5.0)"
    )
    assert found.verdict == REPRODUCES  # of those that are reached


def test_the_level_that_loses_most_within_limits(tmp_path: Path) -> None:
    results(tmp_path, *losing(pruned_50=-0.004, pruned_90=0.004, pruned_99=0.05))
    asked = {"where": {"metric": "accuracy"}, "smallest": 0.001}
    found = judge(tmp_path, level={"family": "pruned-*", "between": [-1, 0.005]}, **asked)
    assert [line.name for line in found.lines] == ["pruned-90 (loses 0.4 points)"]
    none = judge(tmp_path, level={"family": "pruned-*", "between": [0.1, 0.3]}, **asked)
    assert none.lines[0].estimate.reason == (
        "no level loses 10 to 30 points (they lose −0.4, 0.4, 5.0)"
    )
    other = judge(tmp_path, level={"family": "gmp-*", "between": [0.1, 0.3]}, **asked)
    assert (other.verdict, other.lines[0].estimate.reason) == (
        CANNOT_TELL, "these results have no variant gmp-*",
    )  # fmt: skip


def test_a_level_names_the_variant_of_a_mitigation(tmp_path: Path) -> None:
    results(tmp_path, *losing(pruned_90=0.01), folder="joint")
    row = {"variant": "pruned-90+thresholds", "against": "pruned-90", "by": "overall"}
    limits = {"shift": -0.1, "low": -0.2, "high": -0.05}
    publish(tmp_path, "mitigation", [row | limits], folder="calibrated")
    found, _ = only(
        tmp_path, folder="calibrated", table="mitigation",
        where={"variant": "{level}+thresholds", "against": "{level}"},
        level={"family": "pruned-*", "loss": [0.01], "folder": "joint"},
    )  # fmt: skip
    assert (found.value, found.low) == (-0.1, -0.2)


def test_levels_on_both_sides(tmp_path: Path) -> None:
    results(tmp_path, *losing(pruned_90=0.01, pruned_99=0.04))
    publish(tmp_path, "per_seed", members({
        "pruned-90": [0.8, 0.8, 0.8, 0.8], "pruned-99": [0.7, 0.75, 0.7, 0.75],
    }))  # fmt: skip
    found, _ = only(
        tmp_path, where={"metric": "accuracy"}, level={"family": "pruned-*", "loss": [0.04]},
        against={"level": {"family": "pruned-*", "loss": [0.01]}},
    )  # fmt: skip
    assert found.value == pytest.approx(-0.075)


def test_the_dense_side_is_the_same_for_all_variants(tmp_path: Path) -> None:
    results(tmp_path, {}, {"variant": "pruned-99"})
    found, _ = only(tmp_path, where={"metric": "accuracy"}, value="baseline", null=1.0)
    assert found.value == 0.9
