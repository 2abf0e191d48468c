"""Scope `method`: what must not change a number, and where nothing changed at all."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.result import RESULT_COLUMNS

from ..strategies import row
from .made_populations import (
    Population,
    audit,
    audit_with_seeds,
    independent_population,
    paired_population,
    population,
)
from .scope_rows import CLOSED, ESTIMATES, KEYS, LIMITS, rates, same


def test_members_in_another_order_change_nothing() -> None:
    made, audited = paired_population()
    order = [3, 1, 4, 0, 2]
    other = audit(made.of(order, order))
    for scope in ("model", "method"):
        same(
            rates(audited.results, scope),
            rates(other.results, scope),
            [*CLOSED, "noise_floor", "p_retraining"],
        )


def test_swapping_the_sides_negates_shifts() -> None:
    made, audited = independent_population()
    swapped = rates(audit(replace(made, dense=made.small, small=made.dense)).results)
    mine = rates(audited.results)
    mirrored = swapped.assign(
        shift=-swapped["shift"],
        excess_shift=-swapped["excess_shift"],
        ci_low=-swapped["ci_high"],
        ci_high=-swapped["ci_low"],
        sim_low=-swapped["sim_high"],
        sim_high=-swapped["sim_low"],
        excess_low=-swapped["excess_high"],
        excess_high=-swapped["excess_low"],
        baseline=swapped["compressed"],
        compressed=swapped["baseline"],
        baseline_low=swapped["compressed_low"],
        baseline_high=swapped["compressed_high"],
        compressed_low=swapped["baseline_low"],
        compressed_high=swapped["baseline_high"],
    )
    same(mine, mirrored, CLOSED)


def test_other_names_of_groups_change_nothing() -> None:
    made, audited = independent_population()
    names = {"x": "zz", "y": "aa", "z": "m"}  # in another alphabetical order
    renamed = replace(
        made, groups={"site": np.array([names[value] for value in made.groups["site"]])}
    )
    back = {f"site={new}": f"site={old}" for old, new in names.items()}
    other = audit(renamed).results
    other = other.assign(group=other["group"].replace(back))
    # Names order the cells, and the order decides which sign a cell gets (scope `model`).
    plain = [column for column in CLOSED if not column.startswith("sim_")]
    for scope, columns in (("model", plain), ("method", CLOSED)):
        same(rates(audited.results, scope), rates(other, scope), columns)


def test_every_example_twice() -> None:
    """Estimates stay; members vary as before and examples by half, so limits narrow by less.

    By how much less depends on the degrees of freedom too: more of them where examples vary less.
    """
    made, audited = paired_population()
    twice = audit(made.examples(np.tile(np.arange(90), 2)), sample_id=np.arange(180))
    same(
        rates(audited.results),
        rates(twice.results),
        ["baseline", "compressed", "shift", "excess_shift", "p_retraining", "noise_floor"],
    )
    found, before = (
        row(results, "accuracy", scope="method") for results in (twice.results, audited.results)
    )
    width, was = (one["ci_high"] - one["ci_low"] for one in (found, before))
    assert 0.6 * was < width < was
    assert found["n"] == 180


@pytest.mark.parametrize("which", [paired_population, independent_population])
def test_clusters_of_one_example_are_examples(which: Any) -> None:
    made, audited = which()
    clustered = audit(made, cluster=np.arange(len(made.label))).results
    mine, other = rates(audited.results), rates(clustered)
    enough = other["n_clusters"] >= 20
    assert enough.sum() > 20
    name = "wider of two-way t over members and clusters and Tango on n_eff"
    assert other["interval"].str.startswith(name).all()
    mine, other = mine[enough.to_numpy()], other[enough]
    same(mine, other, [*ESTIMATES, "baseline_low", "baseline_high"])
    # Tango's quantile is normal for members, and of t with n − 1 degrees of freedom for clusters
    for column in ("ci_low", "ci_high"):
        reach, wider = ((frame[column] - frame["shift"]).abs() for frame in (mine, other))
        assert (wider >= reach - 1e-12).all()
        assert (wider <= 1.15 * reach + 1e-12).all()  # (t(19) / z)² = 1.14
    # below 20 clusters nothing is said about precision, flips included
    few = clustered[clustered["status"].str.contains("clusters")]
    assert len(few)
    assert few[LIMITS].isna().all(axis=None)


def test_weights_of_one_are_no_weights() -> None:
    """Every row and column of a population's audit, drawn ones included."""
    made, audited = independent_population()
    weighted = audit(made, sample_weight=np.ones(len(made.label))).results
    columns = [c for c in RESULT_COLUMNS if c != "interval"]
    pd.testing.assert_frame_equal(
        audited.results[columns], weighted[columns], check_exact=False, rtol=1e-9, atol=1e-12
    )


