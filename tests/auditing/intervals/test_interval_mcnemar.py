from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from fairweight.auditing.intervals.proportion import mcnemar


def test_five_losses_and_one_gain():
    # 2 P(X = 0) + P(X = 1) of Binomial(6, 1/2) = (2 + 6) / 64
    assert mcnemar(5, 1) == pytest.approx(8 / 64)
    # exact: 2 (1 + 6) / 64
    assert mcnemar(5, 1, exact=True) == pytest.approx(14 / 64)


@pytest.mark.parametrize(("base", "compressed"), [(0, 0), (4, 4), (9, 2), (0, 30), (200, 260)])
def test_exact_agrees_with_statsmodels(base, compressed):
    if base + compressed == 0:
        expected = 1.0  # statsmodels divides by zero discordant pairs
    else:
        expected = statsmodels_mcnemar([[1, base], [compressed, 1]], exact=True).pvalue
    assert mcnemar(base, compressed, exact=True) == pytest.approx(expected, rel=1e-10)


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_mid_p_is_exact_less_the_observed_probability(base, compressed):
    p = mcnemar(base, compressed)
    m, k = base + compressed, min(base, compressed)
    expected = max(2 * binom.cdf(k, m, 0.5) - binom.pmf(k, m, 0.5), 0.0)
    assert p == pytest.approx(expected, rel=1e-9, abs=1e-250)  # betainc is 0 below 1e-253
    assert p == mcnemar(compressed, base)
    assert p <= mcnemar(base, compressed, exact=True) <= 1


def test_undefined_is_nan_and_shapes_broadcast():
    p = mcnemar([[np.nan], [3.0]], [1, 2, 3])
    assert p.shape == (2, 3)
    assert np.isnan(p[0]).all()
    assert p[1, 2] == 1
