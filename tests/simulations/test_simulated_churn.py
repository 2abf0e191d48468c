"""Hard groups, uniform losses, many groups and variants: error rates through `fw.audit`."""

from __future__ import annotations

import pytest

from .churn import AT_MOST, WORLDS, figures, judged

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", list(WORLDS))
def test_nobody_pays_more_where_nobody_does(name: str) -> None:
    found = judged(name)
    for key, bound in AT_MOST.items():
        assert found[key].at_most(bound)
    assert found["excess covered"].at_least(0.93)


@pytest.mark.parametrize("name", ["8 × the churn, n = 150", "8 × the churn, n = 300"])
def test_the_test_is_not_blind(name: str) -> None:
    """More than ten changes are expected in the group: its p is at most .05 in some audits."""
    assert figures(name)["first excess"].at_least(0.03)