def test_both_scopes_have_the_same_estimates() -> None:
    """Balanced populations: every parent (member) counts alike in either scope."""
    for _, audited in (paired_population(), independent_population()):
        frame = audited.results.fillna({"group": "", "class": ""})
        model, method = (
            frame[(frame["scope"] == scope) & (frame["metric"] != "class_impact")]
            .set_index(KEYS)
            .sort_index()
            for scope in ("model", "method")
        )
        same(model, method, [*ESTIMATES, "n", "matched", "noise_floor"])
        same(model, method, ["n_seeds_baseline", "n_seeds_compressed", "level"])


def test_the_same_random_state_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    made, audited = independent_population()
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    again = audit(made)
    pd.testing.assert_frame_equal(audited.results, again.results, check_exact=True)
    pd.testing.assert_frame_equal(audited.result.bounds, again.result.bounds, check_exact=True)
    pd.testing.assert_frame_equal(audited.per_seed, again.per_seed, check_exact=True)
    other = audit(made, random_state=1).results
    assert (
        (row(other, "kappa", scope="method")["ci_low"])
        != row(audited.results, "kappa", scope="method")["ci_low"]
    )


@pytest.mark.parametrize("roots", ["dense", "elsewhere"])
def test_copies_of_a_child_are_that_child(roots: str) -> None:
    """Siblings that answer alike add nothing: three lines stay three, paired or independent."""
    made = replace(population(5, n=60, members=(3, 3)), groups={})
    once, twice = (
        audit_with_seeds(
            made.of([0, 1, 2], of), [0, 1, 2], list(range(len(of))), [f"{roots}:{p}" for p in of]
        )
        for of in ([0, 1, 2], [0, 0, 1, 1, 2, 2])
    )
    assert once.result.pairing == {"small": "parent" if roots == "dense" else "independent"}
    same(rates(once.results), rates(twice.results), CLOSED)
    for name in ("flips", "harmful_flips"):
        one, other = (row(a.results, name, scope="method") for a in (once, twice))
        for column in ("compressed", "ci_low", "ci_high"):
            assert one[column] == pytest.approx(other[column], abs=1e-12), (name, column)


def test_where_nothing_changed_nothing_is_found() -> None:
    """Six children per parent, all like it in group v: a shift of 0 and p = 1, whatever rounds."""
    label = np.array(["a", "b"] * 40)
    group = np.repeat(["u", "v"], 40)
    rng = np.random.default_rng(0)
    dense = np.stack([label] * 3, axis=1)
    small = np.stack([label] * 18, axis=1)
    small[:10] = np.where(rng.random((10, 18)) < 0.5, "a", small[:10])
    made = Population(label, dense, small, {"g": group})
    parents: list[str | None] = [f"dense:{i % 3}" for i in range(18)]
    results = audit_with_seeds(made, [0, 1, 2], list(range(18)), parents).results
    for scope in ("model", "method"):
        found = row(results, "accuracy", "group", group="g=v", scope=scope)
        assert found["shift"] == pytest.approx(0, abs=1e-12)
        assert found["p_value"] == 1.0
        assert found["ci_low"] < -0.03 < 0.03 < found["ci_high"]  # 40 examples prove no equality
        assert found["compressed_low"] < 0.95
        found = row(results, "flips", "group", group="g=v", scope=scope)
        assert found["compressed"] == pytest.approx(0, abs=1e-12)
        assert found["ci_high"] > 0.03
