"""`per_seed` holds every member's own numbers; the order of averaging can be seen from it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.auditing.compare.estimate import members_of
from fairweight.auditing.metrics.registry import metrics

from ..strategies import row as the_row
from .made_populations import Population, audit, audit_with_seeds, population

KEYS = ["metric", "by", "group", "class"]
# Made of both sides' mean rates; a member alone is compared with the mean baseline.
RATES_FIRST = {m.name for m in metrics() if m.rates_first}
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
    rows = audited.results
    return rows[(rows["scope"] == "model") & rows["compressed"].notna()]


def means(audited: fw.Audit) -> pd.DataFrame:
    """Mean over members, by key and variant; a member without a value makes it undefined."""
    frame = audited.per_seed.assign(group=lambda f: f["group"].fillna(""))
    frame["class"] = frame["class"].fillna("")
    return frame.groupby([*KEYS, "variant"])["value"].agg(lambda v: v.mean(skipna=False)).unstack()


def test_the_registry_is_covered_by_the_two_tables() -> None:
    """A metric that neither table can estimate would be tested by nobody."""
    have = set().union(*(estimable(f())["metric"] for f in (binary_with_scores, three_classes)))
    needs_more = {"top5_accuracy", "class_impact"}  # ranks; scope method only
    assert {m.name for m in metrics()} - have <= needs_more


def test_seeds_first_means_the_mean_of_the_members(audited: fw.Audit) -> None:
    """Section 7: per member, then mean, for every metric that says so."""
    found, checked = means(audited), set()
    for _, row in estimable(audited).iterrows():
        key = (row["metric"], row["by"], row["group"] or "", row["class"] or "")
        if row["aggregation"] != "seeds_first" or key not in found.index:
            continue
        own = found.loc[key]
        assert row["compressed"] == pytest.approx(own["small"], abs=1e-12), key
        checked.add(row["metric"])
        if not pd.isna(row["shift"]):
            assert row["baseline"] == pytest.approx(own["dense"], abs=1e-12), key
            assert row["shift"] == pytest.approx(own["small"] - own["dense"], abs=1e-12), key
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
    for _, row in estimable(audited).iterrows():
        if row["metric"] in PAIRS:
            key = (row["metric"], row["by"], row["group"] or "", row["class"] or "")
            assert row["compressed"] == pytest.approx(found.loc[key, "small"], abs=1e-12), key


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
    for _, row in rows.iterrows():
        key = (row["metric"], row["by"], row["group"] or "", row["class"] or "")
        wanted = ["small"] if pd.isna(row["baseline"]) else ["dense", "small"]
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
        expected = the_row(alone, name)["compressed"]
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
