"""False alarms and power of families (statistics.md, section 11).

Every bound is widened by two standard errors of the simulated share (`measured.Share`).
"""

from __future__ import annotations

import pytest

from .families import all_null, composition, planted, uniform_drop

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("family", ["accuracy by group", "recall by class"])
def test_nothing_is_found_where_nothing_changed(family: str) -> None:
    """.5–6 % of audits: not more, and not so few that the test would be blind."""
    assert all_null(family)["shift"].within(0.005, 0.06)
    assert all_null(family)["excess"].within(0.005, 0.06)


def test_a_shift_with_80_percent_power_is_found() -> None:
    assert planted()["shift"].within(0.7, 0.9)


def test_the_same_excess_is_found_beside_a_loss_for_everyone() -> None:
    assert planted()["excess"].at_least(0.7)
    assert planted()["heterogeneity"].at_least(0.7)


def test_a_loss_for_everyone_is_no_excess_for_anyone() -> None:
    found = uniform_drop()
    assert found["excess, any"].within(0.005, 0.06)
    assert found["heterogeneity"].within(0.02, 0.06)
    # The reason for the excess: a test of shift ≠ 0 flags many groups here.
    assert found["shift, rows"].at_least(0.2)


def test_labels_that_everybody_loses_do_not_make_a_group_look_hurt() -> None:
    found = composition()
    assert found["standardised excess, any"].at_most(0.06)
    assert found["heterogeneity within classes"].at_most(0.06)
    # The reason to standardise: the plain excess is there and is found.
    assert found["excess, any"].at_least(0.8)
