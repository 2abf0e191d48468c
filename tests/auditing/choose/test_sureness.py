"""Shrunken draws, the share of draws in which one is best, and the set that contains the best."""

from __future__ import annotations

import numpy as np
import pytest

from fairweight.auditing.choose.apart import neighbourhoods
from fairweight.auditing.choose.best import best_set, deficits, share_best
from fairweight.auditing.choose.shrunk import PRIOR_SCALE, shrink


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_equal_variants_share_what_they_win() -> None:
    draws = np.array([[3.0, 3.0, 1.0], [0.0, 0.0, 5.0]])
    assert share_best(draws).tolist() == [0.25, 0.25, 0.5]


def test_noise_alone_is_shrunk_to_the_mean_and_signal_is_not() -> None:
    error = rng().standard_normal((4000, 20))
    luck = rng(1).standard_normal(20)
    noise = shrink(luck, luck + error, rng(2)).mean
    assert np.ptp(noise) < 0.5 * np.ptp(luck)
    truth = 50 * luck
    signal = shrink(truth, truth + error, rng(2)).mean
    assert signal == pytest.approx(truth, abs=0.2)


def test_the_posterior_is_that_of_normal_theory() -> None:
    """Two variants: given τ the difference has mean d τ² / (τ² + σ²), integrated over τ by hand."""
    values, sigma = np.array([1.0, -1.0]), 1.0
    error = sigma * rng(3).standard_normal((40_000, 2))
    found = shrink(values, values + error, rng(4))
    tau = np.geomspace(0.001, 1000, 20_001)
    total = tau**2 + sigma**2
    likelihood = np.exp(-0.5 * 2.0**2 / (2 * total)) / np.sqrt(total)
    scale = PRIOR_SCALE * sigma * 2**0.25  # two variants tell a spread of (2 / 1)^¼
    chance = likelihood * tau / (1 + (tau / scale) ** 2)
    expected = float((chance * tau**2 / total).sum() / chance.sum())  # of the difference of 2
    assert found.mean[0] - found.mean[1] == pytest.approx(2 * expected, abs=0.03)
    assert (found.draws[:, 0] - found.draws[:, 1]).mean() == pytest.approx(2 * expected, abs=0.03)


def test_what_all_have_in_common_does_not_blur_the_choice() -> None:
    own = 0.1 * rng(5).standard_normal((2000, 3))
    common = 30 * rng(6).standard_normal((2000, 1))
    values = np.array([1.0, 0.0, -1.0])
    found = shrink(values, values + own + common, rng(7))
    assert share_best(found.draws)[0] > 0.99
    assert best_set(values, values + own + common).tolist() == [True, False, False]


def test_without_noise_nothing_is_shrunk() -> None:
    values = np.array([3.0, 2.0, 3.0])
    exact = np.tile(values, (50, 1))
    assert shrink(values, exact, rng()).draws.tolist() == exact.tolist()
    assert share_best(exact).tolist() == [0.5, 0.0, 0.5]
    assert best_set(values, exact).tolist() == [True, False, True]


def test_a_collapsed_variant_does_not_make_the_leader_sure() -> None:
    """Four that differ by noise are as unsure with a fifth far below as without it."""
    error = rng(11).standard_normal((4000, 5))
    values = np.array([0.5, 0.2, -0.3, 0.0, -40.0])
    alone = share_best(shrink(values[:4], values[:4] + error[:, :4], rng(12)).draws)
    beside = shrink(values, values + error, rng(12))
    assert share_best(beside.draws)[:4] == pytest.approx(alone, abs=0.01)
    assert beside.mean[4] == values[4]
    raw = share_best(values + error)
    assert raw[0] > alone[0] + 0.05


def test_what_lies_apart() -> None:
    def parts(*values: float) -> list[list[int]]:
        error = rng(13).standard_normal((2000, len(values)))
        return [part.tolist() for part in neighbourhoods(np.array(values), error)]

    assert parts(0.0, 1.0, -1.0, 2.0) == [[2, 0, 1, 3]]
    assert parts(0.0, 1.0, -90.0, 2.0) == [[2], [0, 1, 3]]
    assert parts(0.0, 1.0, -90.0, -60.0, 0.5) == [[2, 3], [0, 4, 1]]
    assert parts(0.0, 90.0) == [[0, 1]]  # nothing to compare their distance with
    assert parts(3.0) == [[0]]


def test_who_is_above_whom_as_in_plain_loops() -> None:
    values = rng(14).standard_normal(6)
    error = rng(15).standard_normal((500, 6)) * np.array([0.1, 1, 0.5, 0.2, 0.3, 1])
    found = deficits(values, values + error)
    for i in range(6):
        others = [j for j in range(6) if j != i]
        own = error - error.mean(axis=0)
        drawn = own[:, others] - own[:, [i]]
        width = drawn.std(axis=0, ddof=1)
        limit = max(np.quantile((drawn / width).max(axis=1), 0.95), 0.0)
        assert found[others, i].tolist() == ((values[others] - values[i]) / width > limit).tolist()


def test_copies_are_never_apart() -> None:
    """The same answers give the same value in every draw, shrunk or not."""
    error = rng(8).standard_normal((1000, 2))[:, [0, 1, 1]]
    values = np.array([0.3, 0.5, 0.5])
    draws = shrink(values, values + error, rng(9)).draws
    assert draws[:, 1] == pytest.approx(draws[:, 2], abs=1e-6)
    chance = share_best(draws)
    assert chance[1] == pytest.approx(chance[2], abs=1e-3)
    assert not deficits(values, values + error)[1:, 1:].any()


def test_the_set_contains_the_best_95_times_in_100() -> None:
    """All alike is the hardest case: each is left out in 5 % of samples, whatever their number."""
    generator = rng(10)
    for n_variants in (2, 8):
        inside = 0
        for _ in range(400):
            values = generator.standard_normal(n_variants)
            replicates = values + generator.standard_normal((300, n_variants))
            inside += bool(best_set(values, replicates)[0])
        assert 0.92 <= inside / 400 <= 0.985
