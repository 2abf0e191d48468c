"""Percentile cuts: exact shares, seeded ties, and nothing that does not differ."""

from __future__ import annotations

import numpy as np
import pytest

from fairweight.auditing.exemplars.selection import checked_fill, checked_percentiles, top_share
from fairweight.errors import InputError

PRIORITY = np.random.default_rng(0).random(1000)


def test_the_furthest_tenth():
    value = np.arange(1000)
    found = top_share(value, 90, PRIORITY)
    assert found.mask.tolist() == [v >= 900 for v in value]
    assert (found.n_asked, found.threshold, found.reason) == (100, 900.0, None)


def test_ties_at_the_cut_are_drawn_and_cuts_are_nested():
    value = np.repeat([2, 4], [900, 100])
    cuts = {q: top_share(value, q, PRIORITY).mask for q in (80, 90, 95, 99)}
    assert [int(mask.sum()) for mask in cuts.values()] == [200, 100, 50, 10]
    for wide, narrow in ((80, 90), (90, 95), (95, 99)):
        assert not (cuts[narrow] & ~cuts[wide]).any()
    drawn = np.flatnonzero(cuts[80][:900])
    assert sorted(PRIORITY[drawn]) == sorted(PRIORITY[:900])[:100]


def test_examples_without_a_difference_never_count():
    value = np.zeros(1000, dtype=np.uint8)
    value[[3, 500]] = 2
    found = top_share(value, 90, PRIORITY)
    assert np.flatnonzero(found.mask).tolist() == [3, 500]
    assert (found.n_asked, found.threshold) == (100, 2.0)
    assert found.reason == "fewer than asked for: only 2 examples differ at all"
    filled = top_share(value, 90, PRIORITY, "random")
    assert filled.mask.sum() == 100
    assert filled.mask[[3, 500]].all()
    assert filled.reason.startswith("filled at random")


def test_nothing_differs_at_all():
    found = top_share(np.zeros(1000), 99, PRIORITY)
    assert not found.mask.any()
    assert np.isnan(found.threshold)
    assert found.reason == "fewer than asked for: no example differs"


def test_too_few_examples_for_the_percentile():
    found = top_share(np.arange(50), 99, PRIORITY[:50])
    assert (found.n_asked, found.mask.any()) == (0, False)
    assert found.reason == "too few examples for a percentile of 99"


def test_shares_are_exact_in_spite_of_rounding():
    assert top_share(np.arange(1000), 99.9, PRIORITY).n_asked == 1
    assert top_share(np.arange(10), 90, PRIORITY[:10]).n_asked == 1
    assert top_share(np.arange(19), 90, PRIORITY[:19]).n_asked == 1


@pytest.mark.parametrize("value", [0, 100, -1, float("nan"), True])
def test_percentiles_lie_between_0_and_100(value):
    with pytest.raises(InputError, match="between 0 and 100"):
        checked_percentiles([90, value])


def test_percentiles_are_sorted_and_fill_is_checked():
    assert checked_percentiles([99, 90, 90]) == (90.0, 99.0)
    with pytest.raises(InputError, match="fill='all'"):
        checked_fill("all")
