"""The Pareto set equals brute force, with duplicates, ties and undefined values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairweight.auditing.choose.frontier import dominates, frontier


def by_brute_force(points: Any) -> list[bool]:
    def beats(one: Any, other: Any) -> bool:
        as_good = all(a >= b for a, b in zip(one, other, strict=True))
        return as_good and any(a > b for a, b in zip(one, other, strict=True))

    defined = [not any(np.isnan(point)) for point in points]
    return [
        ok and not any(beats(other, point) for other in points)
        for point, ok in zip(points, defined, strict=True)
    ]


@pytest.mark.parametrize("n_objectives", [1, 2, 3, 4, 5])
def test_500_random_sets(n_objectives: int) -> None:
    """100 sets of each number of objectives; small whole numbers make ties and duplicates."""
    rng = np.random.default_rng(n_objectives)
    duplicates = ties = 0
    for _ in range(100):
        n = int(rng.integers(1, 25))
        points = rng.integers(0, 5, (n, n_objectives)).astype(float)
        if rng.random() < 0.4:
            points = np.concatenate([points, points[rng.integers(n, size=2)]])
            n = len(points)
        if rng.random() < 0.3:
            points[rng.integers(n), rng.integers(n_objectives)] = np.nan
        duplicates += len({tuple(p) for p in points}) < n
        ties += any(len(set(column)) < n for column in points.T)
        assert frontier(points).tolist() == by_brute_force(points)
    assert duplicates > 20
    assert ties > 50


def test_many_draws_at_once_are_the_same_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    draws = rng.integers(0, 4, (7, 3, 11, 2)).astype(float)
    whole = frontier(draws)
    assert whole.shape == (7, 3, 11)
    monkeypatch.setattr("fairweight.auditing.choose.frontier.BLOCK_VALUES", 200)
    assert (frontier(draws) == whole).all()
    assert whole[4, 1].tolist() == by_brute_force(draws[4, 1])


def test_duplicates_stay_together() -> None:
    points = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    assert frontier(points).tolist() == [True, True, False, False]
    assert dominates(points).sum(axis=1).tolist() == [2, 2, 0, 0]
