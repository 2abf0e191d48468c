from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from fairweight.auditing.intervals.power import examples_needed, min_detectable_shift
from fairweight.auditing.intervals.proportion import mcnemar


def power_by_enumeration(n, delta, psi, alpha):
    """Sum over every number of lost and gained answers."""
    psi = max(psi, delta)
    lost, gained = (psi + delta) / 2, max((psi - delta) / 2, 0.0)
    total = 0.0
    for m in range(n + 1):
        x = np.arange(m + 1)  # lost among m
        found = (mcnemar(x, m - x) <= alpha) & (2 * x > m)
        total += binom.pmf(m, n, psi) * binom.pmf(x, m, lost / (lost + gained))[found].sum()
    return total


@pytest.mark.parametrize(
    ("n", "psi", "alpha"), [(30, 0.1, 0.05), (60, 0.3, 0.005), (20, 0.0, 0.05)]
)
def test_power_at_the_shift_is_what_was_asked(n, psi, alpha):
    delta = float(min_detectable_shift(n, psi, alpha))
    assert power_by_enumeration(n, delta, psi, alpha) == pytest.approx(0.8, abs=1e-4)


def test_too_few_examples_find_nothing():
    # Ten lost of ten: (1/2)^10 = 0.00098; significant at 0.001, not at 0.0009.
    assert np.isnan(min_detectable_shift(10, 0.1, 0.0009))
    assert min_detectable_shift(10, 0.1, 0.001) == pytest.approx(0.8 ** (1 / 10), abs=1e-5)


def test_normal_formula_joins_the_exact_sum():
    n = np.array([99_990, 100_010])  # n ψ just below and above 5,000
    below, above = min_detectable_shift(n, 0.05)
    assert below == pytest.approx(above, rel=2e-3)
    z = norm.ppf(0.975) * np.sqrt(0.05) + norm.ppf(0.8) * np.sqrt(0.05 - above**2)
    assert above == pytest.approx(z / np.sqrt(n[1]), rel=1e-9)


def test_design_effect_divides_the_examples():
    assert min_detectable_shift(1000, 0.1, design_effect=4.0) == min_detectable_shift(250, 0.1)
    needed = examples_needed(0.05, 0.1)
    assert examples_needed(0.05, 0.1, design_effect=2.5) == np.ceil(2.5 * needed)


@settings(max_examples=25)
@given(st.integers(20, 3000), st.floats(0.0, 0.5), st.sampled_from([0.05, 0.001]))
def test_more_examples_find_smaller_shifts(n, psi, alpha):
    small, large = min_detectable_shift([n, 4 * n], psi, alpha)
    assert large < small <= 1
    strict = min_detectable_shift(n, psi, alpha / 10)
    assert np.isnan(strict) or strict >= small


@pytest.mark.parametrize("shift", [0.3, 0.05, 0.02, 0.001])
def test_examples_needed_is_the_counterpart(shift):
    n = examples_needed(shift, 0.05)
    assert min_detectable_shift(n, 0.05) <= shift * (1 + 1e-4)
    # One per cent fewer do not do (the steps of a discrete test are smaller than that here).
    assert min_detectable_shift(0.97 * n - 1, 0.05) > shift


def test_examples_needed_of_a_harmful_shift_has_no_sign():
    assert examples_needed(-0.05, 0.1) == examples_needed(0.05, 0.1)
    assert np.isnan(examples_needed([0.0, np.nan], 0.1)).all()


def test_rows_keep_their_shape_and_undefined_rows_are_nan():
    found = min_detectable_shift([[100, 0], [np.nan, 100]], 0.05)
    assert found.shape == (2, 2)
    assert np.isnan(found).tolist() == [[False, True], [True, False]]
    assert found[0, 0] == found[1, 1]
    assert min_detectable_shift(100, 0.05).shape == ()
