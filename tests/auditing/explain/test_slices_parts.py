"""The stages of the slice finder: bins, halves, sums, tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import fairweight as fw
from fairweight.auditing.compare.linear import Entries, excess_of, sizes_of
from fairweight.auditing.explain.slices.candidates import quantile_bins
from fairweight.auditing.explain.slices.contrasts import (
    SCREEN,
    Contrast,
    Half,
    OutcomeContrast,
    OutcomeHalf,
    Totals,
    cell_contrasts,
    detectable_excess,
    distance,
    p_values,
    pooled_error,
    slice_contrast,
)
from fairweight.auditing.explain.slices.search import discovery_half, find_slices
from fairweight.auditing.intervals.excess import excess_test
from fairweight.auditing.prediction_matrix import from_aligned
from fairweight.tables.align import align
from fairweight.tables.spec import SourceRef


def counts(n: Any, lost: Any, gained: Any) -> Totals:
    n, lost, gained = (np.atleast_1d(np.asarray(x, dtype=float)) for x in (n, lost, gained))
    return Totals(n, n, gained - lost, gained + lost)


# --- bins


def test_equal_values_are_never_parted_and_missing_ones_are_a_level() -> None:
    values = np.array([0.0] * 8 + [1.0, 2.0, np.nan])
    levels, code = quantile_bins(values, 5)
    # Of ten known values the quantiles .2, .4, .6 and .8 are all 0.
    assert levels == ("0", "1 to 2", None)
    assert code.tolist() == [0] * 8 + [1, 1, 2]


def test_bins_have_about_equal_sizes() -> None:
    levels, code = quantile_bins(np.random.default_rng(0).normal(size=1000), 5)
    assert np.bincount(code).tolist() == [200] * 5
    assert len(levels) == 5


def test_names_have_as_many_digits_as_keep_bins_apart() -> None:
    levels, _ = quantile_bins(np.array([100.001, 100.002, 100.003, 100.004]), 2)
    assert levels == ("100.001 to 100.002", "100.003 to 100.004")


def test_infinities_and_columns_without_a_value_are_levels() -> None:
    levels, code = quantile_bins(np.array([-np.inf, 1.0, 2.0, np.inf]), 2)
    assert levels == ("-inf to 1", "2 to inf")
    assert code.tolist() == [0, 0, 1, 1]
    assert quantile_bins(np.array([np.nan, np.nan]), 5)[0] == (None,)


# --- halves


def test_lost_and_gained_answers_are_halved_evenly() -> None:
    rng = np.random.default_rng(0)
    change = rng.choice([-1.0, 0.0, 1.0], p=[0.03, 0.95, 0.02], size=999)
    first = discovery_half(change, np.zeros(999), None, rng)
    assert abs(int(first.sum()) - 499.5) == 0.5
    for value in (-1.0, 0.0, 1.0):
        here = first[change == value]
        assert abs(2 * int(here.sum()) - here.size) <= 2


def test_clusters_stay_whole_and_the_seed_decides() -> None:
    cluster = np.repeat(np.arange(50), 4)
    change = np.zeros(200)

    def halves(seed: int) -> Any:
        return discovery_half(change, change, cluster, np.random.default_rng(seed))

    first = halves(0)
    by_cluster = first.reshape(50, 4)
    assert (by_cluster.all(axis=1) | ~by_cluster.any(axis=1)).all()
    assert by_cluster[:, 0].sum() == 25
    assert (first == halves(0)).all()
    assert (first != halves(1)).any()


# --- sums


@pytest.mark.parametrize("weighted", [False, True])
def test_totals_are_those_of_a_data_frame(weighted: bool) -> None:
    import pandas as pd

    rng = np.random.default_rng(1)
    n = 400
    change = rng.choice([-1.0, -1 / 3, 0.0, 1 / 3], size=n)
    weight = rng.random(n) if weighted else None
    cell = rng.integers(0, 6, n)
    w = np.ones(n) if weight is None else weight
    unit = np.arange(n) if weighted else None
    found = Half(change, weight, unit, exact=False).table(cell, (2, 3))
    frame = pd.DataFrame({"cell": cell, "w": w, "ww": w**2, "c": w * change, "cc": w * change**2})
    expected = frame.groupby("cell").sum()
    np.testing.assert_allclose(found.size.ravel(), expected["w"])
    np.testing.assert_allclose(found.squared_size.ravel(), expected["ww"])
    np.testing.assert_allclose(found.change.ravel(), expected["c"])
    np.testing.assert_allclose(found.moved.ravel(), expected["cc"])


def made_half(kind: str, n: int = 600) -> tuple[Half, Any, Any]:
    """Examples in the 3 × 4 cells of two columns."""
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 3, n), rng.integers(0, 4, n)
    unit = rng.integers(0, 60, n) if kind == "clusters" else None
    steps = [-1.0, 0.0, 1.0] if kind == "exact" else [-1.0, -0.5, 0.0, 0.5]
    change = rng.choice(steps, size=n)
    weight = None
    if kind == "weights":
        weight, unit = rng.random(n) + 0.5, np.arange(n)
    return Half(change, weight, unit, exact=kind == "exact"), first, second


@pytest.mark.parametrize("kind", ["exact", "members", "clusters", "weights"])
def test_a_pair_within_its_parent_is_the_same_on_the_parent_alone(kind: str) -> None:
    data, first, second = made_half(kind)
    everyone, in_first, in_second = cell_contrasts(data, first * 4 + second, (3, 4), within=True)
    inside = (first == 1) & (second == 2)
    for table, among in (
        (everyone, np.ones(len(first), dtype=bool)),
        (in_first, first == 1),
        (in_second, second == 2),
    ):
        alone = slice_contrast(data.part(among), inside[among])
        assert table.excess[1, 2] == pytest.approx(alone.excess[0], rel=1e-12)
        at = table.at(([1], [2]))
        assert p_values(at)[0] == pytest.approx(p_values(alone)[0], rel=1e-9)
        assert distance(at)[0] == pytest.approx(distance(alone)[0], rel=1e-9)
        values = data.change[among]
        w = np.ones(values.size) if data.weight is None else data.weight[among]
        mean = [np.average(values[s], weights=w[s]) for s in (inside[among], ~inside[among])]
        assert alone.excess[0] == pytest.approx(mean[0] - mean[1], rel=1e-12)


@pytest.mark.parametrize("kind", ["members", "clusters"])
def test_errors_are_those_of_the_audits_excess(kind: str) -> None:
    data, first, _ = made_half(kind)
    (found,) = cell_contrasts(data, first, (3, 1), within=False)
    n = len(first)
    if data.unit is None:
        place, unit, copies = np.arange(n), np.arange(n), np.ones(n)
        row, change, size, n_units = first, data.change, np.ones(n), None
    else:
        key, place = np.unique(data.unit * 3 + first, return_inverse=True)
        change = np.bincount(place, data.change)
        size = np.bincount(place).astype(float)
        unit, row, copies, n_units = key // 3, key % 3, np.ones(key.size), 60
    sizes = sizes_of(Entries(unit, row, size, size, copies, 3, n_units), alike=False)
    excess, variance = excess_of(sizes, change, sizes.totals(change))
    np.testing.assert_allclose(found.excess.ravel(), excess)
    assert found.error is not None
    np.testing.assert_allclose(found.error.ravel(), np.sqrt(variance))


# --- tests


def test_single_pairs_have_the_p_of_the_excess() -> None:
    # 3 of 12 examples inside, 2 of the 4 lost answers; nothing gained.
    c = Contrast(counts(3, 2, 0), counts(9, 2, 0))
    assert p_values(c)[0] == excess_test(3, 2, 0, 9, 2, 0)
    # Own churn: 2/3 − (2/3)² of 3, 2/9 − (2/9)² of 9; pooled: (1/3 − 1/9) 12/11 (1/3 + 1/9).
    own, pooled = 2 / 9 / 3 + 14 / 81 / 9, 2 / 9 * 12 / 11 * 4 / 9
    assert distance(c)[0] == pytest.approx(-4 / 9 / np.sqrt(min(own, pooled)), rel=1e-12)


def test_nothing_changed_is_no_distance_and_no_rest_is_undefined() -> None:
    same = Contrast(counts([5, 5], 0, 0), counts([5, 0], 0, 0))
    found = distance(same)
    assert found[0] == 0
    assert np.isnan(found[1])


def test_what_is_screened_is_never_significant() -> None:
    """Small and skewed tables: n of 60 or 400 examples with few or many changes."""
    grid = [
        (n, size, lost, gained, inside_lost, inside_gained)
        for size in (60, 400)
        for n in (5, 15, 30)
        for lost in (1, 2, 5, 20)
        for gained in (0, 1, 5)
        for inside_lost in range(min(n, lost) + 1)
        for inside_gained in range(min(n - inside_lost, gained) + 1)
        if (lost - inside_lost) + (gained - inside_gained) <= size - n
    ]
    n, size, lost, gained, il, ig = np.array(grid, dtype=float).T
    c = Contrast(counts(n, il, ig), counts(size - n, lost - il, gained - ig))
    near = np.abs(distance(c)) < SCREEN
    assert near.sum() > 300
    assert p_values(c)[near].min() > 0.05


def test_a_slice_where_by_chance_nothing_changed_is_no_discovery() -> None:
    """Its own examples have no spread, and everyone else's 2 points are known closely."""
    rng = np.random.default_rng(3)
    change = -(rng.random((3, 5000)) < 0.02).mean(axis=0)
    inside = np.arange(5000) < 40
    change[inside] = 0.0
    c = slice_contrast(Half(change, None, None, exact=False), inside)
    assert c.error is not None
    assert c.excess[0] / c.error[0] > 10
    assert p_values(c)[0] > 0.1


