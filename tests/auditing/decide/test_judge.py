"""Holm's steps on a few stored levels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairweight.auditing.gate.verdict import divisor, rejected
from fairweight.auditing.intervals.multiplicity import adjust
from fairweight.auditing.result import DIVISORS, GATE_ALPHA


def test_divisors_are_rounded_up_by_hand() -> None:
    """Available: 1, 2, 3, 4, 6, 10, 20, 50, 200, 1000."""
    expected = {1: 1, 4: 4, 5: 6, 6: 6, 7: 10, 11: 20, 21: 50, 51: 200, 201: 1000, 1000: 1000}
    assert {m: divisor(m) for m in expected} == expected
    assert divisor(1001) is None


def test_five_endpoints_by_hand() -> None:
    """Needed in turn: 5 → 6, 4, 3, 2, 1. Strengths 10, 4, 2: the third needs 3 and ends it."""
    assert rejected([2, 10, 0, 4, 0]).tolist() == [0, 6, 0, 4, 0]
    # With 3 in its place it holds, and the fourth (strength 2) needs 2 and holds too.
    assert rejected([3, 10, 0, 4, 2]).tolist() == [3, 6, 0, 4, 2]


def test_rounding_up_can_only_spare() -> None:
    """Seven endpoints need 10, so strength 6 is not enough although 7 × p might have been."""
    assert rejected([6, 0, 0, 0, 0, 0, 0]).sum() == 0
    assert rejected([10, 0, 0, 0, 0, 0, 0]).tolist() == [10, 0, 0, 0, 0, 0, 0]


def test_beyond_the_last_divisor_nothing_fails() -> None:
    assert rejected([1000] * 1001).sum() == 0
    assert (rejected([1000] * 1000) > 0).all()


def test_nothing_to_reject() -> None:
    assert rejected(np.zeros(0, dtype=int)).tolist() == []


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=60))
def test_never_more_than_holm_on_p_values(p: list[float]) -> None:
    """Strength is the largest stored divisor j with p < α / j."""
    strength = [max([0, *(j for j in DIVISORS if value < GATE_ALPHA / j)]) for value in p]
    by_p = adjust(np.array(p), "holm") <= GATE_ALPHA
    assert not ((rejected(strength) > 0) & ~by_p).any()


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_exactly_holm_where_every_divisor_is_stored(m: int) -> None:
    rng = np.random.default_rng(m)
    for _ in range(200):
        p = rng.uniform(0, 0.06, m)
        strength = [max([0, *(j for j in DIVISORS if value <= GATE_ALPHA / j)]) for value in p]
        by_p = adjust(p, "holm") <= GATE_ALPHA
        assert ((rejected(strength) > 0) == by_p).all()
