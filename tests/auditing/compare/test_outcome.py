"""Outcomes: 0 or 1 give the rows of predictions, numbers those of section 12 of the rules."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from tests.house import ROOT

import fairweight as fw
from fairweight.auditing.intervals.ratio import RatioExcess, RatioShift, RatioSums, UsualChange
from fairweight.errors import InputError

KEYS = ("metric", "family")


def models(n: int = 400) -> pd.DataFrame:
    """Right and wrong of two models, a group column and clusters."""
    rng = np.random.default_rng(3)
    dense = (rng.random(n) < 0.8).astype(int)
    int8 = np.where(rng.random(n) < 0.1, 1 - dense, dense)
    return pd.DataFrame({
        "example_id": np.arange(n), "dense": dense, "int8": int8,
        "site": rng.choice(list("abc"), n), "person": np.arange(n) // 8,
        "w": rng.choice([1.0, 2.0], n),
    })  # fmt: skip


def long(wide: pd.DataFrame) -> pd.DataFrame:
    kept = [c for c in wide.columns if c not in ("dense", "int8")]
    return pd.concat(
        [wide[kept].assign(variant=v, ok=wide[v].astype(float)) for v in ("dense", "int8")]
    )


@pytest.mark.parametrize("more", [{}, {"cluster": "person"}, {"weight": "w"}])
@pytest.mark.parametrize("better", ["higher", "lower"])
def test_the_rows_are_those_of_predictions(more: dict[str, str], better: str) -> None:
    wide = models()
    best = int(better == "higher")
    classes = wide.rename(columns={"dense": "pred_dense", "int8": "pred_int8"}).assign(label=best)
    if not best:  # the other class must occur: an error rate has no label that is 1
        classes["label"] = 0
    asked: dict[str, Any] = {"groups": "site", "n_boot": 20, **more}
    counted = fw.audit_table(classes, **asked).results
    made = fw.audit_table(long(wide), outcome="ok", better=better, **asked).results
    name = "accuracy" if best else "error_rate"
    one = counted[(counted["metric"] == name) & counted["by"].isin(["overall", "group"])]
    other = made[made["metric"] == ("correct" if best else "failed")]
    compared = [c for c in one.columns if c not in (*KEYS, "p_adjusted")]
    if best:
        compared.append("p_adjusted")  # an error rate is exploratory among classes
    pd.testing.assert_frame_equal(
        one[compared].reset_index(drop=True), other[compared].reset_index(drop=True)
    )


def test_nothing_needs_classes() -> None:
    made = fw.audit_table(long(models()), outcome="ok", better="higher", groups="site", n_boot=20)
    assert set(made.results["metric"]) == {
        "correct", "flips", "harmful_flips", "helpful_flips", "concentration", "heterogeneity",
    }  # fmt: skip
    assert made.results["class"].isna().all()
    assert made.result.classes == ()
    assert not len(made.confusion)
    assert set(made.data["by"]) == {"overall", "group"}


def test_it_is_stored_and_read_again(tmp_path: Path) -> None:
    made = fw.audit_table(long(models()), outcome="ok", better="higher", groups="site", n_boot=20)
    made.save(tmp_path / "audit")
    again = fw.load(tmp_path / "audit")
    assert again.result.outcome == made.result.outcome
    pd.testing.assert_frame_equal(again.results, made.results)


def test_positions_are_right_or_wrong_with_the_position_as_a_group() -> None:
    rng = np.random.default_rng(5)
    n = 200
    gold, says = rng.choice(list("ABCD"), n), rng.choice(list("ABCD"), (2, n))
    table = pd.DataFrame({
        "example_id": range(n), "label": gold, "pred_dense": np.where(rng.random(n) < .7, gold,
        says[0]), "pred_int8": np.where(rng.random(n) < .6, gold, says[1]),
        "subject": rng.choice(["law", "art"], n),
    })  # fmt: skip
    made = fw.audit_table(table, labels_are="positions", n_boot=20)
    assert made.result.groupings == ("subject", "label")
    overall = made.overall.query("metric == 'correct'").iloc[0]
    assert overall["baseline"] == (table["pred_dense"] == gold).mean()
    by = made.by_group.query("metric == 'correct'").set_index("group")
    of_a = gold == "A"
    assert by.loc["label=A", "compressed"] == (table["pred_int8"] == gold)[of_a].mean()


def test_without_labels_only_changes_are_counted() -> None:
    wide = models().rename(columns={"dense": "pred_dense", "int8": "pred_int8"})
    with pytest.raises(InputError, match="--unlabelled"):
        fw.audit_table(wide)
    made = fw.audit_table(wide, unlabelled=True, groups="site", n_boot=20)
    assert set(made.results["metric"]) == {"flips"}
    row = made.overall.iloc[0]
    assert row["compressed"] == (wide["pred_dense"] != wide["pred_int8"]).mean()
    assert row["ci_low"] < row["compressed"] < row["ci_high"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ok": np.nan}, "missing or infinite in 400 rows"),
        ({"ok": "yes"}, "must hold numbers"),
    ],
)
def test_what_is_no_outcome_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        fw.audit_table(long(models()).assign(**change), outcome="ok", better="higher")


def test_one_column_of_a_wide_table_is_one_model() -> None:
    with pytest.raises(InputError, match="--outcome dense=COL --outcome int8=COL"):
        fw.audit_table(models(), outcome="dense", better="higher")


# --- numbers ------------------------------------------------------------------------------------


def words(n: int = 600, seed: int = 4) -> pd.DataFrame:
    """Word errors of two models, words, a group column that crosses clusters, weights."""
    rng = np.random.default_rng(seed)
    size = rng.integers(5, 40, n).astype(float)
    dense = rng.poisson(0.05 * size).astype(float)
    return pd.DataFrame({
        "example_id": np.arange(n), "words": size, "dense": dense,
        "int8": dense + rng.poisson(0.02 * size) * (rng.random(n) < 0.3),
        "site": rng.choice(list("abc"), n, p=[0.2, 0.3, 0.5]), "person": np.arange(n) // 10,
        "w": rng.choice([1.0, 2.0], n),
    })  # fmt: skip


def audited(table: pd.DataFrame, **more: Any) -> fw.Audit:
    asked: dict[str, Any] = {"better": "lower", "denominator": "words", "groups": "site"}
    outcome = {"dense": "dense", "int8": "int8"}
    return fw.audit_table(table, outcome=outcome, **{**asked, **more})


def rows_of(audit: fw.Audit, metric: str = "cost") -> pd.DataFrame:
    return audit.results[audit.results["metric"] == metric].set_index("group")


@pytest.mark.parametrize("clusters", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_limits_are_those_of_the_units_of_each_row(clusters: bool, weighted: bool) -> None:
    table = words()
    weight = table["w"] if weighted else 1.0
    more = {"cluster": "person"} if clusters else {}
    more |= {"weight": "w"} if weighted else {}
    made = rows_of(audited(table, **more))
    scaled = pd.DataFrame({
        "b": table["dense"] * weight, "c": table["int8"] * weight, "d": table["words"] * weight,
        "unit": table["person"] if clusters else table["example_id"], "plain": table["words"],
    })  # fmt: skip

    def units(here: pd.Series[bool]) -> RatioSums:
        part = scaled[here].groupby("unit").sum()
        found = RatioSums.of_units(part["b"], part["c"], part["d"], part["d"])
        examples = np.array([float(here.sum())])
        den = np.array([float(table.loc[here, "words"].sum())])
        return RatioSums(found.n, found.changed, found.products, examples, den)

    usual = UsualChange.of(units(table["site"].notna()).moments())
    for site in "abc":
        here = table["site"] == site
        group, others = (RatioShift(units(part).moments(), usual) for part in (here, ~here))
        row = made.loc[f"site={site}"]
        low, high = group.limits(0.05)
        np.testing.assert_allclose([row["ci_low"], row["ci_high"]], [low[0], high[0]], rtol=1e-9)
        assert row["p_value"] == pytest.approx(float(group.p_value()[0]))
        if not clusters:
            excess = RatioExcess(group, others)
            low, high = excess.limits(0.05)
            np.testing.assert_allclose(
                [row["excess_low"], row["excess_high"]], [low[0], high[0]], rtol=1e-9
            )


def test_values_are_ratios_of_sums() -> None:
    table = words()
    row = rows_of(audited(table)).loc["site=a"]
    own = table[table["site"] == "a"]
    assert row["baseline"] == pytest.approx(own["dense"].sum() / own["words"].sum())
    assert row["churn"] == pytest.approx((own["dense"] != own["int8"]).mean())
    assert row["baseline_low"] < row["baseline"] < row["baseline_high"]


def test_two_levels_are_one_question_also_across_clusters() -> None:
    table = words().assign(site=lambda t: np.where(t["site"] == "c", "c", "a"))
    made = rows_of(audited(table, cluster="person"))
    assert made.loc["site=a", "excess_p"] == pytest.approx(made.loc["site=c", "excess_p"])
    assert made.loc["site=a", "excess_p_adjusted"] == made.loc["site=a", "excess_p"]


def test_arrays_and_tables_give_the_same() -> None:
    table = words()
    arrays = fw.audit(
        outcomes={"dense": table["dense"], "int8": table["int8"]},
        better="lower",
        denominator=table["words"],
        sensitive_features={"site": table["site"]},
    )
    one, other = rows_of(arrays), rows_of(audited(table))
    pd.testing.assert_frame_equal(one, other)
    with pytest.raises(InputError, match="either y_true= and y_pred="):
        fw.audit(outcomes={"dense": [1.0]}, y_pred={"dense": [1]}, better="lower")


def test_without_a_margin_nothing_is_ruled_out_and_a_range_gives_one() -> None:
    made = rows_of(audited(words()))
    assert made["loss_ruled_out"].isna().all()
    made = rows_of(audited(words(), margin=0.5))
    assert made["loss_ruled_out"].all()
    scores = pd.DataFrame({"dense": [4.0] * 300, "int8": [4.0] * 300, "site": ["a"] * 300})
    asked: dict[str, Any] = {"denominator": None, "better": "higher"}
    nothing = rows_of(audited(scores, **asked), "outcome").iloc[0]
    assert nothing["status"] == "not_estimable: too few changed values (0)"
    ranged = audited(scores, range=(1, 5), **asked)
    row = rows_of(ranged, "outcome").iloc[0]
    # Identical scores from 1 to 5 on 300 examples: 4 × Tango's limits of 0 changes.
    assert (row["status"], round(row["ci_high"], 3)) == ("ok", 0.051)
    assert ranged.result.provenance.options["margin"] == pytest.approx(0.08)


def test_denominators_of_each_model() -> None:
    table = words().assign(d2=lambda t: t["words"] + (t["example_id"] % 3 == 0))
    made = rows_of(audited(table, denominator={"dense": "words", "int8": "d2"}))
    part = table[table["site"] == "b"]
    expected = part["int8"].sum() / part["d2"].sum()
    assert made.loc["site=b", "compressed"] == pytest.approx(expected)
    found = RatioSums.of_units(table["dense"], table["int8"], table["words"], table["d2"])
    usual = UsualChange.of(found.moments())
    low, high = RatioShift(found.moments(), usual).limits(0.05)
    row = made.loc[made.index.isna()].iloc[0]
    np.testing.assert_allclose([row["ci_low"], row["ci_high"]], [low[0], high[0]], rtol=1e-9)


def test_populations_and_repeats() -> None:
    table = words()
    rng = np.random.default_rng(0)
    runs = {
        name: np.stack([table[name] + rng.poisson(0.05, len(table)) for _ in range(4)], axis=1)
        for name in ("dense", "int8")
    }
    asked: dict[str, Any] = {"better": "lower", "denominator": table["words"]}
    both = fw.audit(outcomes=runs, **asked).results
    assert set(both["scope"]) == {"model", "method"}
    assert (both["status"] == "ok").all()
    means = {name: values.mean(axis=1) for name, values in runs.items()}
    averaged = rows_of(fw.audit(outcomes=means, **asked)).iloc[0]
    repeated = fw.audit(outcomes=runs, members="repeated", **asked).results
    assert set(repeated["scope"]) == {"model"}
    row = repeated.iloc[0]
    for name in ("shift", "ci_low", "ci_high"):
        assert row[name] == pytest.approx(averaged[name])


def test_means_over_tasks() -> None:
    table = words().assign(task=lambda t: t["example_id"] % 2)
    made = audited(table).results
    rows = made[(made["metric"] == "cost") & (made["by"] == "overall")].set_index("task")
    mean = rows[rows.index.isna()].iloc[0]
    assert mean["shift"] == pytest.approx(rows.loc[["0", "1"], "shift"].mean())
    assert mean["n"] == len(table)
    assert mean["ci_low"] < mean["shift"] < mean["ci_high"]


def test_a_gate_in_the_unit_of_the_outcome(tmp_path: Path) -> None:
    audit = audited(words(3000))
    rules = [{"metric": "outcome", "by": "group", "margin": 0.05}]
    verdict = audit.gate({"rule": rules})
    assert verdict.outcome == "pass"
    assert all("stays unseen" in reason for reason in verdict.rows["reason"])
    assert audit.gate({"rule": [{**rules[0], "margin": 1e-4}]}).outcome != "pass"
    kept = {"rule": [{"metric": "cost", "by": "overall", "recovery": 0.5}]}
    before = audit.gate(kept).rows
    audit.save(tmp_path / "audit")
    again = fw.load(tmp_path / "audit").gate(kept).rows
    pd.testing.assert_frame_equal(before, again)
    row = before.iloc[0]
    table = words(3000)
    found = RatioSums.of_units(table["dense"], table["int8"], table["words"], table["words"])
    rho = 1.5  # at most half of the baseline may be added
    low, high = RatioShift(found.moments(rho), UsualChange.of(found.moments(rho))).limits(0.1)
    moved = (rho - 1) * table["dense"].sum() / table["words"].sum()
    assert (row["low"], row["high"]) == (
        pytest.approx(low[0] + moved), pytest.approx(high[0] + moved)
    )  # fmt: skip


def test_few_skewed_examples_are_no_pass() -> None:
    rng = np.random.default_rng(1)
    dense = rng.exponential(1.0, 120)
    losses = {"dense": dense, "int8": dense + 0.01 * np.exp(2 * rng.standard_normal(120))}
    audit = fw.audit(outcomes=losses, better="lower")
    verdict = audit.gate({"rule": [{"metric": "cost", "by": "overall", "margin": 5.0}]})
    assert verdict.outcome == "cannot tell"
    assert "fewer than 300 examples" in verdict.rows["reason"].iloc[0]


# --- real data ----------------------------------------------------------------------------------


def real(name: str, where: str = "true") -> pd.DataFrame:
    folder = Path(os.environ.get("FAIRWEIGHT_REAL", ROOT.parent / "shared" / "real")) / name
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}: set FAIRWEIGHT_REAL to run this test")
    path = folder / "predictions.parquet"
    return duckdb.sql(f"SELECT * FROM '{path}' WHERE {where}").df().drop(columns="task")


def values(audit: fw.Audit) -> list[float]:
    rows = audit.overall[audit.overall["metric"] == audit.result.primary]
    return [round(float(v), 4) for v in (rows["baseline"].iloc[0], *rows["compressed"])]


def test_multiple_choice_and_extraction_of_a_quantised_llama() -> None:
    table = real("mmlu_ollama_fp16_q8_q4", "task = 'mmlu'")
    asked: dict[str, Any] = {"id": "id", "variant": "arm", "outcome": "score", "better": "higher"}
    with pytest.raises(InputError, match="high_school_mathematics::d3f3d532"):
        fw.audit_table(table, groups="subject", **asked)
    once = table.sort_values("row").drop_duplicates(["arm", "id"])
    assert values(fw.audit_table(once, groups="subject", **asked)) == [0.5852, 0.5872, 0.5691]
    table = real("mmlu_ollama_fp16_q8_q4", "task = 'extraction'")
    made = fw.audit_table(table, groups=[], range=(0, 1), **asked)
    assert values(made) == [0.6141, 0.6138, 0.5637]


def test_word_error_rates_of_a_quantised_whisper() -> None:
    table = real("whisper_large_v3_ggml_librispeech")
    made = fw.audit_table(
        table, id="id", variant="arm", outcome="wer", better="lower", groups="gender",
        cluster="speaker",
    )  # fmt: skip
    assert values(made) == [0.0535, 0.0525, 0.0519, 0.0561]
    rows = rows_of(made)
    assert set(rows["n_clusters"]) == {20, 40}
    last = rows[(rows["variant"] == "q4_0") & rows.index.isna()].iloc[0]
    assert last["ci_low"] > 0


def test_reasoning_models_in_3_bits_lose_overall_and_nothing_is_shown_by_level() -> None:
    table = real("math500_r1distill_3bit")
    for model, expected in (("r1d", [0.8, 0.34]), ("dsr", [0.82, 0.54])):
        made = fw.audit_table(
            table[table["model"] == model], id="id", variant="arm", outcome="correct_simple",
            better="higher", groups=["subject", "level"],
        )  # fmt: skip
        assert values(made) == expected
        rows = made.by_group[made.by_group["metric"] == "correct"]
        assert not (rows["excess_p_adjusted"] <= 0.05).any()


def test_churn_of_compressed_copies_without_labels() -> None:
    table = real("codebert_devign_compress")
    made = fw.audit_table(table, id="id", variant="arm", prediction="pred", unlabelled=True)
    churn = made.overall.set_index("variant")["compressed"].round(3)
    assert churn[["quant_int8", "quant_int4", "distilbert"]].tolist() == [0.008, 0.104, 0.291]
