"""An audit of a counted table has every number of the audit of its single examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.crosses import crossed

import fairweight as fw
from fairweight.api import Audit
from fairweight.tables.spec import TableSpec, sources_of

FRAMES = ("results", "per_seed", "confusion", "reliability", "data", "power", "concentration",
          "group_error", "bounds")  # fmt: skip


def single_examples(n: int = 600, seeds: int = 1) -> pd.DataFrame:
    """Three classes, two groups, forty persons, three weights, scores of one decimal place."""
    rng = np.random.default_rng(11)
    label = rng.integers(0, 3, n)
    table = {"label": label, "sex": rng.choice(["F", "M"], n), "person": rng.integers(0, 40, n)}
    table["w"] = rng.choice([0.5, 1.0, 2.5], n)
    for name, error in (("dense", 0.15), ("int8", 0.25)):
        for seed in range(seeds):
            wrong = rng.random(n) < error
            table[f"prediction:{name}:{seed}"] = np.where(wrong, (label + 1) % 3, label)
            table[f"score:{name}:{seed}"] = np.round(0.4 + 0.5 * rng.random(n) - 0.3 * wrong, 1)
    return pd.DataFrame(table)


def grouped(table: pd.DataFrame, *, keep: list[str]) -> pd.DataFrame:
    """`GROUP BY` of these columns with a count, in another order, and with rows of nobody."""
    named = [
        c for c in map(str, table) if c.startswith("prediction:") or c in ("label", "sex", *keep)
    ]
    counted = table.groupby(named, sort=False).size().reset_index(name="freq")
    nobody = counted.iloc[:3].assign(freq=0, sex=["X", "Y", "Z"])
    return pd.concat([nobody, counted.sample(frac=1, random_state=5)], ignore_index=True)


def expanded(counted: pd.DataFrame) -> pd.DataFrame:
    rows = counted.loc[counted.index.repeat(counted["freq"])].drop(columns="freq")
    return rows.assign(example_id=np.arange(len(rows))).reset_index(drop=True)


def assert_same(left: Audit, right: Audit) -> None:
    assert left.result.n_examples == right.result.n_examples
    for name in FRAMES:
        one, other = getattr(left, name), getattr(right, name)
        pd.testing.assert_frame_equal(one, other, rtol=1e-12, atol=1e-12, obj=name)


@pytest.mark.parametrize(
    ("seeds", "keep"), crossed([1, 3], ["", "w", "person", "person w"], every=2)
)
def test_every_number_is_that_of_the_expanded_table(seeds: int, keep: str) -> None:
    counted = grouped(single_examples(seeds=seeds), keep=keep.split())
    options: dict[str, Any] = {"groups": ["sex"], "n_boot": 40, "random_state": 3}
    options |= {{"w": "weight", "person": "cluster"}[name]: name for name in keep.split()}
    assert counted["freq"].sum() == 600
    assert_same(
        fw.audit_table(counted, count="freq", **options),
        fw.audit_table(expanded(counted), **options),
    )


def test_scores_too() -> None:
    table = single_examples()
    counted = grouped(table, keep=[c for c in map(str, table) if c.startswith("score:")])
    assert (counted["freq"] > 1).any()
    made = fw.audit_table(counted, count="freq", groups=["sex"], n_boot=40)
    assert_same(made, fw.audit_table(expanded(counted), groups=["sex"], n_boot=40))
    assert len(made.reliability)


def test_by_hand() -> None:
    """Of 100 examples dense has 90 right and int8 60 + 5: it loses 30 and gains 5, −25 points."""
    counted = pd.DataFrame(
        {
            "label": ["a", "a", "a", "b"],
            "pred_dense": ["a", "a", "b", "a"],
            "pred_int8": ["a", "b", "a", "a"],
            "n": [60, 30, 5, 5],
        }
    )
    made = fw.audit_table(counted, count="n", n_boot=20)
    row = made.overall.query("metric == 'accuracy'").iloc[0]
    assert (row["n"], row["baseline"], row["compressed"]) == (100, 0.90, 0.65)
    assert row["shift"] == pytest.approx(-0.25, abs=1e-15)
    by_class = made.by_class.query("metric == 'recall'").set_index("class")
    # Of 95 a's dense has 90 right, int8 65; of five b's neither has any.
    assert by_class.loc["a", "shift"] == pytest.approx(-25 / 95, abs=1e-15)
    assert (by_class.loc["b", "n"], by_class.loc["b", "baseline"]) == (5, 0.0)


def test_explanations_of_counts_are_those_of_a_cube(tmp_path: Any) -> None:
    from contextlib import closing

    from fairweight.auditing.counts.cube_file import write_cube
    from fairweight.auditing.counts.group_by import count
    from fairweight.tables.align import align

    counted = grouped(single_examples(), keep=[])
    with closing(align(TableSpec(sources_of(counted), count="freq", groups=["sex"]))) as aligned:
        write_cube(count(aligned), tmp_path / "c.parquet", groupings=["sex"], baseline="dense")
    options: dict[str, Any] = {"explain": ["slices"], "n_boot": 20}
    one = fw.audit_table(counted, count="freq", groups=["sex"], **options).explanations
    other = fw.audit_table(str(tmp_path / "c.parquet"), **options).explanations
    assert one.keys() == other.keys()
    for name, table in one.items():
        pd.testing.assert_frame_equal(table, other[name], obj=name)
