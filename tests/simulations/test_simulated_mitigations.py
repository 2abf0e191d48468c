"""Threshold calibration halves threshold bias where it should, and is not praised elsewhere."""

from __future__ import annotations

import pytest

from .mitigations import calibrated, said

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("smooth", [False, True])
def test_calibration_halves_threshold_bias_on_rows_apart(smooth: bool) -> None:
    found = calibrated(4000, smooth)
    assert found.after < 0.5 * found.before
    assert found.halved.at_least(0.95)


def test_smoothed_thresholds_are_better_with_few_rows() -> None:
    assert calibrated(200, True).after < calibrated(200, False).after


def test_where_it_helps_the_product_says_so() -> None:
    assert said("too few positives")["it helps"].at_least(0.95)


def test_where_nothing_is_to_be_gained_help_is_claimed_at_most_by_chance() -> None:
    found = said("right already")
    assert found["it helps"].at_most(0.05)
    assert found["no clear improvement"].at_least(0.85)


def test_where_validation_rows_mislead_the_product_says_that_it_does_not_help() -> None:
    assert said("validation rows unlike the others")["it does not help"].at_least(0.95)
