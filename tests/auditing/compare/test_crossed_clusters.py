"""Clusters of two columns: both people of a pair bind an example to others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fairweight as fw
from fairweight.auditing.intervals.multiplicity import holm
from fairweight.base.types import Floats
from fairweight.errors import InputError
from fairweight.tables.spec import TableSpec, sources_of

BOTH: dict[str, Any] = {"cluster": ["probe", "gallery"], "groups": ["sex", "site"], "n_boot": 20}


def verification(seed: int = 1, n: int = 1_500, people: tuple[int, int] = (40, 50)) -> pd.DataFrame:
    """Pairs of people; some people's pairs are lost by the compressed model more often."""
    rng = np.random.default_rng(seed)
    probe, gallery = (rng.integers(0, size, n) for size in people)
    hard = sum(rng.normal(size=size)[at] for size, at in zip(people, (probe, gallery), strict=True))
    label = rng.integers(0, 2, n)
    dense = np.where(rng.random(n) < 0.85, label, 1 - label)
    lost = rng.random(n) < 0.02 + 0.15 * (hard > 1.2)
    score = rng.normal(size=n)
    return pd.DataFrame({
        "example_id": np.arange(n), "label": label, "pred_dense": dense,
        "pred_int8": np.where(lost, 1 - dense, dense), "probe": [f"p{i}" for i in probe],
        "gallery": [f"g{i}" for i in gallery], "sex": rng.choice(["f", "m"], n),
        "site": rng.choice(list("xyz"), n), "w": rng.choice([1.0, 2.0], n), "dense": score,
        "int8": score + 0.1 * hard + rng.normal(0, 0.2, n), "words": rng.integers(5, 20, n),
    })  # fmt: skip


def by_hand(table: pd.DataFrame, x: Floats) -> float:
    """V_a + V_b − V_ab of the mean of x: totals of residuals by name, G / (G − 1) each."""
    parts = []
    for names in (["probe"], ["gallery"], ["probe", "gallery"]):
        totals = pd.Series(x - x.mean()).groupby([table[n].to_numpy() for n in names]).sum()
        g = len(totals)
        parts.append(g / (g - 1) * float((totals**2).sum()) / len(x) ** 2)
    return max(parts[0] + parts[1] - parts[2], parts[0], parts[1])


def test_a_shift_by_hand() -> None:
    table = verification(n=4_000)
    x = (table["pred_int8"] == table["label"]).to_numpy(float)
    x -= (table["pred_dense"] == table["label"]).to_numpy(float)
    row = fw.audit_table(table, **BOTH).overall.query("metric == 'accuracy'").iloc[0]
    error = by_hand(table, x) ** 0.5
    t = stats.t.ppf(0.975, 39)
    assert row["shift"] == pytest.approx(x.mean())
    assert row["n_clusters"] == 40
    # The wider of this and Tango's limits on the effective size; here t is the wider below 0.
    assert row["ci_high"] == pytest.approx(x.mean() + t * error)
    assert row["ci_low"] <= x.mean() - t * error + 1e-12
    assert row["interval"].startswith("wider of linearised t over two columns of clusters")


def test_arrays_take_two_columns_of_clusters() -> None:
    table = verification()
    expected = fw.audit_table(table, **BOTH)
    people = table[["probe", "gallery"]]
    for cluster in (people, dict(people), people.to_numpy()):
        made = fw.audit(
            table["label"], {"dense": table["pred_dense"], "int8": table["pred_int8"]},
            sensitive_features=table[["sex", "site"]], cluster=cluster, n_boot=20,
        )  # fmt: skip
        pd.testing.assert_frame_equal(made.results, expected.results)
    with pytest.raises(InputError, match="cluster has 3 columns; give one, or two"):
        fw.audit([0, 1], {"dense": [0, 1], "int8": [0, 1]}, cluster=np.zeros((2, 3)))


