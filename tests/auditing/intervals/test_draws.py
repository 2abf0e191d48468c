"""Draws of counted items follow the laws they stand for, whichever way they are made."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairweight.auditing.intervals import bootstrap
from fairweight.auditing.intervals.bootstrap import coins, poisson_laws, resampler, walker


def multiplicities(way: str) -> np.ndarray:
    rng = np.random.default_rng(1)
    if way == "items":
        return rng.integers(0, 4, 300)
    if way == "multinomial":
        return rng.integers(0, 200, 60)
    if way == "large rates":
        return rng.integers(0, 3 * bootstrap.TABLED, bootstrap.FEW_CELLS + 500)
    return rng.integers(0, 60, bootstrap.FEW_CELLS + 500)


@pytest.mark.parametrize("way", ["items", "multinomial", "poisson", "large rates"])
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


def test_tables_of_poisson_numbers_hold_their_law() -> None:
    """What the columns give, summed, is the law, for every rate that is looked up."""
    rates = np.linspace(0, bootstrap.TABLED, 300)
    bound, other = walker(poisson_laws(rates))
    own = bound / 2.0**64
    law = own / bootstrap.COLUMNS
    row = np.arange(len(rates))[:, None]
    np.add.at(law, (row, other), (1 - own) / bootstrap.COLUMNS)
    expected = stats.poisson.pmf(np.arange(bootstrap.COLUMNS), rates[:, None])
    assert np.abs(law - expected).max() < 1e-14
    assert (
        stats.poisson.sf(bootstrap.COLUMNS - 1, bootstrap.TABLED) < 1e-20
    )  # what a table leaves out


def test_drawn_numbers_hold_their_law() -> None:
    """Chi-square of the numbers of single cells: binomial, n_i of N."""
    multiplicity = multiplicities("large rates")
    total, size = int(multiplicity.sum()), 4_000
    drawn = resampler(multiplicity)(np.random.default_rng(3), size)
    cells = np.flatnonzero(multiplicity > 0)[::100]
    p = []
    for cell in cells:
        law = stats.binom(total, multiplicity[cell] / total)
        edges = np.unique(law.ppf(np.linspace(0, 1, 12)[1:-1]))
        expected = np.diff([0.0, *law.cdf(edges), 1.0]) * size
        found = np.bincount(np.searchsorted(edges, drawn[:, cell]), minlength=len(expected))
        p.append(stats.chisquare(found, expected).pvalue)
    assert stats.kstest(p, "uniform").pvalue > 1e-3


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
