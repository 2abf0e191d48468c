"""Metrics of outcomes on plain arrays: ratios of sums, weighted and by level."""

from __future__ import annotations

import math

import pytest

import fairweight as fw


@pytest.mark.parametrize("name", ["correct", "failed", "outcome", "cost"])
def test_ratios_of_sums(name: str) -> None:
    function = getattr(fw.metrics, name)
    assert function([1, 0, 1, 1]) == 0.75
    # (1 * 5 + 3 * 1) / (1 * 40 + 3 * 10)
    assert function([5, 1], denominator=[40, 10], sample_weight=[1, 3]) == pytest.approx(8 / 70)
    by = function([5, 1, 2], denominator=[40, 10, 0], sensitive_features=["a", "a", "b"])
    assert by["a"] == pytest.approx(6 / 50)
    assert math.isnan(by["b"])