def test_the_pooled_error_of_weights_that_are_equal_is_the_plain_one() -> None:
    plain = pooled_error(counts(30, 4, 1), counts(70, 3, 2))
    tripled = [
        Totals(3 * t.size, 9 * t.size, 3 * t.change, 3 * t.moved)
        for t in (counts(30, 4, 1), counts(70, 3, 2))
    ]
    assert pooled_error(*tripled)[0] == pytest.approx(plain[0], rel=1e-12)


# --- what could have been found


def test_the_detectable_excess_is_found_four_times_in_five() -> None:
    rng = np.random.default_rng(4)
    size, n, tests = 5000, 200, 100
    change = np.zeros(size)
    change[:150], change[150:250] = -1.0, 1.0  # 3 % lost, 2 % gained
    delta = detectable_excess(n, Half(change, None, None, exact=True), tests, 0.05)
    inside = rng.multinomial(n, [0.03 + delta, 0.02, 0.95 - delta], size=1000)
    rest = rng.multinomial(size - n, [0.03, 0.02, 0.95], size=1000)
    p = excess_test(n, inside[:, 0], inside[:, 1], size - n, rest[:, 0], rest[:, 1])
    assert np.mean(p <= 0.05 / tests) == pytest.approx(0.8, abs=0.05)


def test_where_not_even_losing_everything_is_found_there_is_no_detectable_excess() -> None:
    change = np.zeros(20)
    change[0] = -1.0
    assert np.isnan(detectable_excess(2, Half(change, None, None, exact=True), 1000, 0.05))


