"""Clusters and weights (statistics.md, section 11).

Every bound is widened by two standard errors of the simulated share (`measured.Share`).
"""

from __future__ import annotations

import pytest

from .dependent import (
    ICC,
    cluster_heterogeneity,
    cluster_kappa,
    clusters,
    measured_icc,
    sign_flips,
    two_columns,
    weights,
)

pytestmark = pytest.mark.slow


def test_the_simulated_people_are_as_alike_as_stated() -> None:
    dense, change = measured_icc()
    assert dense == pytest.approx(ICC, abs=0.01)
    assert change == pytest.approx(ICC, abs=0.01)


@pytest.mark.parametrize("number", [20, 100])
def test_intervals_over_clusters_cover(number: int) -> None:
    found = clusters(number)
    assert found["shift"].within(0.92, 0.985)  # the wider of two
    assert found["accuracy"].within(0.92, 0.97)
    # The reason for clusters: the same data as independent examples.
    assert not found["shift, i.i.d."].at_least(0.9)


def test_intervals_within_a_level_of_25_clusters_cover() -> None:
    assert clusters(100)["level"].within(0.92, 0.985)


@pytest.mark.parametrize("number", [20, 100])
def test_sign_flips_hold_their_level(number: int) -> None:
    found = sign_flips(number)
    assert found["sign flips"].within(0.03, 0.06)
    assert not found["McNemar, i.i.d."].at_most(0.06)


@pytest.mark.parametrize(
    ("number", "levels", "mixed"), [(100, 4, False), (100, 4, True), (50, 2, False)]
)
def test_heterogeneity_holds_its_level(number: int, levels: int, mixed: bool) -> None:
    assert cluster_heterogeneity(number, levels, mixed).within(0.02, 0.06)


def test_the_bootstrap_of_whole_clusters_covers() -> None:
    found = cluster_kappa(100)
    assert found["whole clusters"].at_least(0.9)
    assert not found["single examples"].at_least(0.9)


@pytest.mark.parametrize("spread", [0.5, 1.0])
def test_weighted_shifts_cover(spread: float) -> None:
    assert weights(spread).within(0.92, 0.985)


@pytest.mark.parametrize(("people", "n"), [((25, 25), 1_000), ((40, 60), 2_400)])
def test_two_cluster_columns_hold_their_level(people: tuple[int, int], n: int) -> None:
    found = two_columns(people, n)
    for what in ("rate", "number"):
        assert found[f"{what} covered"].at_least(0.93)
        assert found[f"{what} level"].at_most(0.07)
        assert found[f"{what} any excess"].at_most(0.065)
        # The reason for both: one column alone is too narrow, none far too narrow.
        assert found[f"{what} covered, first column"].value < found[f"{what} covered"].value - 0.02
        assert not found[f"{what} covered, i.i.d."].at_least(0.85)
