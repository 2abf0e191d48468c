"""Coverage of bootstraps and level of the swap null (statistics.md, section 11).

Every bound is widened by two standard errors of the simulated share (`measured.Share`).
"""

from __future__ import annotations

import pytest

from .composites import (
    NEVER_NEGATIVE,
    TEN_GROUPS,
    WANTED,
    WORLDS,
    coverage,
    inflation,
    swap_level,
    worst_group,
)

pytestmark = pytest.mark.slow

METRICS = [name for name, _ in WANTED]


@pytest.mark.parametrize("name", list(WORLDS))
def test_intervals_cover_at_a_thousand_per_class(name: str) -> None:
    found = coverage(name, 1000)
    assert {m: str(s) for m, s in found.items() if not s.at_least(0.9)} == {}


@pytest.mark.parametrize("per_class", [100, 300])
def test_smooth_quantities_and_gaps_cover_in_small_classes_too(per_class: int) -> None:
    found = coverage("uneven", per_class)
    signed = {m: s for m, s in found.items() if m not in NEVER_NEGATIVE}
    assert {m: str(s) for m, s in signed.items() if not s.at_least(0.9)} == {}


def test_cev_of_small_classes_is_inflated() -> None:
    """Why its interval is withheld below 1,000 per class."""
    truth, plain, _ = inflation(100)
    assert plain > 3 * truth
    truth, plain, corrected = inflation(1000)
    assert abs(corrected - truth) < abs(plain - truth)


def test_the_swap_null_holds_its_level_and_is_not_blind() -> None:
    found = swap_level()
    assert {m: str(s) for m, s in found.items() if not s.within(0.02, 0.06)} == {}


@pytest.mark.parametrize("name", list(TEN_GROUPS))
def test_the_worst_group_is_covered_by_simultaneous_limits(name: str) -> None:
    assert worst_group(name)["simultaneous"].at_least(0.93)


def test_the_interval_of_whichever_group_looks_worst_covers_too_little() -> None:
    """Why headlines use simultaneous limits."""
    found = worst_group("all lose 2 points")
    assert found["pointwise"].at_most(0.9)
    assert not found["pointwise"].at_least(0.93)
