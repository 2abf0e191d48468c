from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_matrix

from fairweight.auditing.intervals.proportion import mcnemar
from fairweight.auditing.intervals.units import sign_flip


def by_enumeration(values):
    """2 P(S > |s|) + P(S = |s|) over all 2^k signs."""
    sums = np.array([np.dot(s, values) for s in itertools.product((-1, 1), repeat=len(values))])
    s = abs(sum(values))
    return 2 * np.mean(sums > s + 1e-9) + np.mean(np.abs(sums - s) < 1e-9)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=9))
def test_whole_numbers_are_exact(values):
    expected = by_enumeration(values)
    assert sign_flip(np.array(values)[:, None])[0] == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 3))
def test_single_examples_give_the_mid_p_mcnemar_test(lost, gained, size):
    column = np.r_[np.full(lost, -size), np.full(gained, size), 0][:, None]
    assert sign_flip(column)[0] == pytest.approx(float(mcnemar(lost, gained)), rel=1e-9)


def test_many_units_against_a_normal_sum():
    rng = np.random.default_rng(0)
    values = rng.integers(-6, 7, size=(5000, 1)) + (rng.random((5000, 1)) < 0.05)
    z = values.sum() / np.sqrt((values**2).sum())
    from scipy.stats import norm

    assert sign_flip(values)[0] == pytest.approx(2 * norm.sf(abs(z)), rel=0.02)


def test_sparse_and_dense_agree():
    rng = np.random.default_rng(1)
    dense = rng.integers(-3, 4, size=(30, 5)) * (rng.random((30, 5)) < 0.4)
    expected = sign_flip(dense)
    np.testing.assert_array_equal(sign_flip(csc_matrix(dense)), expected)
    np.testing.assert_array_equal(sign_flip(coo_array(dense).tocsc()), expected)


def test_no_difference_is_certain_and_nan_is_undefined():
    p = sign_flip(np.array([[0.0, np.nan], [0.0, 1.0]]))
    assert p[0] == 1
    assert np.isnan(p[1])


def test_weights_are_drawn():
    values = np.array([-1.5, -0.25, -2.0, 0.5, -1.0, -0.75, 1.25, -0.6])
    p = sign_flip(values[:, None], rng=np.random.default_rng(2))[0]
    sums = np.array([np.dot(s, values) for s in itertools.product((-1, 1), repeat=8)])
    expected = np.mean(np.abs(sums) >= abs(values.sum()) - 1e-9)
    assert p == pytest.approx(expected, abs=3 * np.sqrt(expected * (1 - expected) / 9999))
    again = sign_flip(values[:, None], rng=np.random.default_rng(2))[0]
    assert again == p
