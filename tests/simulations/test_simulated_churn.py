"""Hard groups, uniform losses, many groups and variants: error rates through `fw.audit`."""

from __future__ import annotations

import pytest

from .churn import WORLDS, figures

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", list(WORLDS))
def test_nobody_pays_more_where_nobody_does(name: str) -> None:
    found = figures(name)
    assert found["first excess"].at_most(0.07)
    assert found["any excess"].at_most(0.065)
    assert found["any lead line"].at_most(0.065)
    assert found["excess covered"].at_least(0.93)


@pytest.mark.parametrize("name", ["8 × the churn, n = 150", "8 × the churn, n = 300"])
def test_the_test_is_not_blind(name: str) -> None:
    """More than ten changes are expected in the group: its p is at most .05 in some audits."""
    assert figures(name)["first excess"].at_least(0.03)
