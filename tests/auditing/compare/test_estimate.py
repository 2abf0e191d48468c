"""Tables beside the results: the gate's limits, and every member's own numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.auditing.compare.estimate import (
    MANY_ROWS,
    Estimate,
    Formula,
    limits_at,
    members_of,
)
from fairweight.auditing.gate.endpoints import demands
from fairweight.auditing.intervals.proportion import tango
from fairweight.auditing.metrics.outcomes import OUTCOMES
from fairweight.auditing.metrics.registry import metric, metrics
from fairweight.auditing.result import BOUND_COLUMNS, BOUNDED, DIVISORS, GATE_ALPHA
from fairweight.errors import InputError
from fairweight.specs.policy import read_policy

from ..strategies import row
from .made_populations import Population, audit, audit_with_seeds, population

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
    for name in ("flips", "harmful_flips"):
        assert ("value", name) in checked
        assert ("shift", name) not in checked


def accepted(name: str, by: str, criterion: str) -> bool:
    """Whether a policy may demand it, with the first limit that its range allows."""
    for limit in (0.02, 0.5, 1.5):
        try:
            demands(read_policy({"rule": [{"metric": name, "by": by, criterion: limit}]}))
        except InputError as error:
            if "must lie between" not in str(error):
                return False
        else:
            return True
    return False


def test_limits_are_held_of_what_a_policy_may_demand_and_of_nothing_else() -> None:
    bounds = pair()[0].result.bounds
    held = set(zip(bounds["metric"], bounds["quantity"], strict=True))
    assert ("disparate_impact", "value") in held
    assert ("accuracy", "shift") in held
    assert all(quantity in metric(name).gated for name, quantity in held)
    for entry in metrics():
        asked = {
            "value" if criterion != "margin" or entry.is_change else "shift"
            for criterion in ("margin", "min", "max")
            if accepted(entry.name, entry.by[0], criterion)
        }
        assert asked <= entry.gated, entry.name
        assert not entry.gated or asked, entry.name


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


# Made of both sides' mean rates; a member alone is compared with the mean baseline.
RATES_FIRST = {m.name for m in metrics() if m.kind == "comparison"}


# Made of pairs of members.
PAIRS = {"flips", "harmful_flips", "helpful_flips"}


@cache
def binary_with_scores() -> fw.Audit:
    """Everything that the registry has: binary labels, scores, training labels."""
    made = population(3, n=160, members=(3, 3), classes="01")
    rng = np.random.default_rng(3)
    label = made.label.astype(int)
    # More positives at one site than at others, so that bias has a side.
    label = np.where((made.groups["site"] == "x") & (rng.random(160) < 0.4), 1, label)
    scores = {
        name: np.clip(0.55 * side.astype(int) + 0.45 * rng.random(side.shape), 0, 1)
        for name, side in (("dense", made.dense), ("small", made.small))
    }
    predictions = {name: (score > 0.5).astype(int) for name, score in scores.items()}
    train = pd.DataFrame({"label": label, **made.groups})
    return fw.audit(
        label,
        predictions,
        y_score=scores,
        sensitive_features=made.groups,
        train=train,
        n_boot=50,
    )


@cache
def three_classes() -> fw.Audit:
    return audit(population(4, n=120, members=(4, 3)))


@cache
def weighted() -> fw.Audit:
    made = population(5, n=120, members=(3, 5))
    return audit(made, sample_weight=np.random.default_rng(5).uniform(0.5, 2, 120))


@cache
def by_parent() -> fw.Audit:
    made = population(6, n=120, members=(3, 5))
    parents: list[str | None] = ["dense:0", "dense:0", "dense:0", "dense:1", "dense:2"]
    return audit_with_seeds(made, [0, 1, 2], [0, 1, 2, 3, 4], parents)


@pytest.fixture(scope="module", params=[binary_with_scores, three_classes, weighted, by_parent])
def audited(request: pytest.FixtureRequest) -> fw.Audit:
    made: fw.Audit = request.param()
    return made


def estimable(audited: fw.Audit) -> pd.DataFrame:
    """Rows about these models that have a value."""
    rows = audited.results.fillna({"group": "", "class": ""})
    return rows[(rows["scope"] == "model") & rows["compressed"].notna()]


def means(audited: fw.Audit) -> pd.DataFrame:
    """Mean over members, by key and variant; a member without a value makes it undefined."""
    frame = audited.per_seed.assign(group=lambda f: f["group"].fillna(""))
    frame["class"] = frame["class"].fillna("")
    return frame.groupby([*KEYS, "variant"])["value"].agg(lambda v: v.mean(skipna=False)).unstack()


def test_the_registry_is_covered_by_the_two_tables() -> None:
    """A metric that neither table can estimate would be tested by nobody."""
    have = set().union(*(estimable(f())["metric"] for f in (binary_with_scores, three_classes)))
    needs_more = {"top5_accuracy", "class_impact", *OUTCOMES}  # ranks; scope method; numbers
    needs_more |= {m.name for m in metrics() if m.only_unlabelled}
    assert {m.name for m in metrics()} - have <= needs_more


def test_seeds_first_means_the_mean_of_the_members(audited: fw.Audit) -> None:
    """Section 7: per member, then mean, for every metric that says so."""
    found, checked = means(audited), set()
    for _, line in estimable(audited).iterrows():
        key = (line["metric"], line["by"], line["group"], line["class"])
        if line["aggregation"] != "seeds_first" or key not in found.index:
            continue
        own = found.loc[key]
        assert line["compressed"] == pytest.approx(own["small"], abs=1e-12), key
        checked.add(line["metric"])
        if not pd.isna(line["shift"]):
            assert line["baseline"] == pytest.approx(own["dense"], abs=1e-12), key
            assert line["shift"] == pytest.approx(own["small"] - own["dense"], abs=1e-12), key
    assert {"accuracy", "precision", "kappa", "group_gap", "worst_group", "class_gap"} <= checked


def test_aggregation_says_which_order_holds(audited: fw.Audit) -> None:
    rows = audited.results
    order = rows.groupby("metric")["aggregation"].agg(lambda v: set(v.dropna()))
    for name in RATES_FIRST & set(order.index):
        assert order[name] == {"rates_first"}, name
    for name in PAIRS:
        assert order[name] == {"pairs"}
    for name in {"recall", "precision", "kappa", "group_gap", "group_std", "worst_group"}:
        assert order[name] == {"seeds_first"}, name


def test_flips_are_means_over_pairs(audited: fw.Audit) -> None:
    """With as many pairs for every compressed member, the mean of the members' own shares."""
    found = means(audited)
    for _, line in estimable(audited).iterrows():
        if line["metric"] in PAIRS:
            key = (line["metric"], line["by"], line["group"], line["class"])
            assert line["compressed"] == pytest.approx(found.loc[key, "small"], abs=1e-12), key