def test_neither_column_alone_is_wide_enough() -> None:
    table = verification(n=4_000)

    def width(cluster: Any) -> float:
        row = fw.audit_table(table, **{**BOTH, "cluster": cluster}).overall.iloc[0]
        return float(row["ci_high"] - row["ci_low"])

    alone = [width("probe"), width("gallery"), width(None)]
    assert width(["probe", "gallery"]) > max(alone) > min(alone)


def test_families_are_corrected_by_holm() -> None:
    audit = fw.audit_table(verification(), **BOTH)
    rows = audit.by_group.query("metric == 'accuracy'")
    p = rows["excess_p"].to_numpy(float)
    np.testing.assert_allclose(rows["excess_p_adjusted"], holm(p))
    # Simultaneous limits are those at 5 % over the five groups.
    wide = fw.audit_table(verification(), **BOTH, alpha=0.01).by_group.query("metric == 'accuracy'")
    np.testing.assert_allclose(rows["sim_low"], wide["ci_low"])
    np.testing.assert_allclose(rows["excess_sim_high"], wide["excess_high"])
    hetero = audit.results.query("metric == 'heterogeneity'").set_index("group")
    assert hetero.loc["site", "p_adjusted"] == pytest.approx(
        rows.set_index("group").filter(like="site", axis=0)["excess_p_adjusted"].min()
    )
    assert hetero.loc["sex", "p_value"] == pytest.approx(p[0])
    lead = audit.result.lead
    tests = lead["n_tests"].iloc[0]
    assert tests == len(lead) == 15
    np.testing.assert_allclose(lead["p_lead"], holm(_p_of(lead, audit)))


def _p_of(lead: pd.DataFrame, audit: fw.Audit) -> Floats:
    """The p of every line of the lead, from the table of results."""
    found = []
    rows = audit.results
    for line in lead.itertuples():
        metric = "recall" if line.by == "class" else "accuracy"
        own = rows[(rows["metric"] == metric) & (rows["by"] == line.by)]
        for name, value in (("group", line.group), ("class", lead.loc[line.Index, "class"])):
            own = own[own[name] == value] if isinstance(value, str) else own
        found.append(own["p_value" if line.quantity == "shift" else "excess_p"].iloc[0])
    return np.array(found, dtype=float)


def test_what_is_drawn_is_not_estimable() -> None:
    table = verification().assign(score_dense=0.5, score_int8=0.6)
    made = fw.audit_table(table, **BOTH).results
    drawn = made[made["metric"].isin(["kappa", "precision", "cev", "brier", "group_gap"])]
    drawn = drawn[~drawn["status"].str.contains("score")]
    assert len(drawn) > 5
    assert drawn[["ci_low", "ci_high", "p_value"]].isna().all(axis=None)
    assert (drawn["status"] != "ok").all()
    kappa = made[(made["metric"] == "kappa") & (made["by"] == "overall")].iloc[0]
    assert kappa["status"] == "not_estimable: two cluster columns"
    assert np.isfinite(kappa["shift"])
    within = made[made["metric"] == "heterogeneity_within_classes"]
    assert set(within["status"]) == {"not_estimable: two cluster columns"}
    policy = {"rule": [{"metric": "kappa", "by": "overall", "margin": 0.5}]}
    verdict = fw.gate(
        TableSpec(sources_of(table), cluster=BOTH["cluster"]), policy, fw.AuditOptions(n_boot=20)
    )
    assert verdict.outcome == "cannot tell"


