"""Levels of the regressions over classes (statistics.md, section 9).

Every bound is widened by two standard errors of the simulated share (`measured.Share`).
"""

from __future__ import annotations

import pytest

from .class_regressions import PLANTED, WORLDS, rejections

pytestmark = pytest.mark.slow


def test_luck_of_roots_misleads_the_papers_errors_and_not_the_clustered_ones() -> None:
    found = rejections(WORLDS["each root has its own luck with each class"])
    assert found["ols-hac"].at_least(0.4)
    assert found["ols-cluster"].within(0.02, 0.08)
    assert found["wild bootstrap"].within(0.02, 0.08)
    assert found["glm-cluster"].within(0.02, 0.08)
    assert found["ols-two-way"].at_most(0.06)


def test_hard_classes_mislead_all_but_the_two_way_errors() -> None:
    found = rejections(WORLDS["some classes are harder for all roots"])
    assert found["ols-hac"].at_least(0.4)
    assert found["ols-cluster"].at_least(0.15)
    assert found["ols-two-way"].at_most(0.08)


def test_planted_slopes_are_found_by_the_strictest_errors() -> None:
    assert rejections(PLANTED)["ols-two-way"].at_least(0.8)
