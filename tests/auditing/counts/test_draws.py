"""Draws of counted items follow the laws they stand for, whichever way they are made."""

from __future__ import annotations

import numpy as np
import pytest

from fairweight.auditing.counts import counts
from fairweight.auditing.counts.counts import coins, resampler


def multiplicities(way: str) -> np.ndarray:
    rng = np.random.default_rng(1)
    if way == "items":
        return rng.integers(0, 4, 300)
    if way == "multinomial":
        return rng.integers(0, 200, 60)
    return rng.integers(0, 60, counts.FEW_CELLS + 500)


@pytest.mark.parametrize("way", ["items", "multinomial", "poisson"])
def test_every_way_draws_the_bootstrap(way: str) -> None:
    """Totals are exact; means n_i, variances n_i (1 − n_i / N), covariances −n_i n_j / N."""
    multiplicity = multiplicities(way)
    total = int(multiplicity.sum())
    size = 4_000
    drawn = resampler(multiplicity)(np.random.default_rng(2), size)
    assert drawn.shape == (size, len(multiplicity))
    assert (drawn.sum(axis=1) == total).all()
    assert (drawn[:, multiplicity == 0] == 0).all()
    variance = multiplicity * (1 - multiplicity / total)
    some = multiplicity > 0
    # Of many cells the largest of their standardised errors stays below 5.
    error = (drawn.mean(axis=0) - multiplicity)[some] / np.sqrt(variance[some] / size)
    assert np.abs(error).max() < 5
    ratio = drawn.var(axis=0)[some] / variance[some]
    assert abs(ratio.mean() - 1) < 0.02
    half = np.arange(len(multiplicity)) < len(multiplicity) // 2
    share = multiplicity[half].sum() / total
    assert drawn[:, half].sum(axis=1).var() == pytest.approx(total * share * (1 - share), rel=0.1)


def test_the_ways_are_chosen_by_cost() -> None:
    names = {way: resampler(multiplicities(way)).__qualname__ for way in ("items", "poisson")}
    assert names == {"items": "_by_items.<locals>.draw", "poisson": "_by_poisson.<locals>.draw"}


@pytest.mark.parametrize("n", [0, 1, 2, 5, 63, 64, 65, 700])
def test_coins_are_fair(n: int) -> None:
    size = 20_000
    heads = coins(np.random.default_rng(n), np.array([n]), size)[:, 0]
    assert heads.min() >= 0
    assert heads.max() <= n
    assert heads.mean() == pytest.approx(n / 2, abs=5 * np.sqrt(max(n, 1) / 4 / size))
    assert heads.var() == pytest.approx(n / 4, rel=0.06, abs=1e-12)


def test_two_coins_have_a_quarter_a_half_and_a_quarter() -> None:
    heads = coins(np.random.default_rng(0), np.full(50, 2), 2_000).reshape(-1)
    assert np.bincount(heads) / len(heads) == pytest.approx([0.25, 0.5, 0.25], abs=0.01)
