"""Shrunken rates: conjugate posteriors by hand, marginal likelihood and quantiles beside scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from fairweight.auditing.explain.shrinkage import (
    Shrunk,
    effective_answers,
    share_limits,
    shift_limits,
    shrink,
)

RATE = np.array([1.0, 0.0])
SHIFT = np.array([-1.0, 1.0, 0.0])


def betabinomial_fit(right: np.ndarray, n: np.ndarray) -> tuple[float, float]:
    """Parameters of largest marginal likelihood, by scipy's own distribution."""

    def loss(point: np.ndarray) -> float:
        return -float(stats.betabinom.logpmf(right, n, *np.exp(point)).sum())

    found = optimize.minimize(loss, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6})
    return tuple(np.exp(found.x))


def test_many_individuals_get_the_posterior_of_the_marginal_likelihood() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(8, 60, 1500)
    right = rng.binomial(n, rng.beta(18, 2, 1500))
    a, b = betabinomial_fit(right, n)
    shrunk = shrink(np.stack([right, n - right], axis=1).astype(float), RATE)
    assert shrunk.mean[:, 0] == pytest.approx((a + right) / (a + b + n), abs=2e-3)
    assert shrunk.concentration == pytest.approx(a + b + n, rel=0.05)
    low, high = share_limits(shrunk)
    assert low == pytest.approx(stats.beta.ppf(0.025, a + right, b + n - right), abs=6e-3)
    assert high == pytest.approx(stats.beta.ppf(0.975, a + right, b + n - right), abs=6e-3)


def test_one_individual_is_integrated_over_the_flat_prior() -> None:
    # 7 of 8 right. κ = 1/ρ − 1 with ρ uniform, π uniform: numerical integration of both.
    def moment(power: int) -> float:
        def inside(rho: float, pi: float) -> float:
            kappa = 1 / rho - 1
            a, b = kappa * pi, kappa * (1 - pi)
            total = a + b + 8
            first = (a + 7) / total
            second = first * (a + 8) / (total + 1)
            return float(stats.betabinom.pmf(7, 8, a, b)) * (1.0, first, second)[power]

        return float(integrate.dblquad(inside, 1e-6, 1 - 1e-6, 1e-3, 1 - 1e-6, epsabs=1e-6)[0])

    everything, first, second = (moment(power) for power in range(3))
    mean = first / everything
    shrunk = shrink(np.array([[7.0, 1.0]]), RATE)
    variance = shrunk.mean[0, 0] * shrunk.mean[0, 1] / (shrunk.concentration[0] + 1)
    assert shrunk.mean[0, 0] == pytest.approx(mean, abs=0.01)
    assert variance**0.5 == pytest.approx((second / everything - mean**2) ** 0.5, rel=0.05)


def test_fewer_examples_are_drawn_closer_to_the_others() -> None:
    rng = np.random.default_rng(2)
    n = np.array([4, 100, *rng.integers(30, 100, 200)])
    right = rng.binomial(n, rng.beta(40, 4, len(n)))
    right[:2] = n[:2] // 2  # both have half of their answers right
    shrunk = shrink(np.stack([right, n - right], axis=1).astype(float), RATE)
    assert 0.5 < shrunk.mean[1, 0] < 0.75 < shrunk.mean[0, 0] < 0.92
    assert shrunk.concentration[0] < shrunk.concentration[1]


def test_equal_counts_are_equal_people_in_any_order() -> None:
    counts = np.array([[3.0, 0, 20], [0, 1, 8], [3, 0, 20], [0, 0, 30]])
    shrunk, turned = shrink(counts, SHIFT), shrink(counts[::-1], SHIFT)
    assert (shrunk.mean[0] == shrunk.mean[2]).all()
    assert turned.mean[::-1] == pytest.approx(shrunk.mean, abs=1e-6)
    low, high = shift_limits(shrunk)
    assert (low[0], high[0]) == (low[2], high[2])


def test_nothing_lost_by_anybody_is_no_shift_with_a_width() -> None:
    low, high = shift_limits(shrink(np.array([[0.0, 0.0, 10.0]] * 30), SHIFT))
    assert (low < 0).all()
    assert (high > 0).all()
    assert low == pytest.approx(-high, abs=1e-3)
    assert (high < 0.02).all()


@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize("of", [(2.0, 0.3, 20.0), (5.0, 5.0, 80.0), (30.0, 0.5, 70.0)])
def test_limits_of_a_shift_are_its_quantiles(of: tuple[float, ...], alpha: float) -> None:
    parameters = np.array([of])
    total = parameters.sum(axis=1)
    low, high = shift_limits(Shrunk(parameters / total, total), alpha)
    draws = np.random.default_rng(0).dirichlet(of, 200_000)
    expected = np.quantile(draws[:, 1] - draws[:, 0], [alpha / 2, 1 - alpha / 2])
    width = expected[1] - expected[0]
    assert [low[0], high[0]] == pytest.approx(expected.tolist(), abs=0.015 * width)


def test_members_are_worth_one_answer_where_they_agree_and_all_where_independent() -> None:
    rng = np.random.default_rng(4)
    chance = rng.beta(9, 1, (50, 1))

    def worth(answers: np.ndarray) -> float:  # (individuals, examples, members)
        share = answers.mean(axis=2)
        n = np.full(len(share), float(share.shape[1]))
        return effective_answers(share.mean(axis=1), share.var(axis=1, ddof=1), n)

    alike = np.repeat((rng.random((50, 400)) < chance)[:, :, None], 5, axis=2)
    apart = rng.random((50, 400, 5)) < chance[:, :, None]
    assert worth(alike) == pytest.approx(1, abs=1e-9)
    assert worth(apart) == pytest.approx(5, rel=0.03)
    assert worth(np.ones((3, 4, 5))) == 1
    assert effective_answers(np.array([0.5]), np.array([0.0]), np.array([1.0])) == 1
