from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from statsmodels.stats.multitest import multipletests

from fairweight.auditing.intervals.multiplicity import adjust, benjamini_hochberg, holm
from fairweight.errors import InputError

# Steps of 0.01 make ties likely.
p_values = arrays(
    np.float64, st.integers(1, 30), elements=st.integers(0, 100).map(lambda k: k / 100)
)


@given(p_values)
@pytest.mark.parametrize(("ours", "theirs"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])
def test_agrees_with_statsmodels(ours, theirs, p):
    with patch("gc.collect"):  # which theirs calls every time: seconds in a process full of modules
        expected = multipletests(p, method=theirs)[1]
    np.testing.assert_allclose(ours(p), expected, atol=1e-14)


@pytest.mark.parametrize("method", [holm, benjamini_hochberg])
def test_nan_is_no_member_of_the_family(method):
    p = np.array([0.01, np.nan, 0.03, 0.02])
    adjusted = method(p)
    assert np.isnan(adjusted[1])
    np.testing.assert_array_equal(adjusted[[0, 2, 3]], method(p[[0, 2, 3]]))


@pytest.mark.parametrize("method", ["holm", "bh", "none"])
def test_input_is_left_alone_and_shape_is_kept(method):
    p = np.array([[0.01, 0.2], [0.03, 0.04]])
    before = p.copy()
    adjusted = adjust(p, method)
    np.testing.assert_array_equal(p, before)
    assert adjusted.shape == p.shape
    assert (adjusted >= p).all()
    assert adjusted is not p


def test_empty_family():
    assert holm([]).size == 0
    assert benjamini_hochberg([np.nan]).tolist() == pytest.approx([np.nan], nan_ok=True)


def test_unknown_method_names_the_known_ones():
    with pytest.raises(InputError, match=r"'bonferroni' does not exist; there are: 'holm', 'bh'"):
        adjust([0.1], "bonferroni")
