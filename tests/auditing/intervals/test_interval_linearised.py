from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, t

from fairweight.auditing.intervals.proportion import tango, wilson
from fairweight.auditing.intervals.units import linearised


def of_units(a, d, alpha=0.05, bounds=(0.0, 1.0)):
    a, d = np.asarray(a, float), np.asarray(d, float)
    return linearised(
        a.sum(), d.sum(), (a * a).sum(), (a * d).sum(), (d * d).sum(), len(a), alpha, bounds=bounds
    )


def test_four_clusters_by_hand():
    # R = 30/60; residuals 1, −2, 3, −2 of sizes 10, 20, 14, 16; V = 4/3 · 18 / 60²
    low, high, error = of_units([6, 8, 10, 6], [10, 20, 14, 16])
    assert error == pytest.approx(np.sqrt(4 / 3 * 18) / 60)
    assert low == pytest.approx(0.5 - t.ppf(0.975, 3) * error)
    assert high == pytest.approx(0.5 + t.ppf(0.975, 3) * error)


def test_clusters_of_one_example_give_the_t_interval_of_a_mean():
    values = np.r_[np.ones(30), np.zeros(70)]
    low, high, error = of_units(values, np.ones(100))
    assert error == pytest.approx(values.std(ddof=1) / 10)
    assert high - low == pytest.approx(2 * t.ppf(0.975, 99) * error)


def test_equal_units_get_the_score_interval_of_that_many_examples():
    alpha = 2 * norm.cdf(-t.ppf(0.975, 39))
    low, high, error = of_units(np.full(40, 5), np.full(40, 5))
    assert error == 0
    assert (low, high) == tuple(wilson(40, 40, alpha))
    assert low < 1
    low, high, _ = of_units(np.zeros(40), np.arange(1, 41), bounds=(-1, 1))
    assert (low, high) == tuple(tango(40, 0, 0, alpha))
    assert low < 0 < high


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), min_size=3, max_size=30),
    st.floats(0.01, 1e6),
)
def test_scaling_weights_changes_nothing(units, scale):
    right = np.array([min(k, n) for k, n in units], float)
    size = np.array([n for _, n in units], float)
    plain = of_units(right, size)
    scaled = of_units(scale * right, scale * size)
    np.testing.assert_allclose(scaled, plain, atol=1e-6)
    assert 0 <= plain[0] <= right.sum() / size.sum() + 1e-12
    assert right.sum() / size.sum() - 1e-12 <= plain[1] <= 1


def test_cancellation_does_not_make_a_variance_negative():
    # All units have the ratio 0.1 up to rounding; sums of squares near 1e18.
    size = np.full(25, 3e8) + np.arange(25)
    low, high, error = of_units(size * 0.1, size)
    assert error == 0
    assert low < 0.1 < high


def test_undefined_rows_are_nan():
    low, high, error = linearised([0, 1, np.nan], [0, 1, 2], 1, 1, 1, [5, 1, 5])
    assert np.isnan([low, high, error]).all()
