from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from fairweight.auditing.intervals.excess import excess_interval, excess_test, standardised_excess
from fairweight.auditing.intervals.proportion import tango


@st.composite
def tables(draw, most=7):
    row = []
    for _ in range(2):
        n = draw(st.integers(1, most))
        lost = draw(st.integers(0, n))
        row += [n, lost, draw(st.integers(0, n - lost))]
    return tuple(row)


def test_by_hand_where_nothing_changed_on_one_side():
    """5 of 20 lost, 0 of 20: at the p that comes out the limit is 0, MOVER written out."""
    p = float(excess_test(20, 5, 0, 20, 0, 0))
    z = norm.isf(p / 2)
    _, high = tango(20, 5, 0, p)
    assert np.hypot(high + 0.25, z**2 / (20 + z**2)) == pytest.approx(0.25, abs=1e-9)


def test_churn_alone_is_no_excess():
    """A hard group that flips ten times as often: the test given the totals called it certain."""
    assert excess_test(300, 54, 36, 3_000, 54, 54) > 0.05  # −6 points, churn .30 against .036
    assert excess_test(300, 14, 0, 3_000, 54, 54) < 0.001  # −4.7 points, hardly any churn


@given(tables(most=400))
def test_symmetries(table):
    n1, l1, g1, n2, l2, g2 = table
    p = excess_test(*table)
    assert 0 < p <= 1
    # Lost and gained exchanged, and the level exchanged with the others.
    assert excess_test(n1, g1, l1, n2, g2, l2) == pytest.approx(p, rel=1e-7)
    assert excess_test(n2, l2, g2, n1, l1, g1) == pytest.approx(p, rel=1e-7)


def test_many_levels_at_once_equal_one_by_one():
    rng = np.random.default_rng(0)
    n = np.r_[rng.integers(1, 60, 40), 5_000, 20_000]
    lost = rng.binomial(n, 0.1)
    gained = rng.binomial(n - lost, 0.05)
    rest = [x.sum() - x for x in (n, lost, gained)]
    together = excess_test(n, lost, gained, *rest)
    single = [float(excess_test(*row)) for row in zip(n, lost, gained, *rest, strict=True)]
    np.testing.assert_allclose(together, single, rtol=1e-10)


def test_large_tables_approach_the_normal_test():
    """Each side with its own variance."""
    n1, l1, g1, n2, l2, g2 = 200_000, 10_300, 5_900, 800_000, 40_000, 24_000
    sides = [(n1, l1, g1), (n2, l2, g2)]
    shifts = [(g - lost) / n for n, lost, g in sides]
    variance = sum(((g + b) / n - d**2) / n for (n, b, g), d in zip(sides, shifts, strict=True))
    z = (shifts[0] - shifts[1]) / np.sqrt(variance)
    assert excess_test(n1, l1, g1, n2, l2, g2) == pytest.approx(2 * norm.sf(abs(z)), rel=2e-2)


def test_undefined_and_degenerate_rows():
    p = excess_test([0, 5, 5, 5], [0, 0, np.nan, 0], 0, [5, 0, 5, 5], 0, 0)
    assert np.isnan(p).tolist() == [True, True, True, False]
    assert p[3] == 1  # no answer changed
    low, high = excess_interval([0, 5], [0, 0], 0, [5, 0], 0, 0)
    assert np.isnan(low).all()
    assert np.isnan(high).all()


def test_a_certain_difference_is_not_given_as_zero():
    assert 0 < excess_test(10_000, 10_000, 0, 10_000, 0, 0) < 1e-200


def test_no_changed_answer_leaves_room_on_both_sides():
    # Each side alone ±z²/(n + z²): 0.0370 of 100 and 0.0042 of 900, added in squares.
    low, high = excess_interval(100, 0, 0, 900, 0, 0)
    assert high == pytest.approx(np.hypot(0.0369935, 0.0042501), abs=1e-6)
    assert low == -high


@given(tables(most=300), st.sampled_from([0.05, 0.1, 0.05 / 40]))
def test_interval_and_test_agree_and_mirror(table, alpha):
    n1, l1, g1, n2, l2, g2 = table
    p = excess_test(*table)
    low, high = excess_interval(n1, l1, g1, n2, l2, g2, alpha)
    excess = (g1 - l1) / n1 - (g2 - l2) / n2
    assert low - 1e-12 <= excess <= high + 1e-12
    assert low < high
    assert (p < alpha) == (low > 0 or high < 0)
    mirrored = excess_interval(n1, g1, l1, n2, g2, l2, alpha)
    assert mirrored[0] == pytest.approx(-high, abs=1e-6)
    assert mirrored[1] == pytest.approx(-low, abs=1e-6)


@given(tables(most=300))
def test_smaller_alpha_widens(table):
    n1, l1, g1, n2, l2, g2 = table
    low, high = excess_interval(n1, l1, g1, n2, l2, g2, [0.05, 0.01, 0.0001])
    assert (np.diff(low) <= 1e-9).all()
    assert (np.diff(high) >= -1e-9).all()


def test_simpson_has_no_standardised_excess():
    # Both levels lose 1 of 10 of label a and 5 of 10 of label b; they hold a and b 9 : 1 and 1 : 9.
    n = np.array([[90, 10], [10, 90]])
    lost = np.array([[9, 5], [1, 45]])
    gained = np.zeros_like(n)
    np.testing.assert_allclose(standardised_excess(n, lost, gained), [0, 0], atol=1e-15)
    plain = -lost.sum(1) / n.sum(1)
    assert plain[0] - plain[1] == pytest.approx(-0.14 + 0.46)


def test_labels_on_one_side_only_do_not_count():
    n = np.array([[4, 0, 0], [4, 3, 0]])
    lost = np.array([[1, 0, 0], [2, 3, 0]])
    np.testing.assert_allclose(standardised_excess(n, lost, 0 * lost), [0.25, -0.25])
    assert np.isnan(standardised_excess([[3, 0], [0, 3]], np.zeros((2, 2)), np.zeros((2, 2)))).all()


def test_leading_axes_are_replicates():
    rng = np.random.default_rng(3)
    n = rng.integers(1, 9, size=(5, 3, 2))
    lost = rng.binomial(n, 0.5)
    together = standardised_excess(n, lost, 0 * lost)
    np.testing.assert_array_equal(together[2], standardised_excess(n[2], lost[2], 0 * lost[2]))
