"""Which metrics can carry which demands."""

from __future__ import annotations

from typing import Any

import pytest

from fairweight.auditing.gate.endpoints import Demand, demands
from fairweight.auditing.metrics import Metric, metrics
from fairweight.errors import InputError
from fairweight.specs.policy import read_policy


def of(metric: str, by: str = "group", **limits: float) -> tuple[Demand, ...]:
    return demands(read_policy({"rule": [{"metric": metric, "by": by} | limits]}))[0]


def refused(metric: str, by: str = "group", **limits: float) -> str:
    with pytest.raises(InputError) as caught:
        of(metric, by, **limits)
    assert "ule 1 of the policy" in str(caught.value)
    return str(caught.value)


def test_a_margin_on_a_higher_is_better_metric() -> None:
    (demand,) = of("accuracy", margin=0.02)
    assert (demand.quantity, demand.sign, demand.threshold) == ("shift", 1, -0.02)


def test_a_margin_on_a_lower_is_better_metric() -> None:
    (demand,) = of("fnr", margin=0.02)
    assert (demand.quantity, demand.sign, demand.threshold) == ("shift", -1, -0.02)


def test_floors_and_ceilings() -> None:
    (floor,) = of("accuracy", min=0.8)
    assert (floor.quantity, floor.sign, floor.threshold) == ("value", 1, 0.8)
    (ceiling,) = of("fnr", max=0.2)
    assert (ceiling.quantity, ceiling.sign, ceiling.threshold) == ("value", -1, -0.2)


def test_a_comparison_is_a_change_already_so_its_margin_is_about_its_value() -> None:
    (unevenness,) = of("cev_pp", "overall", margin=4)
    assert (unevenness.quantity, unevenness.sign, unevenness.threshold) == ("value", -1, -4)
    (worst,) = of("worst_group_shift", "grouping", margin=0.03)
    assert (worst.quantity, worst.sign, worst.threshold) == ("value", 1, -0.03)
    (flips,) = of("harmful_flips", margin=0.03)
    assert (flips.quantity, flips.sign) == ("value", -1)


def test_ratios_take_a_floor_and_no_margin() -> None:
    (floor,) = of("disparate_impact", "grouping", min=0.8)
    assert (floor.quantity, floor.sign, floor.threshold) == ("value", 1, 0.8)
    sentence = refused("disparate_impact", "grouping", margin=0.1)
    assert "has a floor (min) but no margin" in sentence
    assert "demographic_parity_difference" in sentence
    assert "max cannot be used" in refused("ppv_ratio", "grouping", max=0.9)


@pytest.mark.parametrize(
    ("metric", "by", "instead"),
    [
        ("cev", "overall", "cev_pp"),
        ("sde", "group", "sde_pp"),
        ("normalized_error_change", "overall", "error_rate"),
        ("selection_rate", "group", "selection_rate_group_gap"),
        ("tcb", "overall", "selection_rate_group_gap"),
        ("bias_amplification", "group", "worst_case_bias_amplification"),
        ("heterogeneity", "grouping", "group_gap"),
    ],
)
def test_metrics_without_a_direction_or_unit_are_refused(
    metric: str, by: str, instead: str
) -> None:
    for limits in ({"margin": 0.02}, {"min": 0.1}, {"max": 0.1}):
        assert refused(metric, by, **limits).endswith(f"use {instead}.")


@pytest.mark.parametrize("metric", ["ece", "ece_top_label"])
@pytest.mark.parametrize("limits", [{"margin": 0.02}, {"max": 0.1}])
def test_calibration_errors_without_limits_are_refused_with_the_remedy(
    metric: str, limits: dict[str, float]
) -> None:
    told = refused(metric, **limits)
    assert told.endswith("use calibration_error_sq.")


def test_a_recovery_is_a_share_of_the_baselines_rate() -> None:
    (demand,) = of("accuracy", recovery=0.99)
    # per unit of the baseline: 0.99 − 1
    assert (demand.quantity, demand.sign, demand.criterion) == ("shift", 1, "recovery")
    assert demand.threshold == pytest.approx(-0.01)
    assert of("recall", "class", recovery=0.99)
    for metric in ("fnr", "kappa", "auc", "precision"):
        told = refused(metric, recovery=0.99)
        assert f"accuracy or recall or top5_accuracy, not of {metric}" in told


def test_chance_is_a_random_guess_among_the_classes() -> None:
    (accuracy,), (top5,) = of("accuracy", recovery=0.99), of("top5_accuracy", recovery=0.99)
    assert (accuracy.chance(10), top5.chance(10), top5.chance(3)) == (0.1, 0.5, 1.0)


def test_what_is_offered_instead_exists_and_is_accepted() -> None:
    known = {entry.name: entry for entry in metrics()}
    offered = {entry.instead for entry in metrics() if entry.instead is not None}
    assert len(offered) > 10
    for instead in offered:
        by = next(level for level in known[instead].by if level != "group*class")
        assert of(instead, by, margin=0.01)


REFUSED = {
    "calibration_gap",
    "selection_rate", "bias", "bias_amplification", "tcb", "cev", "sde",
    "normalized_error_change", "normalized_fpr_change", "normalized_fnr_change", "helpful_flips",
    "disparate_impact", "ppv_ratio", "heterogeneity", "heterogeneity_within_classes",
    "concentration", "class_impact",
    "ece", "ece_top_label",
    "total_variation", "kl_divergence", "first_choice_agreement",
}  # fmt: skip


@pytest.mark.parametrize("entry", metrics(), ids=lambda entry: entry.name)
def test_every_metric_has_a_decision_about_margins(entry: Metric) -> None:
    by = next(level for level in entry.by if level != "group*class")
    if entry.name in REFUSED:
        assert entry.name in refused(entry.name, by, margin=0.01)
    else:
        (demand,) = of(entry.name, by, margin=0.01)
        assert demand.sign == {"higher": 1, "lower": -1}[entry.better]


@pytest.mark.parametrize(
    ("metric", "by", "limits", "told"),
    [
        ("acuracy", "group", {"margin": 0.1}, "Did you mean 'accuracy'?"),
        ("group_gap", "group", {"margin": 0.1}, 'no rows by = "group"; use "grouping"'),
        ("kappa", "class", {"margin": 0.1}, 'use "overall" or "group" or "intersection"'),
        ("accuracy", "group", {"margin": 2}, "can lose at most 1; give a smaller margin"),
        ("accuracy", "group", {"margin": 1}, "two points are 0.02"),
        ("accuracy", "group", {"max": 0.9}, "use min"),
        ("fnr", "group", {"min": 0.1}, "use max"),
        ("accuracy", "group", {"min": 80}, "must lie between 0 and 1"),
        ("accuracy", "group", {"min": 0}, "must lie between 0 and 1"),
        ("fpr", "group", {"max": 1}, "must lie between 0 and 1"),
        ("helpful_flips", "group", {"margin": 0.1}, "is never below 0; use min"),
    ],
)
def test_slips(metric: str, by: str, limits: dict[str, Any], told: str) -> None:
    assert told in refused(metric, by, **limits)
