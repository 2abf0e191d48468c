from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from fairweight.auditing.intervals.proportion import wilson


def test_two_of_two_is_not_certainty():
    # z² / (n + z²) = 3.8415 / 5.8415 is the upper limit of the failures.
    low, high = wilson(2, 2)
    assert low == pytest.approx(1 - 3.841459 / 5.841459, abs=1e-6)
    assert high == 1.0


@pytest.mark.parametrize("alpha", [0.05, 0.1, 1e-6])
def test_agrees_with_statsmodels(alpha):
    k = np.arange(41)
    low, high = wilson(k, 40, alpha)
    expected_low, expected_high = proportion_confint(k, 40, alpha, method="wilson")
    np.testing.assert_allclose(low, expected_low, atol=1e-12)
    np.testing.assert_allclose(high, expected_high, atol=1e-12)


def test_undefined_rows_are_nan_and_leave_the_others_alone():
    low, high = wilson([1, np.nan, 0], [0, 5, 5])
    assert np.isnan(low[:2]).all()
    assert np.isnan(high[:2]).all()
    assert low[2] == 0
    assert 0 < high[2] < 1


def test_alpha_may_differ_by_row():
    low, _ = wilson([5, 5], [10, 10], [0.05, 0.05 / 20])
    assert low[1] < low[0]


def test_modified_limits_only_widen_and_only_for_few():
    k = np.arange(101)
    low, high = wilson(k, 100)
    wider_low, wider_high = wilson(k, 100, modified=True)
    changed = (wider_low < low) | (wider_high > high)
    assert np.flatnonzero(changed).tolist() == [1, 2, 3, 97, 98, 99]
    # P(X >= 2 | mean) = 0.05 at a Poisson mean of 0.3554.
    assert wider_low[2] == pytest.approx(0.003554, abs=1e-6)


@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(1e-8, 0.5))
def test_failures_mirror_successes(n, share, alpha):
    k = round(share * n)
    low, high = wilson(k, n, alpha)
    low_of_rest, high_of_rest = wilson(n - k, n, alpha)
    assert low == pytest.approx(1 - high_of_rest, abs=1e-12)
    assert high == pytest.approx(1 - low_of_rest, abs=1e-12)
    assert 0 <= low <= k / n <= high <= 1
