"""The two-way t against an analysis of variance as the textbooks write it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fairweight.auditing.intervals.units import TwoWay, two_way

Matrix = NDArray[Any]


def mean_squares(x: Matrix) -> tuple[float, float, float]:
    """Of members (rows), examples (columns) and their interaction, without replication."""
    k, n = x.shape
    rows, columns, grand = x.mean(axis=1), x.mean(axis=0), x.mean()
    rest = x - rows[:, None] - columns[None, :] + grand
    return (
        n * ((rows - grand) ** 2).sum() / (k - 1),
        k * ((columns - grand) ** 2).sum() / (n - 1),
        (rest**2).sum() / ((k - 1) * (n - 1)),
    )


def of_matrix(x: Matrix) -> TwoWay:
    """The function under test on one matrix (of values, or of paired differences)."""
    k, n = x.shape
    _, _, interaction = mean_squares(x)
    return two_way(
        x.mean(),
        [(x.mean(axis=1).var(ddof=1) / k, k - 1)],
        (x.mean(axis=0).var(ddof=1) / n, n - 1),
        [(interaction / (k * n), (k - 1) * (n - 1))],
    )


@pytest.mark.parametrize(("k", "n"), [(3, 8), (5, 40), (10, 6)])
def test_variance_and_degrees_of_a_table(k: int, n: int) -> None:
    """V = (MS_members + MS_examples − MS_int) / (K n), degrees after Satterthwaite."""
    rng = np.random.default_rng(k)
    x = rng.normal(size=(k, 1)) + rng.normal(size=(1, n)) + 0.3 * rng.normal(size=(k, n))
    members, examples, interaction = mean_squares(x)
    variance = (members + examples - interaction) / (k * n)
    squares = (
        members**2 / (k - 1) + examples**2 / (n - 1) + interaction**2 / ((k - 1) * (n - 1))
    ) / (k * n) ** 2
    found = of_matrix(x)
    assert float(found.variance) == pytest.approx(variance, rel=1e-12)
    assert float(found.degrees) == pytest.approx(variance**2 / squares, rel=1e-12)
    reach = stats.t.ppf(0.975, variance**2 / squares) * math.sqrt(variance)
    low, high = found.limits(0.05)
    assert (float(low), float(high)) == pytest.approx((x.mean() - reach, x.mean() + reach))


def test_two_by_two_by_hand() -> None:
    # rows 1 2 and 3 6: member means 1.5, 4.5; example means 2, 4; deviations ±.5, MS_int 1
    x = np.array([[1.0, 2.0], [3.0, 6.0]])
    assert mean_squares(x) == pytest.approx((9.0, 4.0, 1.0))
    found = of_matrix(x)
    assert float(found.variance) == pytest.approx(4.5 / 2 + 2 / 2 - 1 / 4)
    # 3² / (2.25² + 1² + .25²) = 9 / 6.125
    assert float(found.degrees) == pytest.approx(9 / 6.125)


def test_never_below_either_part() -> None:
    """Members all alike on average, and examples too: the interaction must not eat the rest."""
    x = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
    members, examples, interaction = (part / x.size for part in mean_squares(x))
    assert members + examples - interaction < max(members, examples)
    assert float(of_matrix(x).variance) == pytest.approx(max(members, examples))


def test_independent_members_add_up() -> None:
    """Terms of both sides are added; the examples' part is that of the difference."""
    found = two_way(0.1, [(0.04, 2), (0.01, 9)], (0.02, 99), [(0.003, 198), (0.001, 891)])
    variance = 0.04 + 0.01 + 0.02 - 0.003 - 0.001
    squares = 0.04**2 / 2 + 0.01**2 / 9 + 0.02**2 / 99 + 0.003**2 / 198 + 0.001**2 / 891
    assert float(found.variance) == pytest.approx(variance)
    assert float(found.degrees) == pytest.approx(variance**2 / squares)


def test_one_part_alone_has_its_own_degrees() -> None:
    members = two_way(0.0, [(1.0, 4)], (0.0, 1000), [(0.0, 4000)])
    examples = two_way(0.0, [(0.0, 4)], (1.0, 1000), [(0.0, 4000)])
    assert (float(members.degrees), float(examples.degrees)) == pytest.approx((4.0, 1000.0))


def test_degrees_do_not_fall_below_1() -> None:
    """What is taken off counts with its own uncertainty, but t needs one degree of freedom."""
    # V = 1; 1 / (1/4 + 1/3 + 1/12) = 1.5: below the four of the members
    found = two_way(0.0, [(1.0, 4)], (1.0, 3), [(1.0, 12)])
    assert float(found.degrees) == pytest.approx(1.5)
    # V = 1; 1 / (1 + 1/3 + 1/3) = .6 before the bound
    found = two_way(0.0, [(1.0, 1)], (1.0, 3), [(1.0, 3)])
    assert float(found.degrees) == 1.0


def test_p_and_limits_agree() -> None:
    rng = np.random.default_rng(7)
    estimate, part = rng.normal(0, 0.3, 200), rng.uniform(0.001, 0.05, (3, 200))
    found = two_way(estimate, [(part[0], 4)], (part[1], 50), [(part[2] / 50, 200)])
    for alpha in (0.05, 0.1, 0.3):
        low, high = found.limits(alpha)
        outside = (low > 0) | (high < 0)
        assert 0 < outside.sum() < 200
        assert (outside == (found.p_value < alpha)).all()


def test_rows_and_levels_broadcast() -> None:
    found = two_way([0.1, 0.2], [([0.01, 0.02], 4)], ([0.01, 0.0], 9), [([0.0, 0.0], 36)])
    low, high = found.limits(np.array([[0.1], [0.05], [0.01]]))
    assert low.shape == high.shape == (3, 2)
    assert (np.diff(low, axis=0) < 0).all()
    assert (np.diff(high, axis=0) > 0).all()
    assert low[1] == pytest.approx(found.limits(0.05)[0])


def test_nothing_differs_anywhere() -> None:
    found = two_way(0.0, [(0.0, 4)], (0.0, 9), [(0.0, 36)])
    assert float(found.p_value) == 1.0
    assert [float(side) for side in found.limits(0.05)] == [0.0, 0.0]


def test_unknown_variance_has_no_limits() -> None:
    found = two_way([0.1, 0.1], [([np.nan, 0.01], 4)], ([0.01, 0.01], 9), [([0.0, 0.0], 36)])
    low, high = found.limits(0.05)
    assert np.isnan([low[0], high[0], found.p_value[0]]).all()
    assert np.isfinite([low[1], high[1], found.p_value[1]]).all()
