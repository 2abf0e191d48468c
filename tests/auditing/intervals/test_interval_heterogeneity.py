from __future__ import annotations

import itertools

import numpy as np
import pytest

from fairweight.auditing.intervals import permuted_tables
from fairweight.auditing.intervals.excess import standardised_excess
from fairweight.auditing.intervals.heterogeneity import heterogeneity, heterogeneity_clusters
from fairweight.errors import InputError


def test_statistic_by_hand():
    # One label, N = 10, d̄ = −2/10, σ² = 2/10 − 4/100 = 0.16. Level of 4 that bears both losses:
    # T = −2 + 4 · 0.2 = −1.2, variance 4 · 6 / 9 · 0.16 = 0.42667.
    found = heterogeneity(
        [[4], [6]], [[2], [0]], [[0], [0]], n_draws=50, rng=np.random.default_rng(0)
    )
    assert found.t[0] == pytest.approx(-1.2 / np.sqrt(4 * 6 / 9 * 0.16))
    assert found.t[1] == pytest.approx(-found.t[0])  # two levels mirror each other
    assert found.statistic == pytest.approx(abs(found.t[0]))
    np.testing.assert_allclose(found.excess, [-0.5, 0.5])


@pytest.mark.parametrize("cost", [0.0, 1e9], ids=["cells", "places"])
def test_p_value_agrees_with_enumeration_in_both_ways_of_drawing(monkeypatch, cost):
    monkeypatch.setattr(permuted_tables, "_COST_OF_A_CELL", cost)
    size = np.array([[3, 2], [2, 3]])
    lost = np.array([[1, 1], [0, 0]])
    gained = np.array([[0, 0], [1, 0]])
    found = heterogeneity(size, lost, gained, n_draws=20_000, rng=np.random.default_rng(1))
    # Every choice of the first level's examples within each label.
    a = np.array([-1, 1, 0, 0, 0])
    b = np.array([-1, 0, 0, 0, 0])
    reach, excess_reach = [], []
    for first in itertools.combinations(range(5), 3):
        for second in itertools.combinations(range(5), 2):
            d = np.array([a[list(first)].sum(), b[list(second)].sum()])
            change = np.array([d, [a.sum(), b.sum()] - d])
            t = abs((d - size[0] * [0, -0.2]).sum()) / np.sqrt(3 * 2 / 4 * (0.4 + 0.16))
            reach.append(t >= found.statistic - 1e-9)
            excess = standardised_excess(size, 0 * change, change)
            excess_reach.append(np.abs(excess) >= np.abs(found.excess) - 1e-9)
    assert found.p_value == pytest.approx(np.mean(reach), abs=0.015)
    np.testing.assert_allclose(found.excess_p, np.mean(excess_reach, axis=0), atol=0.015)


def test_drawn_tables_keep_the_margins_and_their_moments():
    rng = np.random.default_rng(2)
    size = rng.integers(1, 30, size=(6, 2))
    lost = rng.binomial(size, 0.1)
    gained = rng.binomial(size - lost, 0.1)
    change = (gained - lost).sum()
    for ratio in (0.0, 1e9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(permuted_tables, "_COST_OF_A_CELL", ratio)
            plain, weighted = permuted_tables.permuted_tables(
                size, lost, gained, np.full(size.shape, 0.5), 4000, rng
            )
        assert (plain.sum(axis=1) == change).all()
        np.testing.assert_allclose(weighted, plain / 2)
        totals = size.sum(axis=0)
        mean = (gained - lost).sum(axis=0) / totals
        variance = (lost + gained).sum(axis=0) / totals - mean**2
        expected = (size * mean).sum(axis=1)
        deviation = np.sqrt((size * (totals - size) / (totals - 1) * variance).sum(axis=1))
        np.testing.assert_allclose(plain.mean(axis=0), expected, atol=4 * deviation.max() / 63)
        np.testing.assert_allclose(plain.std(axis=0), deviation, rtol=0.08)


def test_a_label_that_everybody_loses_is_no_difference():
    # Label b is lost by half in both levels, which hold a and b 9 : 1 and 1 : 9.
    size = np.array([[900, 100], [100, 900]])
    lost = np.array([[90, 50], [10, 450]])
    found = heterogeneity(size, lost, 0 * lost, rng=np.random.default_rng(3))
    assert found.statistic == pytest.approx(0, abs=1e-9)
    assert found.p_value == 1


def test_nothing_changed():
    found = heterogeneity([[5, 0], [5, 3]], np.zeros((2, 2)), np.zeros((2, 2)))
    assert (found.statistic, found.p_value, found.n_draws) == (0, 1, 0)
    assert found.excess_p.tolist() == [1, 1]


def test_one_level_cannot_differ():
    found = heterogeneity([[5, 4]], [[1, 1]], [[0, 0]])
    assert np.isnan([found.statistic, found.p_value, found.t[0]]).all()


def test_same_source_same_result():
    arguments = [[40], [60]], [[9], [5]], [[1], [2]]
    first, second = (heterogeneity(*arguments, rng=np.random.default_rng(9)) for _ in range(2))
    assert first.p_value == second.p_value


def test_shapes_must_agree():
    with pytest.raises(InputError, match="one shape"):
        heterogeneity([[1, 2]], [[0]], [[0, 0]])


def clusters(rng, effect, mixed=False):
    """120 clusters of 5 to 40 examples, three labels, a shared rate of loss per cluster."""
    size = rng.integers(5, 41, 120)
    unit = np.repeat(np.arange(120), size)
    level = rng.integers(0, 3, unit.size) if mixed else (unit % 3)
    rate = rng.beta(2, 38, 120)[unit] + effect * (level == 1)
    draw = rng.random(unit.size)
    difference = np.where(draw < rate, -1, np.where(draw > 0.98, 1, 0))
    return unit, level, rng.integers(0, 3, unit.size), difference


@pytest.mark.parametrize("mixed", [False, True])
def test_clusters_find_a_level_that_pays(mixed):
    rng = np.random.default_rng(4)
    found = heterogeneity_clusters(*clusters(rng, 0.12, mixed), n_draws=499, rng=rng)
    assert found.p_value < 0.01
    assert np.argmin(found.t) == 1
    assert found.excess[1] == pytest.approx(-0.12, abs=0.05)
    assert found.excess_p[1] < 0.01


def test_cluster_level_codes_may_have_gaps():
    rng = np.random.default_rng(5)
    unit, level, label, difference = clusters(rng, 0.0)
    found = heterogeneity_clusters(
        unit, np.where(level == 2, 3, level), label, difference, n_draws=50, rng=rng
    )
    assert np.isnan(found.t[2])
    assert np.isnan(found.excess_p[2])
    assert 0 < found.p_value <= 1


def test_clusters_without_a_change():
    found = heterogeneity_clusters([0, 1, 2], [0, 1, 0], [0, 0, 0], [0, 0, 0])
    assert (found.statistic, found.p_value) == (0, 1)


def test_the_only_cluster_of_a_level_is_one_of_41():
    # Level 1 has one large cluster with every answer lost; no other cluster loses anything. It is
    # the most extreme of 41 clusters, however many examples it has: p = 1/41 = 0.024.
    unit = np.r_[np.repeat(np.arange(40), 10), np.full(100, 40)]
    level = (unit == 40).astype(int)
    difference = -level
    found = heterogeneity_clusters(
        unit, level, 0 * unit, difference, n_draws=4999, rng=np.random.default_rng(6)
    )
    assert found.p_value == pytest.approx(1 / 41, abs=0.008)
