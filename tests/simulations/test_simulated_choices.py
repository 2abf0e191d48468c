"""P(best) and P(frontier) are calibrated, the 95 % set contains the best (statistics.md, 9)."""

from __future__ import annotations

import pytest

from .choices import (
    MOST_OFF,
    OUT_OF_REACH,
    RATIOS,
    VARIANTS,
    WORLDS,
    calibration,
    frontier_calibration,
    judged_tables,
    no_number_can,
)

pytestmark = pytest.mark.slow
ALLOWANCE = 0.02  # two standard errors of what is stated in 1,000 samples, and some room


@pytest.mark.parametrize("n_variants", VARIANTS)
@pytest.mark.parametrize("world", [world for world in WORLDS if world not in OUT_OF_REACH])
def test_stated_and_actual_agree(world: str, n_variants: int) -> None:
    assert abs(calibration(world, n_variants).off) <= MOST_OFF[n_variants] + ALLOWANCE


@pytest.mark.parametrize("n_variants", VARIANTS)
@pytest.mark.parametrize("world", [world for world in WORLDS if world not in OUT_OF_REACH])
def test_nearness_is_not_overstated(world: str, n_variants: int) -> None:
    """It leads, so it may be too cautious and not too sure."""
    found = calibration(world, n_variants)
    assert found.near - found.actual_near.value <= MOST_OFF[n_variants] + ALLOWANCE


@pytest.mark.parametrize("n_variants", VARIANTS)
@pytest.mark.parametrize("world", [world for world in WORLDS if world not in OUT_OF_REACH])
def test_stated_and_actual_agree_in_tables(world: str, n_variants: int) -> None:
    found = judged_tables(world, n_variants)[-1]
    assert abs(found["off"]) <= MOST_OFF[n_variants] + 2 * found["error"]
    assert found["covered"] >= 0.93


@pytest.mark.parametrize("n_variants", VARIANTS)
def test_one_variant_ahead_is_out_of_reach(n_variants: int) -> None:
    """No number can be within the limit there and where all are nearly equal."""
    least = no_number_can(n_variants)
    assert least > MOST_OFF[n_variants]
    found = calibration("ahead by 1.5 σ", n_variants)
    assert found.off < 0  # too cautious, not too sure


@pytest.mark.parametrize("n_variants", VARIANTS)
@pytest.mark.parametrize("world", WORLDS)
def test_the_set_contains_the_best(world: str, n_variants: int) -> None:
    assert calibration(world, n_variants).covered.at_least(0.95)


def test_the_set_is_small_where_truths_are_far_apart() -> None:
    wide, narrow = (calibration(f"normal, τ = {tau}", 20).size for tau in ("σ / 4", "3 σ"))
    assert narrow < 0.5 * wide


@pytest.mark.parametrize("n_variants", VARIANTS)
def test_the_bootstrap_frequency_and_a_normal_prior_are_too_sure(n_variants: int) -> None:
    """Else this prior would be for nothing."""
    found = calibration("collapsed", n_variants)
    for prior in ("frequency", "normal"):
        assert found.stated[prior] - found.actual.value > MOST_OFF[n_variants]


@pytest.mark.parametrize("n_variants", VARIANTS)
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("costs", [False, True])
def test_the_frontier_is_as_probable_as_is_said(n_variants: int, ratio: float, costs: bool) -> None:
    found = frontier_calibration(n_variants, ratio, costs=costs)
    assert abs(found.off_all) <= MOST_OFF[n_variants]
    assert abs(found.off) <= MOST_OFF[n_variants] + ALLOWANCE
