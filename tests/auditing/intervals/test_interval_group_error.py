from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairweight.auditing.intervals.excess import corrected_excess


def test_five_per_cent_error_shows_81_per_cent_at_a_minority_of_20():
    # Labelled so: 0.2 · 0.95 + 0.8 · 0.05 = 0.23; factor 0.19/0.23 − 0.01/0.77 = 0.8131.
    low, high = corrected_excess(-0.10, 0.23, 0.05)
    assert high == -0.10
    assert -0.10 / low == pytest.approx(0.19 / 0.23 - 0.01 / 0.77)
    assert -0.10 / low == pytest.approx(0.813, abs=5e-4)


def test_simulated_labels():
    rng = np.random.default_rng(0)
    member = rng.random(2_000_000) < 0.2
    lost = rng.random(member.size) < np.where(member, 0.30, 0.10)
    labelled = member ^ (rng.random(member.size) < 0.05)
    observed = -(lost[labelled].mean() - lost[~labelled].mean())
    low, _ = corrected_excess(observed, labelled.mean(), 0.05)
    assert low == pytest.approx(-0.20, abs=0.005)


def test_no_error_corrects_nothing():
    low, high = corrected_excess(0.1, 0.3, 0.0)
    assert low == pytest.approx(0.1)
    assert high == pytest.approx(0.1)


def test_labels_that_may_be_errors_alone():
    low, high = corrected_excess(0.1, [0.05, 0.04, 0.95, np.nan, 0.5], 0.05)
    assert np.isnan(low).tolist() == [True, True, True, True, False]
    assert np.isnan(high).tolist() == [True, True, True, True, False]


@given(st.floats(-1, 1), st.floats(0.06, 0.94), st.floats(0, 0.05))
def test_the_range_starts_at_the_observed_excess(excess, share, error):
    low, high = corrected_excess(excess, share, error)
    assert low <= high
    assert pytest.approx(excess, rel=1e-9) in (float(low), float(high))
    assert max(abs(low), abs(high)) >= abs(excess) * (1 - 1e-9)
