"""Limits of CEV and SDE from draws that can be counted by hand."""

from __future__ import annotations

import numpy as np

from fairweight.auditing.intervals.bootstrap import Replicates, inflated_limits

ESTIMATE = np.array([5.0])


def spread(middle: float) -> Replicates:
    """Half of 200 draws one below, half one above: their standard deviation is 1."""
    return Replicates(np.tile([[middle - 1.0], [middle + 1.0]], (100, 1)))


NULL = Replicates(np.full((200, 1), 4.0))  # what noise alone makes


def limits(draws: Replicates, **options: object) -> tuple[float, float]:
    low, high = inflated_limits(ESTIMATE, draws, NULL, 0.05, **({"absolute": True} | options))
    return float(low[0]), float(high[0])


def test_the_upper_end_reaches_as_many_deviations_as_asked() -> None:
    # Draws of 7 and 9 reflect to 10 - 9 = 1 and 10 - 7 = 3: below the estimate of 5.
    assert limits(spread(8.0)) == (1.0, 6.0)
    assert limits(spread(8.0), reach_up=2.0) == (1.0, 7.0)


def test_a_reflected_end_that_reaches_further_stays() -> None:
    # Draws of 1 and 3 reflect to 7 and 9; at the low end √(25 − 16) = 3 is less.
    assert limits(spread(2.0)) == (3.0, 9.0)
    assert limits(spread(2.0), reach_up=2.0) == (3.0, 9.0)


def test_variances_and_unknown_noise_keep_the_reflected_ends() -> None:
    assert limits(spread(8.0), absolute=False, reach_up=2.0) == (1.0, 3.0)
    low, high = inflated_limits(ESTIMATE, spread(8.0), None, 0.05, absolute=True, reach_up=2.0)
    assert (float(low[0]), float(high[0])) == (1.0, 3.0)
