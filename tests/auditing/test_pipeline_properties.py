"""What holds for every prediction table: Hypothesis looks for one where it does not."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fairweight as fw
from fairweight.auditing.metrics.registry import metrics
from fairweight.auditing.result import (
    BOOLEAN_COLUMNS,
    INTEGER_COLUMNS,
    RESULT_COLUMNS,
    TEXT_COLUMNS,
)

from .strategies import (
    CLOSED_COLUMNS,
    ESTIMATES,
    FEW_AUDITS,
    KEYS,
    Predictions,
    audited,
    closed,
    keyed,
    prediction_tables,
    random_table,
)

# What random signs give; they belong to all examples and variants of an audit together.
SIGNED = ["sim_low", "sim_high", "excess_sim_low", "excess_sim_high", "excess_p_adjusted",
          "equivalent", "loss_ruled_out"]  # fmt: skip
ALLOWED_STATUS = ("ok", "small_group: n < ", "not_estimable: ")
BY = {"overall", "class", "group", "group*class", "grouping"}


@settings(FEW_AUDITS, max_examples=2 * FEW_AUDITS.max_examples)
@given(table=prediction_tables(), min_group=st.sampled_from([1, 10]))
def test_every_row_keeps_the_contract(table: Predictions, min_group: int) -> None:
    audit = audited(table, min_group=min_group)
    r = audit.results
    assert tuple(r.columns) == RESULT_COLUMNS
    for name in r.columns:
        kinds = {"str": TEXT_COLUMNS, "Int64": INTEGER_COLUMNS, "boolean": BOOLEAN_COLUMNS}
        kind = next((kind for kind, names in kinds.items() if name in names), "float64")
        assert str(r[name].dtype) == kind, name
    keyed(r)  # no two rows speak of the same thing
    assert set(r["metric"]) == {
        m.name for m in metrics() if m.kind != "outcome" and not m.only_unlabelled
    }  # none is dropped in silence
    assert set(r["by"]) <= BY
    assert set(r["scope"]) == {"model"}
    assert r["status"].str.startswith(ALLOWED_STATUS).all()
    assert not np.isinf(r[[c for c in r if c not in TEXT_COLUMNS]].astype(float)).any().any()

    # names are null where they do not apply, and only there
    assert r.loc[r["by"] == "overall", ["group", "class"]].isna().all().all()
    assert (r["group"].notna() == r["by"].isin(["group", "group*class", "grouping"])).all()
    assert (r["class"].notna() == r["by"].isin(["class", "group*class"])).all()

    # undefined is NaN with a reason, never a silent hole
    ok = r["status"] == "ok"
    assert r.loc[ok, "compressed"].notna().all()
    assert (r["shift"].notna() <= (r["baseline"].notna() & r["compressed"].notna())).all()
    both = r["baseline"].notna() & r["compressed"].notna()
    np.testing.assert_allclose(
        r.loc[both, "shift"], (r["compressed"] - r["baseline"])[both], rtol=0, atol=1e-12
    )
    small = r["status"].str.startswith("small_group")
    assert (r.loc[small, "n"] < min_group).all()
    assert (r.loc[ok, "n"] >= min_group).all()

    # low ≤ value ≤ high wherever a limit is, and limits come in pairs
    estimate = r["shift"].where(r["shift"].notna(), r["compressed"])
    for low, high, value in (
        ("ci_low", "ci_high", estimate),
        ("sim_low", "sim_high", estimate),
        ("baseline_low", "baseline_high", r["baseline"]),
        ("compressed_low", "compressed_high", r["compressed"]),
        ("excess_low", "excess_high", r["excess_shift"]),
        ("excess_sim_low", "excess_sim_high", r["excess_shift"]),
    ):
        assert (r[low].isna() == r[high].isna()).all(), low
        assert (r[low].fillna(0) <= r[high].fillna(0)).all(), low
        # percentile limits of skewed replicates may miss the estimate; closed forms may not
        exact = r[low].notna() & value.notna() & r.index.isin(closed(r).index)
        assert (r[low][exact] <= value[exact] + 1e-12).all(), low
        assert (value[exact] <= r[high][exact] + 1e-12).all(), high
    for name in ("p_value", "p_adjusted", "excess_p", "excess_p_adjusted", "churn"):
        p = r[name].dropna()
        assert ((p >= 0) & (p <= 1)).all(), name
    excess = r["excess_p_adjusted"].notna() & r["excess_sim_low"].notna()
    assert (r["excess_p_adjusted"][excess] >= r["excess_p"][excess] - 1e-15).all()
    # Interval and test are one thing: limits exclude 0 exactly where p is below the level.
    rates = r["excess_p"].notna() & r["excess_low"].notna()
    apart = (r["excess_low"] > 0) | (r["excess_high"] < 0)
    assert (apart == (r["excess_p"] < 0.05))[rates].all()
    confirmed = r["family"].isin([f"confirmatory: {f} (holm)" for f in
                                  ("accuracy by group", "recall by class")])  # fmt: skip
    apart = (r["excess_sim_low"] > 0) | (r["excess_sim_high"] < 0)
    assert (apart == (r["excess_p_adjusted"] <= 0.05))[confirmed & excess].all()
    assert (r["p_adjusted"].dropna() >= r.loc[r["p_adjusted"].notna(), "p_value"] - 1e-15).all()

    # simultaneous limits contain the pointwise ones
    pair = r["sim_low"].notna() & r["ci_low"].notna()
    assert (r["sim_low"][pair] <= r["ci_low"][pair] + 1e-9).all()
    assert (r["ci_high"][pair] <= r["sim_high"][pair] + 1e-9).all()

    # a family has a size, a name and members that are large enough, whatever came out for them
    assert (r["family"].notna() == r["n_family"].notna()).all()
    by_result = r["status"].isin(
        ["not_estimable: unstable", "not_estimable: undefined in the data"]
    ) | r["status"].str.contains("not_estimable: zero baseline|changed predictions")
    assert (ok | by_result)[r["family"].notna()].all()
    for _, part in r[r["family"].notna()].groupby(["variant", "family"]):
        assert part["n_family"].nunique() == 1

    # accuracy shift = helpful − harmful flips, everywhere
    frame = keyed(r)
    for by in ("overall", "class", "group"):
        shift, helpful, harmful = (
            frame.xs((metric, by), level=("metric", "by"))[column]
            for metric, column in (
                ("accuracy", "shift"), ("helpful_flips", "compressed"),
                ("harmful_flips", "compressed"),
            )
        )  # fmt: skip
        np.testing.assert_allclose(shift, helpful - harmful, rtol=0, atol=1e-12)
    ranges = {m.name: (m.low, m.high) for m in metrics()}
    for name in ("baseline", "compressed"):
        low, high = (r["metric"].map(lambda m, i=i: ranges[m][i]).astype(float) for i in (0, 1))
        defined = r[name].notna()
        assert (r[name][defined] >= low[defined] - 1e-9).all()
        assert (r[name][defined] <= high[defined] + 1e-9).all()


@FEW_AUDITS
@given(table=prediction_tables(max_rows=80), data=st.data())
def test_the_order_of_rows_does_not_matter(table: Predictions, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(table))))
    pd.testing.assert_frame_equal(audited(table).results, audited(table.taken(order)).results)


@FEW_AUDITS
@given(table=prediction_tables(max_rows=120))
def test_names_in_the_same_order_change_nothing_but_names(table: Predictions) -> None:
    """A prefix keeps the order of texts, so even the random numbers are the same."""
    # numbers sort by size and before text: they would change places
    assume(not set(table.label) & {"0", "1", "2"} and not set(table.dense) & {"0", "1", "2"})
    assume(not set(table.small) & {"0", "1", "2"})
    classes = {c: f"K {c}" for c in {*table.label, *table.dense, *table.small} - {None}}
    levels = {v: f"L {v}" for column in table.groups.values() for v in column if v is not None}
    first = audited(table, positive=None).results
    second = audited(table.renamed(classes, levels), positive=None).results
    numbers = [c for c in RESULT_COLUMNS if c not in TEXT_COLUMNS]
    pd.testing.assert_frame_equal(first[numbers], second[numbers])
    assert (first["class"].dropna().map(lambda c: f"K {c}") == second["class"].dropna()).all()


@FEW_AUDITS
@given(table=prediction_tables(max_rows=120), seed=st.integers(0, 99))
def test_other_names_change_no_estimate_and_no_closed_form(table: Predictions, seed: int) -> None:
    rng = np.random.default_rng(seed)
    old = sorted({*table.label, *table.dense, *table.small} - {None})
    names = [f"class {i}" for i in rng.permutation(len(old))]
    classes = dict(zip(old, names, strict=True))
    values = sorted({v for column in table.groups.values() for v in column if v is not None})
    levels = dict(zip(values, [f"v{i}" for i in rng.permutation(len(values))], strict=True))
    positive = table.label[0] if len(set(table.label)) == 2 else None
    first = audited(table, positive=positive).results
    second = audited(
        table.renamed(classes, levels),
        positive=None if positive is None else classes[positive],
        names=("big", "tiny"),
    ).results
    first["variant"] = "tiny"
    first["class"] = first["class"].map(classes, na_action="ignore")
    translated = {
        f"{column}={old_name}": f"{column}={new_name}"
        for column in table.groups
        for old_name, new_name in levels.items()
    }
    first["group"] = first["group"].map(lambda g: translated.get(g, g), na_action="ignore")
    first, second = keyed(first), keyed(second)
    assert list(first.index) == list(second.index)
    np.testing.assert_allclose(first[ESTIMATES], second[ESTIMATES], rtol=1e-12, atol=1e-12)
    mine, theirs = (keyed(closed(f.reset_index())) for f in (first, second))
    # Names order the cells, and the order decides which sign a cell gets.
    plain = [c for c in CLOSED_COLUMNS if c not in SIGNED]
    drawn = mine.index.get_level_values("metric") == "worst_group_shift"
    np.testing.assert_allclose(
        mine.loc[~drawn, plain].astype(float), theirs.loc[~drawn, plain].astype(float), atol=1e-10
    )


NOT_MIRRORED = {
    "cev", "sde", "cev_pp", "sde_pp", "normalized_error_change", "normalized_fpr_change",
    "normalized_fnr_change", "concentration",
}  # fmt: skip


@FEW_AUDITS
@given(table=prediction_tables(max_rows=120))
def test_swapping_the_models_negates_shifts_and_mirrors_intervals(table: Predictions) -> None:
    there, back = (keyed(audited(table, swap=s, min_group=1).results) for s in (False, True))
    common = there.index.intersection(back.index)  # labels decide which rows there are
    assert list(there.index) == list(back.index) == list(common)
    mirror = back["compressed"].where(there["baseline"].notna())  # comparisons have no baseline
    np.testing.assert_allclose(there["baseline"], mirror, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(there["shift"], -back["shift"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(there["excess_shift"], -back["excess_shift"], rtol=0, atol=1e-12)
    mirrored = there.index.isin(keyed(closed(there.reset_index())).index)
    metric = there.index.get_level_values("metric")
    mirrored &= (
        ~metric.isin([*NOT_MIRRORED, "worst_group_shift"]) & there["shift"].notna().to_numpy()
    )
    assert mirrored.sum() > 3
    mine, theirs = there[mirrored], back[mirrored]
    for low, high in (
        ("ci_low", "ci_high"),
        ("excess_low", "excess_high"),
    ):
        np.testing.assert_allclose(mine[low], -theirs[high], atol=1e-10)
        np.testing.assert_allclose(mine[high], -theirs[low], atol=1e-10)
    for name in ("p_value", "p_adjusted", "excess_p"):
        np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-9, atol=1e-12)

    # lost answers are the other direction's gained ones; flips are flips
    def values(frame: pd.DataFrame, name: str) -> np.ndarray:
        return frame[metric == name]["compressed"].to_numpy()

    np.testing.assert_allclose(values(there, "harmful_flips"), values(back, "helpful_flips"))
    np.testing.assert_allclose(values(there, "flips"), values(back, "flips"))


@FEW_AUDITS
@given(table=prediction_tables(max_rows=120))
def test_identical_predictions_are_no_change_but_no_certainty(table: Predictions) -> None:
    same = Predictions(table.label, table.dense, table.dense, table.groups)
    r = audited(same, min_group=1).results
    shift = r["shift"].dropna()
    assert (shift == 0).all()
    tested = r["p_value"].notna()
    assert (r.loc[tested, "p_value"] == 1).all()
    assert (r["p_adjusted"].dropna() == 1).all()
    assert (r["excess_p"].dropna() == 1).all()
    rates = closed(r)[lambda f: f["shift"].notna()]
    assert (rates["ci_low"] < 0).all()
    assert (rates["ci_high"] > 0).all()
    zero = r["metric"].isin(["flips", "harmful_flips", "helpful_flips"])
    assert (r.loc[zero & (r["n"] > 0), "compressed"] == 0).all()
    assert (r.loc[zero & (r["n"] > 0), "ci_high"] > 0).all()
    assert (r.loc[r["metric"] == "worst_group_shift", "compressed"].dropna() == 0).all()
    gone = r[r["metric"] == "concentration"]
    assert gone["compressed"].isna().all()
    assert (gone["status"] == "not_estimable: no answer was lost").all()


# z grows with the sample; the skip rules of bias amplification count positives
GROWS = {
    "heterogeneity",
    "heterogeneity_within_classes",
    "bias",
    "bias_amplification",
    "worst_case_bias_amplification",
}


@FEW_AUDITS
@given(table=prediction_tables(max_rows=100))
def test_every_row_twice_gives_the_same_estimates(table: Predictions) -> None:
    once = keyed(audited(table, min_group=1).results)
    twice = keyed(audited(table.taken([*range(len(table))] * 2), min_group=1).results)
    assert list(once.index) == list(twice.index)
    stays = ~once.index.get_level_values("metric").isin(GROWS)
    np.testing.assert_allclose(
        once.loc[stays, ESTIMATES], twice.loc[stays, ESTIMATES], rtol=1e-12, atol=1e-12
    )
    assert (twice["n"] == 2 * once["n"]).all()


def test_the_random_state_is_all_that_is_random() -> None:
    table = random_table(3, 200)
    first, again, other = (audited(table, n_boot=60, random_state=s).results for s in (7, 7, 8))
    pd.testing.assert_frame_equal(first, again)
    mine, theirs = (
        closed(f)[lambda f: f["metric"] != "worst_group_shift"].drop(columns=SIGNED)
        for f in (first, other)
    )
    pd.testing.assert_frame_equal(mine, theirs)
    drawn = first.index.difference(closed(first).index)
    assert (first.loc[drawn, "ci_low"] - other.loc[drawn, "ci_low"]).abs().sum() > 0
    pd.testing.assert_frame_equal(first[ESTIMATES], other[ESTIMATES])
    pd.testing.assert_frame_equal(
        audited(table, n_boot=60, random_state=None).results,
        audited(table, n_boot=60, random_state=0).results,
    )


def test_other_variants_do_not_change_a_variants_results() -> None:
    table, third = random_table(4, 150), random_table(5, 150).small
    label, groups = list(table.label), {k: list(v) for k, v in table.groups.items()}
    # the third model predicts a class that nobody else knows
    models = {"dense": table.dense, "small": table.small, "odd": ("zz", *third[1:])}

    def results(*names: str) -> pd.DataFrame:
        audit = fw.audit(
            label, {n: list(models[n]) for n in names}, baseline="dense",
            sensitive_features=groups, n_boot=60,
        )  # fmt: skip
        return audit.results[audit.results["variant"] == "small"].reset_index(drop=True)

    alone = results("dense", "small")
    for names in (("dense", "odd", "small"), ("small", "odd", "dense")):
        beside = results(*names)
        # Signs belong to examples and so to all variants at once: alike up to their randomness.
        signed = [*SIGNED, "p_value", "p_adjusted"]
        tests = alone["metric"].str.startswith("heterogeneity")
        tests |= alone["metric"].isin(["worst_group_shift", "excess_shift_standardised"])
        plain = [c for c in alone if c not in SIGNED]
        pd.testing.assert_frame_equal(alone.loc[~tests, plain], beside.loc[~tests, plain])
        np.testing.assert_allclose(
            alone[signed].astype(float), beside[signed].astype(float), rtol=0.1, atol=0.05
        )


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_smallest_tables_have_answers(n: int) -> None:
    audit = fw.audit(
        ["a", "b", "a"][:n], {"dense": ["a", "b", "a"][:n], "small": ["a", "a", "a"][:n]},
        sensitive_features={"g": ["x", "y", "y"][:n]}, n_boot=20,
    )  # fmt: skip
    found = audit.overall.set_index("metric").loc["accuracy"]
    assert found["status"] == "small_group: n < 10"
    assert found["shift"] == pytest.approx(-(n > 1) / n)
    assert found["ci_low"] <= found["shift"] <= found["ci_high"]
    assert math.isfinite(found["p_value"])


def test_two_columns_may_make_the_same_level_names() -> None:
    """Column "a" with the value "b=c" and column "a=b" with the value "c" are two columns."""
    table = random_table(4, 100)
    rng = np.random.default_rng(0)
    groups = {
        "a": ["b=c" if x == "F" else "z" for x in table.groups["sex"]],
        "a=b": list(rng.choice(["c", "d", "e"], 100)),
    }
    plain = {"first": groups["a"], "second": groups["a=b"]}
    models = {"dense": list(table.dense), "small": list(table.small)}
    hostile, simple = (
        fw.audit(list(table.label), models, sensitive_features=g, n_boot=20).results
        for g in (groups, plain)
    )
    worst = [
        r[r["metric"] == "worst_group_shift"]["compressed"].tolist() for r in (hostile, simple)
    ]
    assert worst[0] == worst[1]
    pd.testing.assert_frame_equal(closed(hostile)[CLOSED_COLUMNS], closed(simple)[CLOSED_COLUMNS])
    assert len(hostile.columns) == len(RESULT_COLUMNS)
    assert KEYS[0] in hostile
