"""The share of draws in which one is best, and the set that contains the best."""

from __future__ import annotations

import numpy as np

from fairweight.auditing.choose.frontier import best_set, deficits, share_best


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_equal_variants_share_what_they_win() -> None:
    draws = np.array([[3.0, 3.0, 1.0], [0.0, 0.0, 5.0]])
    assert share_best(draws).tolist() == [0.25, 0.25, 0.5]


def test_who_is_above_whom_as_in_plain_loops() -> None:
    values = rng(14).standard_normal(6)
    error = rng(15).standard_normal((500, 6)) * np.array([0.1, 1, 0.5, 0.2, 0.3, 1])
    found = deficits(values, values + error)
    for i in range(6):
        others = [j for j in range(6) if j != i]
        own = error - error.mean(axis=0)
        drawn = own[:, others] - own[:, [i]]
        width = drawn.std(axis=0, ddof=1)
        limit = max(np.quantile((drawn / width).max(axis=1), 0.95), 0.0)
        assert found[others, i].tolist() == ((values[others] - values[i]) / width > limit).tolist()


def test_copies_are_never_above_each_other() -> None:
    error = rng(8).standard_normal((1000, 2))[:, [0, 1, 1]]
    values = np.array([0.3, 0.5, 0.5])
    assert not deficits(values, values + error)[1:, 1:].any()


def test_the_set_contains_the_best_95_times_in_100() -> None:
    """All alike is the hardest case: each is left out in 5 % of samples, whatever their number."""
    generator = rng(10)
    for n_variants in (2, 8):
        inside = 0
        for _ in range(400):
            values = generator.standard_normal(n_variants)
            replicates = values + generator.standard_normal((300, n_variants))
            inside += bool(best_set(values, replicates)[0])
        assert 0.92 <= inside / 400 <= 0.985
