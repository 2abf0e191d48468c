"""P(best) is calibrated, and the 95 % set contains the best (statistics.md, 9)."""

from __future__ import annotations

import pytest

from .choices import RATIOS, VARIANTS, calibration

pytestmark = pytest.mark.slow
MOST_OFF = {5: 0.08, 20: 0.05}


@pytest.mark.parametrize("n_variants", VARIANTS)
@pytest.mark.parametrize("ratio", RATIOS)
def test_stated_and_actual_agree(n_variants: int, ratio: float) -> None:
    assert abs(calibration(n_variants, ratio).off) <= MOST_OFF[n_variants]


@pytest.mark.parametrize("ratio", RATIOS)
def test_what_all_variants_share_changes_nothing(ratio: float) -> None:
    assert abs(calibration(5, ratio, common=True).off) <= MOST_OFF[5]


def test_the_bootstrap_frequency_is_too_sure() -> None:
    """Else shrinking would be for nothing."""
    found = calibration(20, 0.25)
    assert found.frequency - found.actual.value > 0.15


@pytest.mark.parametrize("n_variants", VARIANTS)
@pytest.mark.parametrize("ratio", RATIOS)
def test_the_set_contains_the_best(n_variants: int, ratio: float) -> None:
    assert calibration(n_variants, ratio).covered.at_least(0.95)


def test_the_set_is_small_where_truths_are_far_apart() -> None:
    assert calibration(20, 3.0).size < 0.5 * calibration(20, 0.25).size
