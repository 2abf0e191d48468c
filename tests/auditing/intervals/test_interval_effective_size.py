"""The effective size, and the wider of t and Tango (or MOVER) on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, t

from fairweight.auditing.intervals.effective_size import (
    Clumping,
    EffectiveCounts,
    WiderExcess,
    WiderShift,
    effective_clusters,
    effective_size,
    intraclass_correlation,
)
from fairweight.auditing.intervals.proportion import tango, tango_at
from fairweight.auditing.intervals.units import TwoWay


def one(*values: float) -> list[np.ndarray]:
    return [np.array([value], dtype=float) for value in values]


def student(estimate: float, variance: float, degrees: float) -> TwoWay:
    return TwoWay(*one(estimate, variance, degrees))


def counts(n: float, lost: float, gained: float) -> EffectiveCounts:
    """From shares lost and gained."""
    return EffectiveCounts(*one(n, lost + gained, gained - lost))


def test_the_correlation_by_hand() -> None:
    # Two rows. Row 1: ratio 12 / 4 = 3 of clusters of three; row 2: 6 / 6, of clusters of one.
    # (12 + 6) / (4 + 6) = 1.8; m̄ = (30 · 9 + 30) / (90 + 30) = 2.5; .8 / 1.5.
    found = intraclass_correlation([12, 6], [4, 6], [270, 30], [90, 30])
    assert found == pytest.approx(0.8 / 1.5)


@pytest.mark.parametrize(
    ("between", "within", "expected"), [(1, 4, 0.0), (400, 4, 1.0), (0, 0, 0.0)]
)
def test_the_correlation_is_cut(between: float, within: float, expected: float) -> None:
    assert intraclass_correlation(between, within, 270, 90) == expected


def test_single_predictions_have_no_correlation() -> None:
    assert intraclass_correlation(8, 4, 30, 30) == 0.0
    assert intraclass_correlation([], [], [], []) == 0.0


def test_the_effective_size_is_the_least_of_its_reasons() -> None:
    clumps = Clumping(0.1, 50)

    def size(variance: float, kish: float, m: float) -> float:
        return float(
            effective_size(1000, 1e-5, variance, kish=kish, mean_cluster=m, clumping=clumps)
        )

    assert size(0, 1, 1) == 1000
    assert size(5e-6, 1, 1) == 1000  # less varied than independent ones: no credit
    assert size(4e-5, 1, 1) == pytest.approx(250)  # own variance four times as large
    assert size(0, 1.25, 1) == pytest.approx(800)  # weights
    assert size(0, 1.25, 11) == pytest.approx(1000 / (1.25 * 2))  # 1 + 10 · .1
    assert size(4e-5, 1.25, 11) == pytest.approx(250)


def test_where_nothing_varies_the_own_ratio_is_no_reason() -> None:
    assert effective_size(200, 0.0, 0.0, mean_cluster=5, clumping=Clumping(0.5, 12)) == 200 / 3


def test_below_ten_changed_clusters_each_counts_once() -> None:
    for changed, expected in ((9, 40.0), (10, 200.0)):
        found = effective_size(
            200, 0.0, 0.0, clusters=40, mean_cluster=5, clumping=Clumping(0.0, changed)
        )
        assert float(found) == expected


def test_unequal_clusters_are_worth_fewer() -> None:
    sizes = np.array([10, 1, 1, 1, 1])
    assert effective_clusters(sizes.sum(), (sizes**2).sum()) == pytest.approx(14**2 / 104)


def test_independent_counts_are_tango() -> None:
    """n_eff = n and normal quantiles: Tango's own limits and McNemar's z."""
    found = WiderShift(student(-0.03, 0.0, 99), counts(200, 0.05, 0.02), np.inf)
    low, high = found.limits(0.05)
    plain = tango(200, 10, 4)
    assert (low[0], high[0]) == pytest.approx((plain[0], plain[1]), abs=1e-12)
    # (4 − 10) / √14
    assert found.p_value[0] == pytest.approx(2 * norm.sf(6 / np.sqrt(14)))


def test_limit_by_limit_the_wider() -> None:
    """Few losses: Tango reaches further down, t with 9 degrees of freedom further up."""
    found = WiderShift(student(-0.02, 2e-4, 9), counts(100, 0.02, 0.0), np.inf)
    low, high = found.limits(0.05)
    reach = t.ppf(0.975, 9) * np.sqrt(2e-4)  # .032
    plain = tango(100, 2, 0)  # −.070, .017 … of which t reaches −.052 and .012
    assert low[0] == pytest.approx(min(plain[0], -0.02 - reach)) == pytest.approx(plain[0])
    assert high[0] == pytest.approx(max(plain[1], -0.02 + reach))


def test_levels_and_rows_broadcast() -> None:
    rows = TwoWay(np.array([0.0, -0.1]), np.array([1e-4, 1e-3]), np.array([20.0, 30.0]))
    both = EffectiveCounts(np.array([50.0, 80.0]), np.array([0.0, 0.2]), np.array([0.0, -0.1]))
    found = WiderShift(rows, both, np.array([20.0, 30.0]))
    low, high = found.limits(np.array([[0.1], [0.01], [1e-6]]))
    assert low.shape == high.shape == (3, 2)
    assert (np.diff(low, axis=0) < 0).all()
    assert (np.diff(high, axis=0) > 0).all()
    assert low[0] == pytest.approx(found.limits(0.1)[0])


def test_limits_stay_within_the_range() -> None:
    found = WiderShift(student(-0.9, 0.5, 3), counts(3, 0.95, 0.05), 2.0)
    assert found.limits(1e-9)[0][0] == -1.0
    assert found.limits(1e-9)[1][0] == 1.0


def test_an_excess_of_0_has_p_1() -> None:
    same = WiderExcess(student(0.0, 0.0, 50), counts(80, 0, 0), counts(400, 0, 0), 79.0)
    assert same.p_value[0] == 1.0
    low, high = same.limits(0.05)
    # square and add of q² / (n + q²), q = t(79) = 1.990: .0472 and .0098
    q = t.ppf(0.975, 79) ** 2
    assert high[0] == pytest.approx(np.hypot(q / (80 + q), q / (400 + q)))
    assert low[0] == -high[0]


def test_an_empty_side_is_undefined() -> None:
    empty = EffectiveCounts(*one(np.nan, np.nan, np.nan))
    found = WiderExcess(student(np.nan, np.nan, np.nan), counts(80, 0.1, 0), empty, 20.0)
    assert np.isnan(found.p_value[0])
    assert np.isnan(found.limits(0.05)).all()


shares = st.tuples(st.floats(0, 0.4), st.floats(0, 0.4))


@given(
    n=st.tuples(st.floats(5, 1e5), st.floats(5, 1e6)),
    group=shares,
    rest=shares,
    error=st.floats(0, 0.2),
    degrees=st.one_of(st.floats(1, 500), st.just(np.inf)),
)
def test_p_of_an_excess_is_the_smallest_level_that_excludes_0(n, group, rest, error, degrees):
    one_side, other = counts(n[0], *group), counts(n[1], *rest)
    excess = float((one_side.shift - other.shift)[0])
    # The degrees of freedom of t: any number. Its p has the same property.
    found = WiderExcess(student(excess, error**2, 40.0), one_side, other, degrees)
    p = float(found.p_value[0])
    if abs(excess) <= 1e-12:
        assert p == pytest.approx(1.0)
        return
    assert 0 <= p <= 1
    if not 1e-280 < p < 1 - 1e-3:
        return
    low, high = found.limits(p * (1 - 1e-6))
    assert low[0] <= 0 <= high[0]
    low, high = found.limits(p * (1 + 1e-6))
    assert low[0] > 0 or high[0] < 0


@given(n=st.floats(5, 1e6), shares=shares, error=st.floats(0, 0.2), degrees=st.floats(1, 500))
def test_p_of_a_shift_is_the_smallest_level_that_excludes_0(n, shares, error, degrees):
    side = counts(n, *shares)
    shift = float(side.shift[0])
    found = WiderShift(student(shift, error**2, 40.0), side, degrees)
    p = float(found.p_value[0])
    if abs(shift) <= 1e-9 or not 1e-280 < p < 1 - 1e-3:
        return
    low, high = found.limits(p * (1 - 1e-6))
    assert low[0] <= 0 <= high[0]
    low, high = found.limits(p * (1 + 1e-6))
    assert low[0] > 0 or high[0] < 0


def test_the_tail_is_reached() -> None:
    """20 clusters, t(19): p = 1e-30 is a quantile of 151, where a level of z would be 0."""
    found = WiderExcess(
        student(-0.9, 1e-6, 1e6), counts(1e4, 0.9, 0.0), counts(1e5, 0.0, 0.0), 19.0
    )
    p = float(found.p_value[0])
    assert 1e-45 < p < 1e-25
    assert found.limits(p * 0.999)[1][0] > 0 > found.limits(p * 1.001)[1][0]
    low, high = tango_at(1e4, 9e3, 0, 151.0)
    assert -1 < low < -0.9 < high < 1


@given(n=st.floats(20, 1e5), shares=shares, factor=st.floats(1, 20))
def test_more_is_never_wider(n, shares, factor):
    narrow = WiderShift(student(shares[1] - shares[0], 0.0, 9), counts(factor * n, *shares), 30.0)
    wide = WiderShift(student(shares[1] - shares[0], 0.0, 9), counts(n, *shares), 30.0)
    (low, high), (wide_low, wide_high) = narrow.limits(0.05), wide.limits(0.05)
    assert low[0] >= wide_low[0] - 1e-12
    assert high[0] <= wide_high[0] + 1e-12