def test_every_member_has_every_metric(audited: fw.Audit) -> None:
    """Complete: all rows of the results but those by group and class.

    Heterogeneity is a test of all members together; nobody has one alone.
    """
    rows = estimable(audited)
    rows = rows[(rows["by"] != "group*class") & ~rows["metric"].str.startswith("heterogeneity")]
    n = {"dense": rows["n_seeds_baseline"].iloc[0], "small": rows["n_seeds_compressed"].iloc[0]}
    frame = audited.per_seed.fillna({"group": "", "class": ""})
    counted = frame[frame["value"].notna()].groupby([*KEYS, "variant"]).size()
    missing = []
    for _, line in rows.iterrows():
        key = (line["metric"], line["by"], line["group"], line["class"])
        wanted = ["small"] if pd.isna(line["baseline"]) else ["dense", "small"]
        missing += [(*key, v) for v in wanted if counted.get((*key, v), 0) != n[v]]
    assert not missing


def test_no_member_is_listed_twice(audited: fw.Audit) -> None:
    frame = audited.per_seed
    assert not frame.duplicated(["variant", "seed", "task", *KEYS]).any()
    assert list(frame.columns) == [
        "variant", "seed", "task", "metric", "by", "group", "class", "n", "value"
    ]  # fmt: skip


def test_a_comparison_of_a_member_is_with_the_mean_baseline() -> None:
    frame = three_classes().per_seed
    # One compressed member alone: its mean rates are its own.
    alone = audit(population(4, n=120, members=(4, 3)).of([0, 1, 2, 3], [1])).results
    for name in ("cev", "sde", "cev_pp", "sde_pp", "normalized_error_change"):
        own = frame[(frame["metric"] == name) & (frame["by"] == "overall")]
        own = own[(own["variant"] == "small") & (own["seed"] == "1")]
        expected = row(alone, name)["compressed"]
        assert own["value"].item() == pytest.approx(expected, rel=1e-12), name
    compared = frame["metric"].isin(RATES_FIRST | PAIRS)
    assert set(frame[compared]["variant"]) == {"small"}


