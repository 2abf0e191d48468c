"""True values given estimates: hand-computed cases, what is shrunk, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

from fairweight.auditing.choose.frontier import best_set, share_best, share_near
from fairweight.auditing.choose.prior import FOR_BEST, FOR_DISTANCE, FOR_FRONTIER, posterior
from fairweight.base.types import Floats


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def of(*values: float, seed: int = 0, n: int = 4000) -> Floats:
    """Draws of the true values of estimates that err by 1, independently."""
    at = np.array(values)
    return posterior(at, at + rng(seed).standard_normal((n, len(at))), rng(seed + 1)).draws


def test_far_apart_the_posterior_is_the_estimate_and_its_error() -> None:
    """Two estimates 40 errors apart say nothing of each other: N(estimate, 1) each."""
    draws = of(0.0, 40.0, n=20_000)
    difference = draws[:, 1] - draws[:, 0]
    assert difference.mean() == pytest.approx(40, abs=0.1)
    assert difference.std() == pytest.approx(np.sqrt(2), abs=0.05)
    assert share_best(draws).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("n_variants", [2, 5, 20])
def test_equal_estimates_are_equally_probable(n_variants: int) -> None:
    """By symmetry each is the best with probability 1 / V."""
    assert share_best(of(*[0.0] * n_variants)) == pytest.approx(1 / n_variants, abs=0.03)


def test_noise_alone_is_shrunk_to_the_mean_and_signal_is_not() -> None:
    luck = rng(1).standard_normal(20)
    assert np.ptp(of(*luck).mean(axis=0)) < 0.5 * np.ptp(luck)
    truth = 50 * luck
    found = of(*truth)
    moved = found.mean(axis=0) - truth
    assert moved - moved.mean() == pytest.approx(0, abs=0.2)


def test_a_known_prior_is_found_again() -> None:
    """200 true values of N(0, 1) and errors of 1: the mean is half of the estimate, ± √½."""
    truth = rng(20).standard_normal(200)
    values = truth + rng(21).standard_normal(200)
    found = posterior(values, values + rng(22).standard_normal((2000, 200)), rng(23))
    slope = np.polyfit(values, found.mean, 1)[0]
    assert slope == pytest.approx(0.5, abs=0.12)
    assert found.draws.std(axis=0).mean() == pytest.approx(np.sqrt(0.5), abs=0.12)
    assert np.corrcoef(truth, found.mean)[0, 1] > 0.65


def test_what_all_have_in_common_does_not_blur_the_choice() -> None:
    own = 0.1 * rng(5).standard_normal((2000, 3))
    common = 30 * rng(6).standard_normal((2000, 1))
    values = np.array([1.0, 0.0, -1.0])
    found = posterior(values, values + own + common, rng(7))
    assert share_best(found.draws)[0] > 0.99
    assert best_set(values, values + own + common).tolist() == [True, False, False]


def test_near_copies_are_told_apart_by_their_own_noise() -> None:
    """A and B share an error of 1 and differ by 0.4 ± 0.1: B is above A, whatever C is."""
    shared, small = rng(8).standard_normal((2, 4000, 2))
    error = np.stack([shared[:, 0], shared[:, 0] + 0.1 * small[:, 0], shared[:, 1]], axis=1)
    values = np.array([0.0, 0.4, 0.1])
    draws = posterior(values, values + error, rng(9)).draws
    assert (draws[:, 1] > draws[:, 0]).mean() > 0.9


def test_without_noise_nothing_is_shrunk() -> None:
    values = np.array([3.0, 2.0, 3.0])
    exact = np.tile(values, (50, 1))
    assert posterior(values, exact, rng()).draws.tolist() == exact.tolist()
    assert posterior(values[:1], exact[:, :1], rng()).mean.tolist() == [3.0]
    assert share_best(exact).tolist() == [0.5, 0.0, 0.5]
    assert best_set(values, exact).tolist() == [True, False, True]


def test_a_collapsed_variant_does_not_make_the_leader_sure() -> None:
    """Four that differ by noise are nearly as unsure with a fifth far below as without it."""
    alone = share_best(of(0.5, 0.2, -0.3, 0.0))
    beside = of(0.5, 0.2, -0.3, 0.0, -40.0)
    assert share_best(beside)[:4] == pytest.approx(alone, abs=0.05)
    assert share_best(beside)[4] == 0
    raw = share_best(np.array([0.5, 0.2, -0.3, 0.0]) + rng(1).standard_normal((4000, 4)))
    assert raw[0] > share_best(beside)[0] + 0.05


def test_copies_are_never_apart() -> None:
    """The same predictions give the same value in every draw, shrunk or not."""
    error = rng(8).standard_normal((1000, 2))[:, [0, 1, 1]]
    values = np.array([0.3, 0.5, 0.5])
    draws = posterior(values, values + error, rng(9)).draws
    assert draws[:, 1] == pytest.approx(draws[:, 2], abs=1e-6)
    chance = share_best(draws)
    assert chance[1] == pytest.approx(chance[2], abs=1e-3)


def test_units_do_not_matter() -> None:
    """Percent or shares: the same probabilities, to the last draw."""
    values = np.array([0.3, 0.9, 0.5])
    error = rng(11).standard_normal((1000, 3))
    one = posterior(values, values + error, rng(12)).draws
    other = posterior(7 + values / 100, 7 + (values + error) / 100, rng(12)).draws
    assert share_best(one) == pytest.approx(share_best(other), abs=0.002)


def test_many_variants_get_fewer_draws() -> None:
    values = rng(13).standard_normal(150)
    found = posterior(values, values + rng(14).standard_normal((1000, 150)), rng(15))
    assert found.draws.shape == (500, 150)


def test_near_the_best_by_hand() -> None:
    """Tops are 2 and 1; a margin of 1 takes in 1.0, and not 0.9."""
    draws = np.array([[1.0, 2.0, 0.0], [1.0, 0.9, -0.1]])
    assert share_near(draws, 1.0).tolist() == [1.0, 1.0, 0.0]
    assert share_near(draws, 0.0).tolist() == [0.5, 0.5, 0.0]
    assert share_near(draws, 5.0).tolist() == [1.0, 1.0, 1.0]


def test_the_shapes_depend_on_the_question() -> None:
    """A leader by one σ may be lucky: equal variants count most for who is the best, less for who
    is on a frontier, and not at all for how far one is from the best.
    """
    values = np.array([1.0, 0.0, -0.2, 0.1, -0.1])
    replicates = values + rng(31).standard_normal((4000, 5))
    draws = [
        posterior(values, replicates, rng(32), shapes).draws
        for shapes in (FOR_BEST, FOR_FRONTIER, FOR_DISTANCE)
    ]
    best = [share_best(one)[0] for one in draws]
    assert 0.2 < best[0] < best[1] < best[2] < 0.7
    near = [share_near(one, 0.5)[0] for one in draws]
    assert near[0] > near[1] > near[2] > 0.4
