from __future__ import annotations

import numpy as np
import pytest

from fairweight.auditing.metrics.harm import share_of_top
from fairweight.errors import InputError


def test_shares_by_hand():
    # 100 units; the top one bears 20 of 50, the top five 20 + 4 · 5 = 40.
    lost = np.r_[20, [5] * 4, [1] * 10, [0] * 85]
    observed, _ = share_of_top(lost, rng=np.random.default_rng(0))
    np.testing.assert_allclose(observed, [20 / 50, 40 / 50, 45 / 50])


def test_at_least_one_unit_is_taken():
    observed, _ = share_of_top([3, 1], (0.01,), rng=np.random.default_rng(0))
    assert observed.tolist() == [0.75]


def test_losses_at_random_look_like_the_reference():
    rng = np.random.default_rng(1)
    size = rng.integers(20, 200, 500)
    lost = rng.poisson(0.05 * size)
    observed, reference = share_of_top(lost, exposure=size, rng=rng)
    np.testing.assert_allclose(observed, reference, atol=0.02)
    _, equal = share_of_top(lost, rng=rng)
    assert (equal < reference).all()  # unequal sizes alone concentrate losses


def test_nothing_lost_is_undefined():
    observed, reference = share_of_top([0, 0, 0])
    assert np.isnan(observed).all()
    assert np.isnan(reference).all()


def test_exposure_must_match():
    with pytest.raises(InputError, match="one number per unit"):
        share_of_top([1, 2], exposure=[1, 2, 3])


def test_a_fraction_of_one_lost_answer_is_one_answer_under_chance() -> None:
    """One of six members lost one answer: the mean is 1/6, and chance puts one answer somewhere."""
    observed, reference = share_of_top([1 / 6, 0, 0, 0], (0.25,), rng=np.random.default_rng(0))
    assert observed.tolist() == [1.0]
    assert reference.tolist() == [1.0]