def test_the_baseline_is_listed_once_beside_several_variants() -> None:
    made = population(8, n=60, members=(3, 3))
    several = fw.audit(
        made.label,
        {"dense": made.dense, "small": made.small, "tiny": made.small[:, ::-1]},
        n_boot=50,
    ).per_seed
    assert not several.duplicated(["variant", "seed", *KEYS]).any()
    accuracy = several[(several["metric"] == "accuracy") & (several["by"] == "overall")]
    assert accuracy.groupby("variant").size().to_dict() == {"dense": 3, "small": 3, "tiny": 3}
    # The same models in another order have the same numbers.
    values = accuracy.pivot_table(index="seed", columns="variant", values="value")
    assert values["tiny"].tolist() == pytest.approx(values["small"].tolist()[::-1])


def test_abstentions_and_zero_examples_stay_apart() -> None:
    """A value that one member does not have is missing for that member alone."""
    label = np.array(["a", "b"] * 20)
    dense = np.stack([label] * 3, axis=1)
    small = dense.copy()
    small[:, 0] = "a"  # never predicts b: no precision of b
    frame = audit(Population(label, dense, small, {})).per_seed
    own = frame[(frame["metric"] == "precision") & (frame["class"] == "b")]
    found = own[own["variant"] == "small"].set_index("seed")["value"]
    assert np.isnan(found["0"])
    assert found[["1", "2"]].tolist() == [1.0, 1.0]


def seeds(values: list[float], n: int = 1000, variant: str = "small") -> pd.DataFrame:
    return pd.DataFrame(
        {
            "variant": variant, "seed": [str(i) for i in range(len(values))], "task": None,
            "metric": "accuracy", "by": "overall", "group": None, "class": None, "n": n,
            "value": values,
        }
    )  # fmt: skip


def test_a_member_beyond_three_deviations_is_named() -> None:
    # median .90, deviations .00 .01 .01 .02 .30: their median .01, three of them scaled .0445
    found = members_of(seeds([0.90, 0.91, 0.89, 0.92, 0.60]), "small")
    assert found.seeds == ("0", "1", "2", "3", "4")
    assert found.accuracy == (0.90, 0.91, 0.89, 0.92, 0.60)
    assert found.far == ("4",)
    assert members_of(seeds([0.90, 0.91, 0.89, 0.92, 0.86]), "small").far == ()
    assert members_of(seeds([0.90, 0.91, 0.89, 0.92, 0.855]), "small").far == ("4",)


def test_members_that_are_mostly_alike_need_more_than_three_examples() -> None:
    """A median deviation of 0 would name everyone else."""
    assert members_of(seeds([0.9, 0.9, 0.9, 0.903], n=1000), "small").far == ()
    assert members_of(seeds([0.9, 0.9, 0.9, 0.904], n=1000), "small").far == ("3",)


def test_members_of_several_tasks_have_their_mean() -> None:
    two = pd.concat([seeds([0.9, 0.8]).assign(task="a"), seeds([0.7, 0.8]).assign(task="b")])
    assert members_of(two, "small").accuracy == pytest.approx((0.8, 0.8))
    assert members_of(two, "another").seeds == ()


def test_many_rows_have_the_limits_that_each_has_alone() -> None:
    """Equal rows are computed once, at the levels of their own family."""
    rng = np.random.default_rng(3)
    gained, lost = rng.integers(0, 3, (2, MANY_ROWS + 500)).astype(float)
    n = gained + lost + rng.integers(0, 9, len(lost))
    halves = slice(0, 1500), slice(1500, None)
    formulas = [Formula(tango, (n[h], lost[h], gained[h])) for h in halves]
    levels = np.array([0.01, 0.001]), np.array([0.02, 0.001])
    asked = [
        (Estimate.closed(n[h], formula), 0.05, own)
        for h, formula, own in zip(halves, formulas, levels, strict=True)
    ]
    for formula, own, found in zip(formulas, levels, limits_at(asked), strict=True):
        assert found.corrected is not None
        alone = formula(np.array([0.05, *own])[:, None])
        for side in (0, 1):
            both = np.stack([found.pointwise[side], *found.corrected[side]])
            np.testing.assert_allclose(both, alone[side], rtol=1e-13, equal_nan=True)
