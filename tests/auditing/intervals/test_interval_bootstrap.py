from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm

from fairweight.auditing.intervals.bootstrap import (
    Replicates,
    basic,
    bias_corrected,
    exceedance_p,
)

replicate_tables = arrays(
    np.float64,
    st.tuples(st.integers(2, 40), st.integers(1, 4)),
    elements=st.one_of(st.floats(-1e6, 1e6), st.just(np.nan)),
)


@given(replicate_tables, st.floats(0.001, 0.9))
def test_percentile_agrees_with_numpy(replicates, alpha):
    low, high = Replicates(replicates).percentile(alpha)
    for column in range(replicates.shape[1]):
        defined = replicates[~np.isnan(replicates[:, column]), column]
        if defined.size == 0:
            assert np.isnan(low[column])
            continue
        assert low[column] == pytest.approx(np.quantile(defined, alpha / 2), abs=1e-6)
        assert high[column] == pytest.approx(np.quantile(defined, 1 - alpha / 2), abs=1e-6)


def test_percentile_with_an_alpha_per_column():
    replicates = np.column_stack([np.arange(101.0), np.arange(101.0)])
    low, high = Replicates(replicates).percentile([0.1, 0.02])
    np.testing.assert_allclose(low, [5, 1])
    np.testing.assert_allclose(high, [95, 99])


def test_several_alphas_for_one_row_of_replicates():
    low, _ = Replicates(np.arange(101.0)).percentile([0.1, 0.02])
    np.testing.assert_allclose(low, [5, 1])


def test_basic_reflects_and_is_cut_at_the_floor():
    replicates = Replicates(np.arange(101.0))  # quantiles 5 and 95 at alpha = 0.1
    assert basic(60.0, replicates, 0.1) == (25, 115)
    assert basic(40.0, replicates, 0.1, floor=0.0) == (0, 75)
    assert basic(1.0, replicates, 0.1, floor=0.0) == (0, 0)


def test_bias_correction():
    assert bias_corrected(10.0, Replicates(np.array([11.0, 13.0, np.nan]))) == 8
    assert bias_corrected(1.0, Replicates(np.array([3.0, 5.0]))) == -2
    assert np.isnan(bias_corrected(1.0, Replicates(np.array([3.0, 5.0])), drop_negative=True))
    assert np.isnan(bias_corrected(1.0, Replicates(np.array([np.nan, np.nan]))))


def test_no_rows_have_no_limits():
    empty = Replicates(np.empty((7, 0)))
    assert empty.deviation().shape == (0,)
    assert [limit.shape for limit in empty.percentile()] == [(0,), (0,)]


def test_share_undefined_of_every_column():
    table = np.array([[1.0, np.nan], [np.nan, np.nan]])
    assert Replicates(table).undefined.tolist() == [0.5, 1.0]


def test_simultaneous_is_the_percentile_where_it_is_resolved():
    replicates = Replicates(np.random.default_rng(0).normal(size=(2000, 2)))
    # 2000 · 0.05 / (2 · 10) = 5 replicates beyond each limit.
    np.testing.assert_array_equal(
        replicates.simultaneous([0.0, 0.0], 0.05 / 10), replicates.percentile(0.005)
    )


def test_simultaneous_beyond_the_replicates():
    replicates = np.random.default_rng(0).normal(size=2000)
    low, high = Replicates(replicates).simultaneous(0.0, 0.05 / 1000)
    reach = norm.ppf(1 - 0.05 / 2000) * replicates.std(ddof=1)
    assert high == pytest.approx(max(reach, replicates.max()))
    assert low == pytest.approx(min(-reach, replicates.min()))


def test_simultaneous_keeps_the_observed_extremes():
    replicates = np.r_[np.zeros(999), 50.0]
    _, high = Replicates(replicates).simultaneous(0.0, 0.05 / 100)
    assert high == 50


def test_simultaneous_of_an_undefined_column_is_nan():
    low, high = Replicates(np.full((20, 2), np.nan)).simultaneous([np.nan, 0.0], 0.05 / 3)
    assert np.isnan([low, high]).all()


def test_exceedance():
    null = np.array([-4.0, 1.0, 2.0, 3.0, np.nan])
    assert exceedance_p(3.0, null) == (1 + 2) / 5
    assert exceedance_p(3.0, null, two_sided=False) == (1 + 1) / 5
    assert np.isnan(exceedance_p(np.nan, null))
    assert np.isnan(exceedance_p(1.0, [np.nan]))


def test_exceedance_counts_ties_up_to_rounding():
    assert exceedance_p(0.3, [0.1 + 0.2]) == 1
    assert exceedance_p(0.1 + 0.2, [0.3]) == 1


def test_exceedance_of_columns():
    null = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]])
    np.testing.assert_allclose(exceedance_p([2.0, 10.0], null), [3 / 4, 1 / 4])