def test_several_members_need_less_where_their_mean_changes_less() -> None:
    change = np.zeros(5000)
    change[:200] = -0.25
    several = detectable_excess(200, Half(change, None, None, exact=False), 100, 0.05)
    change[:200] = -1.0
    assert 0 < several < detectable_excess(200, Half(change, None, None, exact=False), 100, 0.05)


# --- outcomes that are numbers


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("sizes", ["none", "shared", "own"])
def test_contrasts_of_outcomes_are_the_excesses_of_the_audit(
    sizes: str, clustered: bool, weighted: bool
) -> None:
    rng = np.random.default_rng(1)
    n = 600
    group, cluster = rng.integers(0, 3, n), rng.integers(0, 60, n)
    before = rng.integers(1, 30, n).astype(float) if sizes != "none" else np.ones(n)
    after = before + rng.integers(0, 3, n) if sizes == "own" else before
    first = rng.poisson(before * 0.3).astype(float)
    second = first + (rng.random(n) < 0.2) * rng.choice([1, 1, -1, 2], n)
    weight = rng.lognormal(sigma=0.3, size=n) if weighted else np.ones(n)
    audit = fw.audit(
        outcomes={"dense": first, "int8": second},
        better="lower",
        denominator=None if sizes == "none" else {"dense": before, "int8": after},
        sensitive_features={"group": group.astype(str)},
        cluster=cluster if clustered else None,
        sample_weight=weight if weighted else None,
        n_boot=20,
    )
    rows = audit.by_group.query("metric == 'cost'")
    expected = rows[["excess_shift", "excess_low", "excess_high", "excess_p"]].to_numpy(float)
    half = OutcomeHalf(
        np.stack([first, second, before, after]) * weight, before, cluster if clustered else None
    )
    (found,) = cell_contrasts(half, group, (3, 1), within=False)
    assert isinstance(found, OutcomeContrast)
    low, high = found.found.limits(0.05)
    made = np.stack([found.excess, low, high, p_values(found)], axis=-1)[:, 0]
    np.testing.assert_allclose(made, expected, rtol=1e-7, atol=1e-12)
    # Within a population of two of the groups the rest is the other one.
    own, rest, _ = half.totals(group, 3, np.array([0, 0, 1]), 2)
    np.testing.assert_allclose(rest.products[0], own.products[1], rtol=1e-9, atol=1e-9)
    assert rest.n[0] == own.n[1]
    np.testing.assert_allclose(rest.changed[:2], own.changed[[1, 0]])