def test_numbers_by_hand() -> None:
    table = verification(n=3_000)
    outcome = {"dense": "dense", "int8": "int8"}
    made = fw.audit_table(table, outcome=outcome, better="higher", **BOTH)
    row = made.overall.iloc[0]
    x = (table["int8"] - table["dense"]).to_numpy(float)
    plain = by_hand(table, x) ** 0.5 * stats.t.ppf(0.975, 38)
    assert row["shift"] == pytest.approx(x.mean())
    assert row["n_clusters"] == 40
    # One pseudo-change and skewness widen the limits a little; clusters differ in size.
    for end in (row["ci_high"] - row["shift"], row["shift"] - row["ci_low"]):
        assert plain < end < 1.25 * plain
    rows = made.by_group.query("metric == 'outcome'")
    np.testing.assert_allclose(rows["excess_p_adjusted"], holm(rows["excess_p"].to_numpy(float)))
    # Two levels are one contrast, and p the level at which the limits touch 0.
    assert rows["excess_p"].iloc[0] == pytest.approx(rows["excess_p"].iloc[1])
    level = float(rows["p_value"].iloc[0])
    again = fw.audit_table(table, outcome=outcome, better="higher", alpha=level, **BOTH).by_group
    ends = again.query("metric == 'outcome'").iloc[0][["ci_low", "ci_high"]].astype(float)
    assert np.abs(ends).min() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("outcome", [None, {"dense": "dense", "int8": "int8"}])
@pytest.mark.parametrize("weight", [None, "w"])
def test_a_cube_gives_what_rows_give(
    outcome: dict[str, str] | None, weight: str | None, tmp_path: Path
) -> None:
    table = verification()
    asked = {**BOTH, "weight": weight}
    if outcome is None:
        table = table.drop(columns=["dense", "int8"])
    else:
        asked |= {"outcome": outcome, "better": "higher", "denominator": "words"}
    named = {name: value for name, value in asked.items() if name != "n_boot"}
    paths = []
    for place, part in enumerate((table[:700], table[700:])):
        paths.append(str(tmp_path / f"{place}.parquet"))
        fw.api.count(TableSpec(sources_of(part), **named), paths[-1])
    rows = fw.audit_table(table, **asked).results
    cube = fw.audit_table(paths, n_boot=20).results
    pd.testing.assert_frame_equal(
        rows.drop(columns="level"), cube.drop(columns="level"), rtol=1e-9, atol=1e-12
    )


def test_what_two_columns_cannot_do(tmp_path: Path) -> None:
    table = verification(n=600)
    spec = TableSpec(sources_of(table), cluster=BOTH["cluster"], groups=["sex"])
    for command in (
        lambda: fw.explain(spec),
        lambda: fw.choose(spec, objectives=["accuracy"]),
    ):
        with pytest.raises(InputError, match="two columns cannot be"):
            command()
    tasks = fw.audit_table(table, task="site", cluster=BOTH["cluster"], groups=["sex"], n_boot=20)
    assert tasks.results["task"].notna().all()
    assert any("No mean over tasks" in note for note in tasks.result.notes)
    same = table.assign(gallery=table["gallery"].str.replace("g", "p"))
    noted = fw.audit_table(same, cluster=BOTH["cluster"], groups=["sex"], n_boot=20).result.notes
    assert any("same name in both cluster columns" in note for note in noted)
    with pytest.raises(InputError, match="two different ones"):
        fw.audit_table(table, cluster=["probe", "probe"])


def test_populations_say_nothing_about_the_method() -> None:
    table = verification(n=800)
    rng = np.random.default_rng(0)
    predictions = {name: [f"{name}{k}" for k in range(3)] for name in ("dense", "int8")}
    made = pd.DataFrame({
        f"{name}{k}": np.where(rng.random(len(table)) < 0.03, 1 - table[f"pred_{name}"],
                               table[f"pred_{name}"])
        for name in predictions for k in range(3)
    })  # fmt: skip
    table = pd.concat([table[["example_id", "label", "probe", "gallery", "sex"]], made], axis=1)
    found = fw.audit_table(table, predictions=predictions, **{**BOTH, "groups": ["sex"]}).results
    accuracy = found[(found["metric"] == "accuracy") & (found["by"] == "overall")]
    states = dict(zip(accuracy["scope"], accuracy["status"], strict=True))
    assert states == {"model": "ok", "method": "not_estimable: two cluster columns"}
