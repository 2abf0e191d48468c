"""Outcomes that are numbers: coverage, false lines and gates through `fw.audit`."""

from __future__ import annotations

import math

import pytest

from .outcomes import AT_LEAST, AT_MOST, WORLDS, figures, found_harm

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", list(WORLDS))
def test_limits_lines_and_gates_hold(name: str) -> None:
    found = figures(name)
    for key, bound in AT_LEAST.items():
        assert found[key].at_least(bound), key
    for key, bound in AT_MOST.items():
        if not math.isnan(found[key].value) and (key != "any excess" or WORLDS[name].alike):
            assert found[key].at_most(bound), key


def test_a_harm_of_the_stated_size_is_found() -> None:
    assert found_harm().within(0.70, 0.95)
