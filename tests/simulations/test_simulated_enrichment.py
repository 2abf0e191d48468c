"""Enrichment is not found where there is difficulty alone, and is where it was planted.

Every bound is widened by two standard errors of the simulated share (`measured.Share`).
"""

from __future__ import annotations

import pytest

from .enrichments import (
    DESIGNS,
    KINDS,
    SPREAD,
    any_found,
    coverage,
    difficulty_only,
    found_in,
    odds_alone,
    planted,
    small_group,
)
from .populations import Design

pytestmark = pytest.mark.slow

HARD, HARMED = "group=1", "group=2"


@pytest.mark.parametrize("design", DESIGNS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_hard_group_is_not_taken_for_a_harmed_one(design: Design, kind: str) -> None:
    found = difficulty_only(design)
    assert any_found(found, kind).at_most(0.06)
    assert found_in(found, kind, HARD).at_most(0.06)


def test_the_odds_ratio_alone_would_be_taken_for_one() -> None:
    assert odds_alone(difficulty_only(DESIGNS[0]), "taxicab", HARD).at_least(0.9)


@pytest.mark.parametrize("kind", KINDS)
def test_forty_examples_are_not_too_few_for_the_level(kind: str) -> None:
    assert found_in(small_group(), kind, HARD).at_most(0.06)


def test_a_planted_effect_is_found_where_members_know_all_groups_alike() -> None:
    assert found_in(planted(0.0), "taxicab", HARMED, "p_adjusted").at_least(0.9)


def test_members_that_differ_by_group_hide_half_of_it() -> None:
    """The price of asking about the next member: still far more often than by chance."""
    assert found_in(planted(SPREAD), "taxicab", HARMED, "p_adjusted").at_least(0.25)


@pytest.mark.parametrize("n_inside", [20, 50, 300])
@pytest.mark.parametrize("inside", [0.005, 0.02, 0.1, 0.3, 0.9])
@pytest.mark.parametrize("outside", [0.02, 0.1])
def test_the_interval_of_an_odds_ratio_covers(n_inside: int, inside: float, outside: float) -> None:
    """Exact, so without an allowance: the 93 % that every closed interval is held to."""
    assert coverage(n_inside, inside, outside) >= 0.93
