"""The power that a plan states is the power that the gate has (statistics.md, section 6)."""

from __future__ import annotations

import pytest

from . import plans


@pytest.mark.slow
@pytest.mark.parametrize("loss", [0.0, 0.01])
def test_models_pass_as_often_as_planned(loss: float) -> None:
    assert plans.planned_passes(loss, 1.0).within(0.8, 0.86)


@pytest.mark.slow
def test_half_the_examples_are_not_enough() -> None:
    assert plans.planned_passes(0.0, 0.5).at_most(0.6)


@pytest.mark.slow
@pytest.mark.parametrize("people", [None, 5])
def test_sizes_from_a_pilot_are_enough(people: int | None) -> None:
    """A pilot's churn is never planned with less than that of all, so quiet groups pass oftener."""
    assert plans.piloted_passes(people).at_least(0.8)
