"""The gate at its margin, and excesses that are not there (statistics.md, sections 2, 3 and 11).

A bound is broken when the figure lies above it by more than two standard errors (`measured.Share`).
"""

from __future__ import annotations

import pytest

from . import margins as m


@pytest.mark.slow
@pytest.mark.parametrize("people", m.PEOPLE, ids=str)
def test_a_loss_at_the_margin_passes_in_few_audits_of_clusters(people: m.People) -> None:
    assert m.clusters_at_the_margin(people).at_most(0.07)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.1, 0.5])
@pytest.mark.parametrize("gained", [0.0, 0.01])
@pytest.mark.parametrize("n", [150, 400])
def test_a_loss_at_the_margin_passes_in_few_weighted_audits(
    n: int, gained: float, spread: float
) -> None:
    assert m.weights_at_the_margin(n, spread, gained).at_most(0.07)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.02, 0.5])
@pytest.mark.parametrize("n", [60, 150, 300])
@pytest.mark.parametrize("k", [3, 5, 10])
def test_a_loss_at_the_margin_passes_in_few_audits_of_members(k: int, n: int, shape: float) -> None:
    assert m.members_at_the_margin(k, n, shape).at_most(0.07)


@pytest.mark.slow
@pytest.mark.parametrize("sides", [(1, 4), (3, 10), (5, 2)], ids=str)
def test_a_loss_at_the_margin_passes_in_few_audits_of_independent_members(
    sides: tuple[int, int],
) -> None:
    for n in (60, 150, 300):
        assert m.crossed_members(sides, n, m.MARGIN).at_most(0.07)


@pytest.mark.slow
def test_more_members_let_an_unchanged_model_pass_more_often() -> None:
    found = [m.unchanged_members(k, 150) for k in (2, 3, 5, 10)]
    assert [f.value for f in found] == sorted(f.value for f in found)
    assert found[1].at_least(0.93)
    assert found[2].at_least(0.99)
    assert found[3].at_least(0.99)
    few, many = (m.crossed_members(sides, 150, 0.0) for sides in ((1, 4), (3, 10)))
    assert few.value < many.value


@pytest.mark.slow
@pytest.mark.parametrize("people", m.NULLS, ids=str)
def test_an_excess_of_clusters_that_is_not_there_is_seldom_found(people: m.People) -> None:
    for churn in (1, 5):
        assert m.cluster_excess(people, churn).at_most(0.052)


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize("world", m.METHODS, ids=lambda w: w.name)
def test_an_excess_about_the_method_that_is_not_there_is_seldom_found(
    world: m.Method, k: int
) -> None:
    assert m.method_excess(world, k)["any"].at_most(0.05)


@pytest.mark.slow
def test_an_excess_about_the_method_is_found_with_members_enough() -> None:
    assert m.method_excess(m.POWER, 10, 0.08)["first"].at_least(0.9)


def test_audits_see_what_is_simulated() -> None:
    """Verdicts, limits and p of `Audit.gate` and `Audit.results` are those counted here."""
    for draw in m.some_tables():
        table = draw()
        audited = table.audit()
        rows = audited.results
        rows = rows[(rows["metric"] == "accuracy") & (rows["by"] == "group")]
        for scope in rows["scope"].unique():
            here = rows[rows["scope"] == scope]
            estimate = m.accuracy(table, scope)
            low, high = estimate.change.limits(0.05)
            assert here["ci_low"].to_numpy() == pytest.approx(low, abs=1e-12)
            assert here["ci_high"].to_numpy() == pytest.approx(high, abs=1e-12)
            assert here["excess_p"].to_numpy() == pytest.approx(estimate.excess.p, rel=1e-9)
        for margin in (0.001, 0.02, 0.04, 0.3):
            assert m.gate_passes(audited, margin) == m.passes(table, margin)
