"""Coverage of the excess (statistics.md, sections 2 and 11).

Every bound is widened by two standard errors of the simulated share (`measured.Share`).
"""

from __future__ import annotations

import pytest

from .excesses import excess_coverage, standardised_coverage

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("n", [300, 1000, 5000])
def test_the_interval_of_the_excess_covers_and_agrees_with_its_test(n: int) -> None:
    found = excess_coverage(n)
    assert found["all rows"].at_least(0.93)
    assert found["smallest group"].at_least(0.93)
    assert found["agrees with the test"].value == 1.0


@pytest.mark.parametrize("n", [1000, 5000])
def test_the_interval_of_the_standardised_excess_covers(n: int) -> None:
    assert standardised_coverage(n).at_least(0.9)
