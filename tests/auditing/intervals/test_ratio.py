"""Ratios of sums against arithmetic on paper and a plain transcription of the rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fairweight.auditing.intervals.ratio import (
    RatioExcess,
    RatioMoments,
    RatioShift,
    RatioSums,
    UsualChange,
    min_detectable_change,
)
from fairweight.base.types import Floats

ONE_IN_FOUR = np.array([1.0, 1.0, 1.0, 2.0])


def row(of: RatioMoments, place: int) -> RatioMoments:
    return RatioMoments(*(getattr(of, name)[place : place + 1] for name in vars(of)))


def moments(nb: Floats, nc: Floats, db: Floats, dc: Floats) -> RatioMoments:
    return RatioSums.of_units(nb, nc, db, dc).moments()


def test_moments_on_paper() -> None:
    """One of four values rises from 1 to 2: R 1 → 1.25, e = (−.25, −.25, −.25, .75)."""
    ones = np.ones(4)
    found = moments(ones, ONE_IN_FOUR, ones, ones)
    assert found.shift.tolist() == [0.25]
    assert found.second.tolist() == pytest.approx([3 * 0.25**2 + 0.75**2])
    assert found.third.tolist() == pytest.approx([-3 * 0.25**3 + 0.75**3])
    assert found.changed.tolist() == [1]
    assert found.change_size.tolist() == pytest.approx([1])  # the one change is 1
    assert found.n_equal.tolist() == [4]


def test_limits_on_paper() -> None:
    """40 values, 10 of them rise by 1: s2 = 7.5, s3 = 3.75, m = 1, skewness 2 · 3.75 / 7.5 = 1.

    f = 2 / (2 + 10); S+ = max(.5, 1, f) = 1, S− = −f; q = t39 = 2.0227, standard error
    √((7.5 + 1) / 1600 · 40 / 39) = .073816, (1 + 2 q²) / 6 = 1.5304.
    """
    ones = np.ones(40)
    found = moments(ones, np.tile(ONE_IN_FOUR, 10), ones, ones)
    usual = UsualChange.of(found)
    assert (usual.size, usual.skewness) == pytest.approx((1, 1))
    low, high = RatioShift(found, usual).limits(0.05)
    q = 2.02269
    error = (8.5 / 1600 * 40 / 39) ** 0.5
    bend = (1 + 2 * q**2) / 6
    assert low.tolist() == pytest.approx([0.25 - q * error - bend / 6 / 40], abs=1e-5)
    assert high.tolist() == pytest.approx([0.25 + q * error + bend / 40], abs=1e-5)


def test_a_ratio_of_sums_is_no_mean_of_ratios() -> None:
    """Word errors 1 of 10 and 4 of 30 words, then 2 of 10 and 4 of 30: 5/40 → 6/40."""
    words = np.array([10.0, 30.0])
    found = moments(np.array([1.0, 4.0]), np.array([2.0, 4.0]), words, words)
    assert found.baseline.tolist() == [5 / 40]
    assert found.compressed.tolist() == [6 / 40]
    assert found.n_equal.tolist() == pytest.approx([40**2 / (10**2 + 30**2)])


def test_a_row_without_a_change_borrows_the_usual_one() -> None:
    """At 90 % at least ± 2.7 m / n, as Tango has it: (1.645 + (1 + 2 · 1.645²) / 6) m / n."""
    n = 100_000
    ones = np.ones(n)
    same = moments(ones, ones, ones, ones)
    usual = UsualChange(
        size=2.0, skewness=0.0, den=1.0, changed=50, share_changed=0.01, variance=0.1
    )
    low, high = RatioShift(same, usual).limits(0.1)
    assert high.tolist() == pytest.approx([2.714 * 2.0 / n], rel=1e-3)
    assert low.tolist() == pytest.approx([-2.714 * 2.0 / n], rel=1e-3)


def test_few_changes_in_all_are_not_estimable() -> None:
    ones = np.ones(300)
    nearly = ones.copy()
    nearly[:9] = 2
    found = moments(ones, nearly, ones, ones)
    shift = RatioShift(found, UsualChange.of(found))
    assert np.isnan(shift.limits(0.05)).all()
    assert np.isnan(shift.p_value()).all()


def world(seed: int, n: int = 300) -> tuple[Floats, Floats, Floats, Floats]:
    """Word errors whose number of words differs between the models."""
    rng = np.random.default_rng(seed)
    words = rng.integers(5, 41, n).astype(float)
    errors = rng.poisson(1.0, n).astype(float)
    more = rng.binomial(1, 0.3, n) * rng.integers(-1, 3, n)
    return errors, np.maximum(errors + more, 0), words, words + rng.integers(-1, 2, n)


def plain(values: tuple[Floats, ...], rho: float) -> tuple[float, float, float]:
    """Shift, Σ e² and Σ e³ as section 12 writes them, from the values themselves."""
    nb, nc, db, dc = values
    rb, rc = nb.sum() / db.sum(), nc.sum() / dc.sum()
    e = len(nb) * ((nc - rc * dc) / dc.sum() - rho * (nb - rb * db) / db.sum())
    return rc - rho * rb, float((e**2).sum()), float((e**3).sum())


@given(
    st.integers(0, 50), st.sampled_from([1.0, 0.95, 1.1]), st.sampled_from([0.0, 0.05, -3.0, 7.0])
)
def test_sums_give_what_the_values_give(seed: int, rho: float, centre: float) -> None:
    values = world(seed)
    sums = RatioSums.of_units(*values, centre=centre)
    for found in (sums.moments(rho), sums.recentred(0.3).moments(rho)):
        shift, second, third = plain(values, rho)
        assert found.shift[0] == pytest.approx(shift, rel=1e-9, abs=1e-12)
        assert found.second[0] == pytest.approx(second, rel=1e-9)
        assert found.third[0] == pytest.approx(third, rel=1e-6, abs=1e-6 * second)


def test_losses_that_hardly_change_keep_their_third_moment() -> None:
    """Values about 100,000 that change by about 1: differences and a centre keep the digits."""
    rng = np.random.default_rng(0)
    ones = np.ones(2000)
    base = 1e5 + rng.standard_normal(2000)
    values = (base, base + rng.exponential(1.0, 2000), ones, ones)
    found = RatioSums.of_units(*values, centre=1e5).moments(0.999)
    _, second, third = plain(values, 0.999)
    assert found.second[0] == pytest.approx(second, rel=1e-8)
    assert found.third[0] == pytest.approx(third, rel=1e-6)


def test_sums_of_parts_add_up() -> None:
    values = world(3)
    first, second = (tuple(v[part] for v in values) for part in (slice(100), slice(100, None)))
    both = RatioSums.of_units(*first, centre=1.0) + RatioSums.of_units(*second, centre=-2.0)
    whole = RatioSums.of_units(*values, centre=1.0)
    np.testing.assert_allclose(both.products, whole.products, rtol=1e-12, atol=1e-9)
    assert both.changed.tolist() == whole.changed.tolist()


@given(st.integers(0, 200))
def test_p_is_the_smallest_level_whose_limits_exclude_0(seed: int) -> None:
    values = world(seed)
    mask = np.random.default_rng(seed).random(300) < 0.3
    rows = RatioSums.of_units(*values, rows=np.stack([mask, ~mask])).moments()
    usual = UsualChange.of(moments(*values))
    shift = RatioShift(rows, usual)
    excess = RatioExcess(RatioShift(row(rows, 0), usual), RatioShift(row(rows, 1), usual))
    for estimate, value in ((shift, rows.shift), (excess, excess.value)):
        p = estimate.p_value()
        low, high = estimate.limits(p)
        facing = np.where(value > 0, low, high)
        np.testing.assert_allclose(facing[p < 0.999], 0, atol=1e-12)
        wider, narrower = estimate.limits(0.5 * p), estimate.limits(np.minimum(1.5 * p, 1.0))
        assert (wider[0] <= 0).all()
        assert (wider[1] >= 0).all()
        away = (narrower[0] > 0) | (narrower[1] < 0)
        assert away[p < 0.6].all()


def test_an_excess_is_mover_on_both_sides() -> None:
    values = world(5)
    mask = np.arange(300) < 60
    rows = RatioSums.of_units(*values, rows=np.stack([mask, ~mask])).moments()
    usual = UsualChange.of(moments(*values))
    group, others = (RatioShift(row(rows, place), usual) for place in (0, 1))
    low, high = RatioExcess(group, others).limits(0.05)
    (gl, gh), (ol, oh) = group.limits(0.05), others.limits(0.05)
    value = group.rows.shift - others.rows.shift
    assert low == pytest.approx(
        value - np.hypot(group.rows.shift - gl, oh - others.rows.shift), rel=1e-12
    )
    assert high == pytest.approx(
        value + np.hypot(gh - group.rows.shift, others.rows.shift - ol), rel=1e-12
    )


def test_detectable_change_solves_its_equation() -> None:
    usual = UsualChange(
        size=2.0, skewness=0.5, den=1.0, changed=600, share_changed=0.05, variance=0.2
    )
    n, alpha = 300.0, 0.05 / 8
    change = float(min_detectable_change(n, usual, alpha))
    q = stats.t.isf(alpha / 2, n - 1)
    variance = 0.2 + 2 * change
    changed = n * min(1, 0.05 + change / 2)
    right = (
        q * (variance / n + 4 / n**2) ** 0.5
        + 0.8416 * (variance / n) ** 0.5
        + (1 + 2 * q**2) / 6 * (4 / (2 + changed)) / n
    )
    assert change == pytest.approx(right, rel=1e-9)
