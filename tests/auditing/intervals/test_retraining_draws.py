"""Draws of members: splits of the baseline, matched draws, sign flips, regroupings."""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numpy as np
import pytest

from fairweight.auditing.pairing import matched_draws, matched_size, regroupings, sign_flips, splits
from fairweight.base.types import Floats


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def chosen(weights: Floats) -> list[frozenset[int]]:
    return [frozenset(np.flatnonzero(row).tolist()) for row in weights]


@pytest.mark.parametrize(
    ("baseline", "compressed", "k"), [(5, 5, 2), (6, 6, 3), (10, 3, 3), (5, 1, 1), (7, 40, 3)]
)
def test_matched_size(baseline: int, compressed: int, k: int) -> None:
    """k = min(⌊S/2⌋, K_c)."""
    assert matched_size(baseline, compressed) == k


@pytest.mark.parametrize(("size", "k", "number"), [(5, 2, 30), (5, 1, 20), (6, 3, 20), (7, 3, 140)])
def test_every_ordered_split_once(size: int, k: int, number: int) -> None:
    first, second = splits(size, k, rng())
    everyone = set(range(size))
    expected = {
        (frozenset(one), frozenset(other))
        for one in combinations(range(size), k)
        for other in combinations(sorted(everyone - set(one)), k)
    }
    found = list(zip(chosen(first), chosen(second), strict=True))
    assert len(found) == len(set(found)) == number == comb(size, k) * comb(size - k, k)
    assert set(found) == expected


@pytest.mark.parametrize(("size", "k"), [(5, 2), (8, 3), (30, 15), (30, 1)])
def test_splits_average_k_members_on_either_side(size: int, k: int) -> None:
    for side in splits(size, k, rng()):
        assert ((side == 0) | (side == 1 / k)).all()
        assert ((side > 0).sum(axis=1) == k).all()
    first, second = splits(size, k, rng())
    assert not ((first > 0) & (second > 0)).any()


def test_ten_members_have_126_splits_and_all_are_seen() -> None:
    """Two sets of five of ten: 252 / 2 different ones, fewer than 200."""
    first, second = splits(10, 5, rng())
    unordered = {frozenset(pair) for pair in zip(chosen(first), chosen(second), strict=True)}
    assert len(unordered) == 126


def test_many_splits_are_random_and_repeatable() -> None:
    one, other = splits(30, 15, rng()), splits(30, 15, np.random.default_rng(1))
    assert len(one[0]) == 200
    assert (one[0] == splits(30, 15, rng())[0]).all()
    assert (one[0] != other[0]).any()
    # every member stands on the first side in about half of the draws: 100 ± 5 · √50
    assert (np.abs((one[0] > 0).sum(axis=0) - 100) < 36).all()


def test_random_splits_are_different_ones() -> None:
    """Two sets of three of eight: 280 different ones, more than 200."""
    first, second = splits(8, 3, rng())
    found = list(zip(chosen(first), chosen(second), strict=True))
    assert len(found) == len(set(found)) == 200


@pytest.mark.parametrize(("baseline", "compressed", "k"), [(5, 3, 2), (5, 1, 1), (6, 6, 3)])
def test_matched_draws_average_k_of_either_side(baseline: int, compressed: int, k: int) -> None:
    first, second = matched_draws(baseline, compressed, k, rng())
    assert (first.shape, second.shape) == ((200, baseline), (200, compressed))
    for side in (first, second):
        assert ((side == 0) | (side == 1 / k)).all()
        assert ((side > 0).sum(axis=1) == k).all()


def test_matched_draws_take_any_members() -> None:
    """10 × 3 ways of taking two of five and two of three: 200 draws see them all."""
    first, second = matched_draws(5, 3, 2, rng())
    assert len(set(zip(chosen(first), chosen(second), strict=True))) == comb(5, 2) * comb(3, 2)


@pytest.mark.parametrize("pairs", [1, 3, 5, 10])
def test_all_sign_flips_but_the_observed_one(pairs: int) -> None:
    found = {tuple(row) for row in sign_flips(pairs, rng()).tolist()}
    expected = set(product((False, True), repeat=pairs)) - {(False,) * pairs}
    assert found == expected
    assert len(sign_flips(pairs, rng())) == 2**pairs - 1


def test_many_sign_flips_are_drawn() -> None:
    drawn = sign_flips(11, rng())  # 2,048 ways
    assert drawn.shape == (2000, 11)
    assert (np.abs(drawn.mean(axis=0) - 0.5) < 0.06).all()  # 5 standard errors of .011


@pytest.mark.parametrize(("first", "second", "ways"), [(3, 3, 20), (2, 3, 10), (5, 2, 21)])
def test_all_regroupings_but_the_observed_one(first: int, second: int, ways: int) -> None:
    found = chosen(regroupings(first, second, rng()).astype(float))
    everyone = {frozenset(c) for c in combinations(range(first + second), first)}
    assert set(found) == everyone - {frozenset(range(first))}
    assert len(found) == ways - 1


def test_many_regroupings_are_drawn() -> None:
    drawn = regroupings(10, 5, rng())  # 3,003 ways
    assert drawn.shape == (2000, 15)
    assert (drawn.sum(axis=1) == 10).all()
