from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

from fairweight.auditing.intervals.proportion import tango, tango_test


def counts():
    return st.integers(0, 60).flatmap(
        lambda b: st.integers(0, 60).flatmap(
            lambda c: st.tuples(st.integers(max(1, b + c), 400), st.just(b), st.just(c))
        )
    )


def score_by_likelihood(n, base, compressed, delta):
    """The score statistic from its definition: maximise the likelihood under the hypothesis."""

    def loss(q):  # q = P(base only), q + delta = P(compressed only)
        p = q + delta
        same = 1 - p - q
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = [
                count * np.log(share) if count else 0.0
                for count, share in ((base, q), (compressed, p), (n - base - compressed, same))
            ]
        return -sum(terms)

    low, high = max(0.0, -delta), (1 - delta) / 2
    q = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
    return (compressed - base - n * delta) / np.sqrt(n * (2 * q + delta - delta**2))


@pytest.mark.parametrize(
    ("n", "base", "compressed"), [(50, 7, 2), (44, 0, 1), (12, 4, 8), (30, 30, 0), (400, 9, 31)]
)
def test_limits_are_roots_of_the_score_of_the_constrained_likelihood(n, base, compressed):
    z = norm.ppf(0.975)
    low, high = tango(n, base, compressed)
    shift = (compressed - base) / n
    if shift > -1:
        root = brentq(
            lambda d: score_by_likelihood(n, base, compressed, d) - z, -1 + 1e-6, shift - 1e-9
        )
        assert low == pytest.approx(root, abs=1e-4)
    if shift < 1:
        root = brentq(
            lambda d: score_by_likelihood(n, base, compressed, d) + z, shift + 1e-9, 1 - 1e-6
        )
        assert high == pytest.approx(root, abs=1e-4)


@given(counts())
def test_the_statistic_at_the_limits_is_z(table):
    n, base, compressed = table
    low, high = tango(n, base, compressed)
    if low > -1:
        assert tango_test(n, base, compressed, low) == pytest.approx(norm.ppf(0.975), abs=1e-6)
    if high < 1:
        assert tango_test(n, base, compressed, high) == pytest.approx(-norm.ppf(0.975), abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 10, 133, 10_000, 10_000_000])
def test_identical_predictions(n):
    z2 = norm.ppf(0.975) ** 2
    low, high = tango(n, 0, 0)
    assert high == pytest.approx(z2 / (n + z2), rel=1e-9)
    assert low == -high


def test_least_n_that_certifies_two_points():
    # 90 % interval: z² / (n + z²) < 0.02 first at n = 133 (z² = 2.7055, 2.7055 · 49 = 132.6).
    assert tango(132, 0, 0, 0.1)[1] > 0.02
    assert tango(133, 0, 0, 0.1)[1] < 0.02


def test_every_pair_discordant_in_one_direction():
    # Under delta all pairs are discordant: √n √((1 − d) / (1 + d)) = z, d = (n − z²) / (n + z²).
    z2 = norm.ppf(0.975) ** 2
    low, high = tango(5, 0, 5)
    assert low == pytest.approx((5 - z2) / (5 + z2), abs=1e-12)
    assert high == 1


def test_huge_tables_approach_the_normal_interval():
    n, base, compressed = 10_000_000, 300_000, 290_000
    low, high = tango(n, base, compressed)
    shift = (compressed - base) / n
    error = np.sqrt((base + compressed) / n - shift**2) / np.sqrt(n)
    assert low == pytest.approx(shift - 1.959964 * error, rel=1e-3)
    assert high == pytest.approx(shift + 1.959964 * error, rel=1e-3)


def test_undefined_rows_are_nan():
    low, high = tango([0, 10, 10], [0, np.nan, 1], [0, 1, 1])
    assert np.isnan(low).tolist() == [True, True, False]
    assert np.isnan(high).tolist() == [True, True, False]


def test_shapes_broadcast():
    low, high = tango(np.full((3, 1), 50), np.arange(4), 2, 0.01)
    assert low.shape == high.shape == (3, 4)
    assert tango(50, 7, 2)[0].shape == ()


@given(counts(), st.floats(1e-9, 0.5))
def test_exchanging_the_models_negates_the_limits(table, alpha):
    n, base, compressed = table
    low, high = tango(n, base, compressed, alpha)
    mirrored_low, mirrored_high = tango(n, compressed, base, alpha)
    assert low == -mirrored_high
    assert high == -mirrored_low
    assert -1 <= low <= (compressed - base) / n <= high <= 1


@given(counts())
def test_smaller_alpha_widens_and_more_data_narrow(table):
    n, base, compressed = table
    low, high = tango(n, base, compressed, 0.05)
    wider = tango(n, base, compressed, 0.05 / 100)
    more = tango(10 * n, 10 * base, 10 * compressed, 0.05)
    assert wider[0] <= low
    assert wider[1] >= high
    assert more[1] - more[0] <= high - low + 1e-12


@given(counts(), st.floats(-0.99, 0.99))
def test_the_statistic_is_antisymmetric_and_falls_in_delta(table, delta):
    n, base, compressed = table
    z = tango_test(n, base, compressed, delta)
    assert z == -tango_test(n, compressed, base, -delta)
    assert tango_test(n, base, compressed, delta + 0.009) < z


def test_statistic_where_nothing_can_vary():
    assert tango_test(10, 0, 0, 0.0) == 0
    assert tango_test(10, 0, 0, 1.0) == -np.inf
    assert tango_test(10, 0, 10, 1.0) == 0
    assert np.isnan(tango_test(0, 0, 0, 0.1))


def test_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    rng = np.random.default_rng(0)
    n, base, compressed = rng.integers((20, 0, 0), (500, 10, 10), (60, 3)).T
    low, high = tango(n, base, compressed)
    alone = [tango(*row) for row in zip(n, base, compressed, strict=True)]
    assert low.tolist() == [float(one[0]) for one in alone]
    assert high.tolist() == [float(one[1]) for one in alone]
