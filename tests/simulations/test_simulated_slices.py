"""Planted slices are found and nothing is found where nothing is planted (statistics.md, 9).

Found: the adjusted p on the discovery half is at most .05. The seeds are fixed, so the shares of
planted slices are compared with their bounds as they are; those of dependent answers, for which the
rules name no bound, with an allowance of two standard errors (`measured.Share`).
"""

from __future__ import annotations

import pytest

from .slices import CHURN, nothing, pair, single

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("size", "excess"), [(500, 0.1), (300, 0.15)])
def test_a_level_that_pays_more_comes_first(size: int, excess: float) -> None:
    found = single(size, excess, CHURN)
    assert found.first.value >= 0.95
    assert found.covered.at_least(0.93)


def test_a_pair_that_pays_15_points_in_1000_of_10000_comes_first() -> None:
    found = pair(1000, 0.15, CHURN)
    assert found.first.value >= 0.95
    assert found.covered.at_least(0.93)


def test_what_is_too_small_to_be_found_is_mostly_not() -> None:
    """The search is not so loose that everything comes first."""
    assert single(150, 0.05, CHURN).first.value <= 0.3


@pytest.mark.parametrize("drop", [0.0, 0.02])
def test_nothing_is_found_where_everyone_loses_the_same(drop: float) -> None:
    assert nothing(drop).value >= 0.93


@pytest.mark.parametrize("kind", ["members", "clusters"])
def test_nothing_is_found_with_members_and_clusters(kind: str) -> None:
    assert nothing(0.02, kind, 200).at_least(0.93)
