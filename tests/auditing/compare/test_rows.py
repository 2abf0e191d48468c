"""Families in the results: sizes from n alone, corrections that statsmodels confirms."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests
from tests.crosses import crossed

import fairweight as fw

from ..strategies import Predictions, audited, random_table, row


def with_small_groups(seed: int = 40, n: int = 300) -> Predictions:
    """Twelve sites, two of them below ten examples; four rows without a site."""
    table = random_table(seed, n)
    site = np.array([f"s{i % 10:02d}" for i in range(n)], dtype=object)
    site[:5], site[5:9], site[9:13] = "tiny", "rare", None
    return Predictions(table.label, table.dense, table.small,
                       {"sex": table.groups["sex"], "site": tuple(site)})  # fmt: skip


@pytest.fixture(scope="module")
def results() -> pd.DataFrame:
    return audited(with_small_groups(), n_boot=60, groups=["sex", "site", "sex*site"]).results


@pytest.mark.parametrize("correction", ["holm", "bh", "none"])
def test_corrections_are_those_of_statsmodels(correction: str) -> None:
    frame = audited(with_small_groups(), n_boot=60, correction=correction).results
    tested = frame[frame["p_adjusted"].notna()]
    checked = set()
    for family, part in tested.groupby("family"):
        assert part["n_family"].nunique() == 1
        if family.endswith("(random signs)"):
            continue
        role, method = family.split(":")[0], family.rsplit("(", 1)[1].rstrip(")")
        confirmatory = role == "confirmatory"
        expected = correction if confirmatory or correction == "none" else "bh"
        assert method == expected, family
        name = {"holm": "holm", "bh": "fdr_bh"}.get(method)
        adjusted = (
            part["p_value"] if name is None else multipletests(part["p_value"], method=name)[1]
        )
        np.testing.assert_allclose(part["p_adjusted"], adjusted, rtol=0, atol=1e-12)
        checked.add(role)
    assert checked == {"confirmatory", "exploratory"}


def test_which_families_are_confirmatory(results: pd.DataFrame) -> None:
    named = set(results["family"].dropna())
    confirmatory = {name for name in named if name.startswith("confirmatory")}
    assert confirmatory == {
        *(
            f"confirmatory: {metric} by {kind} (random signs)"
            for metric in ("heterogeneity", "heterogeneity_within_classes")
            for kind in ("group", "intersection")
        ),
        "confirmatory: accuracy overall (holm)",
        "confirmatory: accuracy by group (holm)",
        "confirmatory: accuracy by intersection (holm)",
        "confirmatory: recall by class (holm)",
    }


def test_a_family_holds_all_single_columns_and_intersections_are_their_own(
    results: pd.DataFrame,
) -> None:
    groups = results[(results["metric"] == "accuracy") & (results["by"] == "group")]
    single = groups[~groups["group"].str.contains("&")]
    crossed = groups[groups["group"].str.contains("&")]
    inside = single[single["family"].notna()]
    assert set(inside["family"]) == {"confirmatory: accuracy by group (holm)"}
    # 2 sexes and 10 sites; not the two small ones, not the missing one
    assert set(inside["n_family"]) == {12}
    assert len(inside) == 12
    assert crossed["family"].dropna().nunique() == 1
    assert set(crossed["n_family"].dropna()) == {int((crossed["n"] >= 10).sum())}


def test_small_groups_stay_outside(results: pd.DataFrame) -> None:
    for group in ("site=tiny", "site=rare"):
        found = row(results, "accuracy", "group", group=group)
        assert found["status"] == "small_group: n < 10"
        assert pd.isna(found["family"])
        assert pd.isna(found["n_family"])
        assert np.isnan(found["p_adjusted"])
        assert found["p_value"] <= 1  # its own test is shown


def test_membership_depends_on_sizes_not_on_results() -> None:
    """Other predictions, same labels and groups: every rate family has the same members."""
    table, other = with_small_groups(), with_small_groups(41)
    changed = Predictions(table.label, table.dense, other.small, table.groups)
    rates = ["accuracy", "error_rate", "recall", "fnr", "fpr", "selection_rate"]
    families = []
    for t in (table, changed):
        frame = audited(t).results
        frame = frame[frame["metric"].isin(rates) & (frame["by"] != "overall")]
        families.append(frame[["metric", "by", "group", "class", "family", "n_family"]])
    pd.testing.assert_frame_equal(*families)


def test_simultaneous_limits_are_tango_at_one_z_for_the_family(results: pd.DataFrame) -> None:
    """The z of the largest of 12 deviations: between one test's 1.96 and Bonferroni's 2.87."""
    from fairweight.auditing.intervals.proportion import tango_at, tango_test

    table = with_small_groups()
    right = [np.array(p) == np.array(table.label) for p in (table.dense, table.small)]
    site = np.array(table.groups["site"], dtype=object)
    found = []
    for level in ("s03", "s07"):
        here = site == level
        lost, gained = (right[0] & ~right[1])[here].sum(), (~right[0] & right[1])[here].sum()
        one = row(results, "accuracy", "group", group=f"site={level}")
        z = float(tango_test(here.sum(), lost, gained, one["sim_low"]))
        expected = tango_at(here.sum(), lost, gained, z)
        np.testing.assert_allclose([one["sim_low"], one["sim_high"]], expected, atol=1e-9)
        found.append(z)
    assert found[0] == pytest.approx(found[1], abs=1e-6)
    assert 2.3 < found[0] < 2.88


def test_exploratory_rates_are_limited_at_alpha_over_the_family(results: pd.DataFrame) -> None:
    """Selection rate by class: every example counts in every row, so no signs are drawn."""
    from fairweight.auditing.intervals.proportion import tango

    table = with_small_groups()
    classes = sorted(set(table.label))
    cls = classes[0]
    before, after = (np.array(p) == cls for p in (table.dense, table.small))
    one = row(results, "selection_rate", "class", cls=cls)
    counts = len(table.label), (before & ~after).sum(), (~before & after).sum()
    expected = tango(*counts, 0.05 / one["n_family"])
    np.testing.assert_allclose([one["sim_low"], one["sim_high"]], expected, atol=1e-12)


def test_each_variant_is_its_own_family() -> None:
    table, other = random_table(1, 200), random_table(2, 200)
    models = {"dense": list(table.dense), "one": list(table.small), "two": list(other.small)}
    groups = {k: list(v) for k, v in table.groups.items()}
    frame = fw.audit(list(table.label), models, sensitive_features=groups, n_boot=20).results
    sizes = frame[(frame["metric"] == "accuracy") & (frame["by"] == "group")]
    assert (sizes.groupby("variant")["n_family"].max() == 5).all()


def test_power_uses_the_family_and_never_the_rows_own_result() -> None:
    table = with_small_groups()
    audit = audited(table)
    power = audit.power
    sites = power[power["group"].isin([f"site=s{i:02d}" for i in range(10)])]
    assert set(sites["n_family"]) == {12}
    pooled = np.mean(
        (np.array(table.dense) == np.array(table.label))
        != (np.array(table.small) == np.array(table.label))
    )
    np.testing.assert_allclose(power["discordance"], pooled, atol=1e-12)
    # equal n, equal least detectable shift, whatever happened in the group
    by_n = sites.groupby("n")["min_detectable_shift"].nunique()
    assert (by_n == 1).all()
    large = power[power["by"] == "overall"].iloc[0]
    assert large["min_detectable_shift"] < sites["min_detectable_shift"].min()


CONSTANT = {
    "weights": {"weight": "w"},
    "clusters": {"cluster": "person"},
    "weights and clusters": {"weight": "w", "cluster": "person"},
    "tasks": {"task": "attribute"},
    "nothing more": {},
}


@pytest.mark.parametrize(("seeds", "more"), crossed([1, 3], CONSTANT, every=2))
def test_one_label_alone(seeds: int, more: str) -> None:
    """Every example is a 1: dense errs on every 10th of 120, int8 on every 4th, 90 − 108 = −15 %.

    There are no negatives, so FPR has no denominator anywhere and not one row by group and class.
    """
    i = np.arange(120)
    parts = [
        pd.DataFrame(
            {"example_id": i, "label": 1, "variant": variant, "seed": seed,
             "prediction": np.where((i + seed) % every == 0, 0, 1),
             "sex": np.where(i % 2 == 0, "F", "M"), "person": i // 4, "w": 1.0}
        )
        for variant, every in (("dense", 10), ("int8", 4))
        for seed in range(seeds)
    ]  # fmt: skip
    table = pd.concat(parts)
    if more == "tasks":  # the second one has two labels
        other = table.assign(attribute="young", label=table["example_id"] // 60)
        table = pd.concat([table.assign(attribute="smiling"), other])
    made = fw.audit_table(table, groups=["sex"], n_boot=20, **CONSTANT[more]).results
    own = made[made["task"] == "smiling"] if more == "tasks" else made
    overall = own[(own["by"] == "overall") & (own["metric"] == "accuracy")]
    assert overall["shift"].to_numpy() == pytest.approx(-0.15, abs=1e-12)
    false_positives = own[own["metric"] == "fpr"]
    assert len(false_positives)
    assert "group*class" not in set(false_positives["by"])
    assert false_positives["shift"].isna().all()
    assert false_positives["status"].str.startswith("not_estimable: ").all()
    crossed = own[(own["metric"] == "recall") & (own["by"] == "group*class")]
    assert set(crossed["group"]) == {"sex=F", "sex=M"}


def test_a_class_harmed_in_any_member_never_vanishes_from_cev() -> None:
    y = np.repeat([0, 1, 2], 100)
    rng = np.random.default_rng(1)
    dense = np.where((y > 0) & (rng.random(300) < 0.1), (y + 1) % 3, y)
    harmed = np.where((y == 0) & (np.arange(300) % 5 < 2), 1, dense)
    audit = fw.audit(
        y,
        {"dense": np.stack([dense] * 3, 1), "small": np.stack([dense, harmed, harmed], 1)},
        n_boot=100,
    )
    assert "zero baseline in 0" in row(audit.results, "cev")["status"]
    assert any("'0' (FNR +26.67" in note for note in audit.notes)
