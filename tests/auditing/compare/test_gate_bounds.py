"""The gate's table of limits: what an audit at another level would print."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.auditing.result import BOUND_COLUMNS, BOUNDED, DIVISORS, GATE_ALPHA

from ..strategies import row
from .made_populations import Population, audit, population

KEYS = ["metric", "by", "group", "class"]
# Below 1,000 examples per class their value is `ok` in the results, and the gate has no limits.
WITHOUT_LIMITS = {"cev", "sde", "cev_pp", "sde_pp"}


def audits(made: Population) -> tuple[fw.Audit, fw.Audit]:
    """At the usual level, and at the gate's: 90 % intervals."""
    return audit(made, n_boot=200), audit(made, n_boot=200, alpha=2 * GATE_ALPHA)


@cache
def pair() -> tuple[fw.Audit, fw.Audit]:
    return audits(population(21, n=120, members=(1, 1)))


@cache
def several() -> tuple[fw.Audit, fw.Audit]:
    return audits(population(22, n=120, members=(3, 4)))


def about_models(audited: fw.Audit) -> pd.DataFrame:
    return by_key(audited.results[audited.results["scope"] == "model"])


def by_key(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.fillna({"group": "", "class": ""}).set_index(KEYS).sort_index()


both = pytest.mark.parametrize("which", [pair, several])


@both
def test_the_table_keeps_its_contract(which: Any) -> None:
    bounds = which()[0].result.bounds
    assert tuple(bounds.columns) == BOUND_COLUMNS
    assert set(bounds["quantity"]) == {"shift", "value"}
    assert set(bounds["kind"]) == {"overall", "class", "group", "grouping"}
    assert set(bounds["by"]) == {"overall", "class", "group", "grouping"}
    assert set(bounds["variant"]) == {"small"}
    assert not bounds.duplicated(["task", *KEYS, "quantity"]).any()


@both
def test_estimates_and_status_are_those_of_the_results(which: Any) -> None:
    audited = which()[0]
    rows = about_models(audited)
    for quantity, name in (("shift", "shift"), ("value", "compressed")):
        bounds = audited.result.bounds
        mine = by_key(bounds[bounds["quantity"] == quantity])
        expected = rows.loc[mine.index]
        np.testing.assert_array_equal(mine["estimate"], expected[name])
        bounded = mine["status"].str.startswith(BOUNDED)  # few changes: a bound and no interval
        same = (mine["status"] == expected["status"]) | (bounded & (quantity == "shift"))
        if quantity == "value":  # few changes take the limits of the shift, not of a side's value
            few = expected["status"].str.contains("changed predictions")
            assert few.any()
            same |= few & mine["status"].eq("ok") & mine["low_1"].notna()
        assert set(mine[~same].index.get_level_values("metric")) <= WITHOUT_LIMITS
        assert (mine["n"].dropna() == expected["n"].dropna()).all()


@both
def test_the_first_limits_are_the_90_percent_interval(which: Any) -> None:
    """Of shifts, of comparisons' values, and of the compressed value: rates and drawn ones."""
    audited, gate = which()
    bounds = audited.result.bounds
    ok = bounds[(bounds["status"] == "ok")]
    # The gate's limits of the worst shift are at α over its levels, the table's at signs' z.
    ok = ok[ok["metric"] != "worst_group_shift"]
    checked = set()
    for quantity in ("shift", "value"):
        mine = by_key(ok[ok["quantity"] == quantity])
        rows = about_models(gate).loc[mine.index]
        compared = rows["shift"].isna() & (quantity == "value")
        for side in ("low", "high"):
            own = "compressed" if quantity == "value" else "ci"
            expected = rows[f"{own}_{side}"].where(~compared, rows[f"ci_{side}"])
            np.testing.assert_allclose(mine[f"{side}_1"], expected, rtol=1e-12, atol=1e-12)
        limited = mine["low_1"].notna()
        checked |= {(quantity, name) for name in mine[limited].reset_index()["metric"]}
    for name in ("accuracy", "recall", "fpr", "precision", "kappa", "group_gap", "class_gap"):
        assert {("shift", name), ("value", name)} <= checked
    for name in ("flips", "harmful_flips", "normalized_error_change"):
        assert ("value", name) in checked
        assert ("shift", name) not in checked


@both
def test_limits_widen_with_the_divisor(which: Any) -> None:
    bounds = which()[0].result.bounds
    low, high = (bounds[[f"{side}_{j}" for j in DIVISORS]].to_numpy() for side in ("low", "high"))
    known = np.isfinite(low[:, 0])
    assert known.sum() > 100
    assert (np.isfinite(low) == known[:, None]).all()
    assert (np.diff(low[known], axis=1) <= 1e-12).all()
    above = np.isfinite(high[:, 0])
    assert (np.isfinite(high) == above[:, None]).all()
    assert (np.diff(high[above], axis=1) >= -1e-12).all()
    one_sided = bounds["status"].str.startswith(BOUNDED).to_numpy(dtype=bool)
    assert ((known != above) == one_sided).all()
    known &= above
    assert (low[known][:, -1] < low[known][:, 0] + 1e-12).all()
    rates = known & (bounds["metric"] == "accuracy").to_numpy()
    estimate = bounds["estimate"].to_numpy()[rates]
    assert (low[rates][:, 0] <= estimate).all()
    assert (estimate <= high[rates][:, 0]).all()
    # strictly, where the limits are not cut at the range of a shift
    inner = rates & (bounds["quantity"] == "shift").to_numpy()
    assert (np.diff(low[inner][:, :4], axis=1) < 0).all()


def test_a_divisor_is_a_level_of_its_own() -> None:
    """Half of the error on each side: low_2 is the lower end of the 95 % interval."""
    audited, _ = several()
    results = audited.results
    for name, by, where in (
        ("accuracy", "overall", {}),
        ("recall", "class", {"cls": "a"}),
        ("accuracy", "group", {"group": "site=x"}),
    ):
        found = row(results, name, by, **where)
        bounds = audited.result.bounds
        mine = by_key(bounds[bounds["quantity"] == "shift"]).loc[
            (name, by, where.get("group", ""), where.get("cls", ""))
        ]
        assert (mine["low_2"], mine["high_2"]) == pytest.approx(
            (found["ci_low"], found["ci_high"]), abs=1e-12
        )


def test_of_very_many_rows_the_next_wider_limits_are_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only 1, 50 and 1000 are computed: a gate then fails later, never sooner."""
    made = population(22, n=120, members=(3, 4))
    exact = several()[0].result.bounds
    monkeypatch.setattr("fairweight.auditing.compare.rows.MANY_ROWS", 0)
    coarse = audit(made, n_boot=200).result.bounds
    chosen = (exact["metric"] == "accuracy").to_numpy()
    exact, coarse = exact[chosen], coarse[chosen]
    for j, used in ((1, 1), (2, 50), (20, 50), (50, 50), (200, 1000), (1000, 1000)):
        np.testing.assert_allclose(coarse[f"low_{j}"], exact[f"low_{used}"], rtol=1e-12)
        np.testing.assert_allclose(coarse[f"high_{j}"], exact[f"high_{used}"], rtol=1e-12)


def test_composites_have_limits_from_1000_examples_per_class() -> None:
    """CEV and SDE: none below; then those of the interval column."""
    bounds = several()[0].result.bounds
    small = bounds[bounds["metric"].isin(["cev_pp", "sde_pp"])]
    assert small["low_1"].isna().all()
    assert small["status"].str.contains("1,000 examples per class").all()
    rng = np.random.default_rng(23)
    label = np.repeat(["a", "b"], 1000)

    def members(errors: tuple[float, float]) -> Any:
        rate = np.where(label == "a", *errors)
        wrong = rng.random((3, 2000)) < rate
        return np.where(wrong, np.where(label == "a", "b", "a"), label).T

    made = Population(label, members((0.1, 0.1)), members((0.2, 0.1)), {})
    audited, gate = audits(made)
    frame = by_key(audited.result.bounds)
    for name in ("cev_pp", "sde_pp"):
        mine, expected = frame.loc[name].iloc[0], about_models(gate).loc[name].iloc[0]
        assert 0 < mine["low_1"] < mine["estimate"] < mine["high_1"]
        assert mine["low_1"] == pytest.approx(expected["ci_low"], rel=1e-12)
        assert mine["high_1"] == pytest.approx(expected["ci_high"], rel=1e-12)


@both
def test_the_gates_limits_do_not_depend_on_the_level_of_the_audit(which: Any) -> None:
    one, other = (audited.result.bounds for audited in which())
    # Whether a class without baseline errors was harmed is decided at the audit's own level.
    decided = one["metric"].isin(["cev", "sde"])
    pd.testing.assert_frame_equal(one[~decided], other[~decided])