@pytest.mark.slow
def test_no_slice_of_numbers_is_found_where_there_is_none_and_a_planted_one_is() -> None:
    """Skewed changes, and a level with three times as large ones: at most 7 % of 150 audits."""

    def found(seed: int, harm: float) -> list[str]:
        rng = np.random.default_rng(seed)
        n = 3000
        columns = {f"c{i}": rng.integers(0, 4, n).astype(str) for i in range(6)}
        size = np.where(columns["c0"] == "0", 3.0, 1.0) * rng.gamma(0.5, 1, n)
        moved = np.where(rng.random(n) < 0.3, size * rng.choice([-1, 1], n), 0)
        moved = moved + harm * ((columns["c1"] == "1") & (rng.random(n) < 0.7))
        before = rng.gamma(1, 1, n)
        table = {"example_id": range(n), **columns, "dense": before, "int8": before + moved}
        spec = fw.TableSpec(
            (SourceRef.of(table),),
            outcome={"dense": "dense", "int8": "int8"},
            better="lower",
            groups=list(columns),
        )
        with align(spec) as aligned:
            answers = from_aligned(aligned, numeric=True)
        return [str(s) for s in find_slices(answers, "int8", random_state=seed)["slice"]]

    assert sum(bool(found(seed, 0.0)) for seed in range(150)) <= 0.07 * 150
    assert sum(found(seed, 0.35)[:1] == ["c1=1"] for seed in range(30)) >= 15


def test_the_screen_keeps_every_outcome_that_the_rule_would_find() -> None:
    rng = np.random.default_rng(5)
    group = rng.integers(0, 20, 2000)
    values = np.stack([np.zeros(2000), rng.standard_t(3, 2000) * (rng.random(2000) < 0.3)])
    half = OutcomeHalf(np.concatenate([values, np.ones((2, 2000))]), np.ones(2000), None)
    (found,) = cell_contrasts(half, group, (20, 1), within=False)
    # The rule's limits are wider than the plain ones, so its p is larger.
    assert (p_values(found) >= 2 * ndtr(-np.abs(distance(found))) - 1e-12).all()
    assert detectable_excess(100, half, 20, 0.05) > detectable_excess(400, half, 20, 0.05) > 0
