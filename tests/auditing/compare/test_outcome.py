"""Outcomes that are 0 or 1: the rows that predictions give, and nothing that needs classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
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
@pytest.mark.parametrize("better", ["higher"])
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
