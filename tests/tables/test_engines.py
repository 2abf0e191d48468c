"""Frames that are counted where they are: the same cube as the rows themselves give."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.auditing.counts.test_outcome_sums import same

import fairweight as fw
from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.cube_file import read_cubes
from fairweight.auditing.counts.outcome_sums import EXPONENTS, PER_MODEL
from fairweight.errors import InputError
from fairweight.tables.spec import TableSpec


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """A long table: 240 examples of two variants, with a missing group and a missing prediction."""
    made = []
    for place in range(240):
        label = "cat" if place % 3 else "dog"
        for variant, wrong in (("dense", place % 11 == 0), ("int8", place % 7 == 0)):
            prediction: str | None = ("dog" if label == "cat" else "cat") if wrong else label
            if variant == "int8" and place == 100:
                prediction = None
            made.append({
                "example_id": place, "variant": variant, "label": label, "prediction": prediction,
                "sex": "Female" if place % 2 else "Male", "age": [None, "old", "young"][place % 3],
            })  # fmt: skip
    return pd.DataFrame(made)


def cells(source: Any, folder: Path, **more: Any) -> dict[tuple[Any, ...], int]:
    """The cube of a source, cell by cell: groups, label and predictions to a count."""
    out = folder / "cube.parquet"
    fw.count(TableSpec(source, **more), out)
    cube, baseline, groupings = read_cubes([str(out)])
    assert (baseline, groupings) == ("dense", ("sex", "age", "sex*age"))
    assert [member.variant for member in cube.members] == ["dense", "int8"]
    classes = (*cube.label_classes, *cube.other_classes)
    found = {}
    for place in range(cube.n_cells):
        groups = tuple(column.values[column.code[place]] for column in cube.columns)
        says = tuple(None if c < 0 else classes[c] for c in cube.prediction[place])
        found[*groups, classes[cube.label[place]], *says] = int(cube.count[place])
    out.unlink()
    assert sum(found.values()) == 240
    return found


GROUPS = ["sex", "age", "sex*age"]


@pytest.fixture(scope="module")
def expected(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[Any, int]:
    """By DuckDB, from the rows."""
    return cells(rows, tmp_path_factory.mktemp("rows"), groups=GROUPS)


def wide(rows: pd.DataFrame) -> pd.DataFrame:
    facts = rows[rows["variant"] == "dense"].drop(columns=["variant", "prediction"])
    says = rows.pivot(index="example_id", columns="variant", values="prediction").reset_index()
    return facts.merge(says, on="example_id")


def check_every_layout(
    held: Callable[[pd.DataFrame], Any], rows: pd.DataFrame, expected: dict[Any, int], folder: Path
) -> None:
    """Long, wide and one frame per model, as frames that `held` makes."""
    assert cells(held(rows), folder, groups=GROUPS) == expected
    columns = {"dense": "dense", "int8": "int8"}
    assert cells(held(wide(rows)), folder, groups=GROUPS, predictions=columns) == expected
    each = {
        name: held(rows[rows["variant"] == name].drop(columns="variant"))
        for name in ("dense", "int8")
    }
    assert cells(each, folder, groups=GROUPS) == expected


def check_refusals(held: Callable[[pd.DataFrame], Any], rows: pd.DataFrame, folder: Path) -> None:
    out = folder / "never.parquet"
    for changed, said in (
        (pd.concat([rows, rows.iloc[[7]]]), "the id 3 occurs 2 times"),
        (rows.drop(index=[8]), "do not have the same examples"),
        (rows.assign(label=rows["label"].where(rows.index != 9, "cow")), "label of the example 4"),
        (rows.drop(columns="sex"), "'sex'"),
    ):
        with pytest.raises(InputError, match=said):
            fw.count(TableSpec(held(changed), groups=GROUPS), out)
    assert not out.exists()


# --- outcomes: the sums of products that DuckDB makes of the rows ----------------------------


OUTCOMES: dict[str, dict[str, Any]] = {
    "means": {},
    "shared": {"denominator": "words"},
    "own": {"denominator": {"dense": "words", "int8": "more"}},
    "weights": {"weight": "w", "denominator": "words"},
    "clusters": {"cluster": "person", "denominator": "words"},
    "crossed": {"cluster": ("person", "site")},
    "binary": {"outcome": {"dense": "hit", "int8": "good"}, "better": "higher"},
    "binary weights": {"outcome": {"dense": "hit", "int8": "good"}, "better": "higher",
                       "weight": "w"},
}  # fmt: skip


def outcomes(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    words = rng.integers(3, 30, n)
    dense = rng.poisson(0.1 * words)
    return pd.DataFrame({
        "example_id": np.arange(n), "words": words, "more": words + rng.integers(0, 2, n),
        "errors": dense, "errors8": dense + rng.integers(0, 3, n) * (rng.random(n) < 0.3),
        "hit": rng.integers(0, 2, n), "good": rng.random(n) < 0.7,
        "sex": rng.choice(["Female", "Male"], n), "age": rng.choice(["old", "young", None], n),
        "person": rng.integers(0, 30, n), "site": rng.integers(0, 25, n),
        "w": rng.choice([0.5, 1.0, 2.5], n),
    })  # fmt: skip


def outcome_request(source: Any, name: str) -> TableSpec:
    more = {"outcome": {"dense": "errors", "int8": "errors8"}, "better": "lower", **OUTCOMES[name]}
    return TableSpec(source, groups=GROUPS, **more)


def summed_cube(tables: TableSpec, folder: Path) -> Cube:
    out = folder / "cube.parquet"
    fw.count(tables, out)
    cube, baseline, groupings = read_cubes([str(out)])
    assert (baseline, groupings) == ("dense", tuple(GROUPS))
    out.unlink()
    return cube


def same_sums(found: Cube, expected: Cube, name: str) -> None:
    """Cell by cell, to 1e-9 of the largest sum of its kind."""
    assert found.members == expected.members
    assert [(c.name, c.values) for c in found.columns] == [
        (c.name, c.values) for c in expected.columns
    ]
    for one, other in zip(found.columns, expected.columns, strict=True):
        assert one.code.tolist() == other.code.tolist()
    assert found.count.tolist() == expected.count.tolist()
    assert found.n_examples == expected.n_examples
    assert found.outcome is not None
    assert expected.outcome is not None
    assert found.outcome.role == expected.outcome.role
    if expected.weight is not None:
        np.testing.assert_allclose(found.weight, expected.weight, rtol=1e-12)
    if expected.unit is not None:
        assert found.unit_names == expected.unit_names
        assert found.unit.tolist() == expected.unit.tolist()
    mine, theirs = found.outcome.sums, expected.outcome.sums
    if "binary" in name:
        assert mine is theirs is None
        assert found.prediction.tolist() == expected.prediction.tolist()
        return
    assert mine is not None
    assert theirs is not None
    moved = mine.recentred(theirs.centre)
    pairs = [(moved.product(e), theirs.product(e)) for e in EXPONENTS if e in theirs.terms]
    assert len(pairs) >= 2
    pairs += [(getattr(moved, part), getattr(theirs, part)) for part in (*PER_MODEL, "den")]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * (1 + abs(other).max()))


def check_outcomes(held: Callable[[pd.DataFrame], Any], folder: Path) -> None:
    """Wide in every way; long and a frame per model once."""
    table = outcomes()
    for name in OUTCOMES:
        expected = summed_cube(outcome_request(table, name), folder)
        same_sums(summed_cube(outcome_request(held(table), name), folder), expected, name)
    facts = table[["example_id", "sex", "age"]]
    parts = {
        name: facts.assign(errors=table[errors], words=table[words])
        for name, errors, words in (("dense", "errors", "words"), ("int8", "errors8", "more"))
    }
    more: dict[str, Any] = {"outcome": "errors", "denominator": "words", "better": "lower",
                            "groups": GROUPS}  # fmt: skip
    expected = summed_cube(TableSpec(parts, **more), folder)
    each = {name: held(part) for name, part in parts.items()}
    same_sums(summed_cube(TableSpec(each, **more), folder), expected, "files")
    long = pd.concat([part.assign(variant=name) for name, part in parts.items()])
    same_sums(summed_cube(TableSpec(held(long), **more), folder), expected, "long")


def test_polars_sums_outcomes_where_it_is(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    check_outcomes(lambda frame: polars.from_pandas(frame).lazy(), tmp_path)


def test_duckdb_sums_outcomes_where_it_is(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect() as connection:
        check_outcomes(connection.from_df, tmp_path)


def test_ibis_sums_outcomes_and_audits_them(tmp_path: Path) -> None:
    ibis = pytest.importorskip("ibis")

    def held(frame: pd.DataFrame) -> Any:
        return ibis.memtable(pa.Table.from_pandas(frame, preserve_index=False))

    check_outcomes(held, tmp_path)
    table = outcomes()
    for name in ("shared", "binary"):
        made, rows = (
            fw.audit_table(outcome_request(source, name)) for source in (held(table), table)
        )
        same(rows, made, signs=name == "binary")


def test_the_name_of_the_baseline_may_begin_like_that_of_a_variant(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    table = outcomes()
    more: dict[str, Any] = {"outcome": {"q4_base": "errors", "q4": "errors8"}, "better": "lower",
                            "baseline": "q4_base", "groups": GROUPS}  # fmt: skip
    fw.count(TableSpec(polars.from_pandas(table).lazy(), **more), tmp_path / "there.parquet")
    found, baseline, _ = read_cubes([str(tmp_path / "there.parquet")])
    assert baseline == "q4_base"
    assert [member.variant for member in found.members] == ["q4_base", "q4"]


def test_outcomes_that_cannot_be_summed_are_refused(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    table, out = outcomes(), tmp_path / "never.parquet"

    def refused(frame: pd.DataFrame, said: str, **more: Any) -> None:
        request = replace(outcome_request(polars.from_pandas(frame).lazy(), "shared"), **more)
        with pytest.raises(InputError, match=said):
            fw.count(request, out)

    refused(
        table.assign(errors8=table["errors8"].where(table.index > 2)), "'errors8' is missing in 3"
    )
    refused(
        table.assign(errors=np.where(table.index == 7, np.inf, table["errors"])), "must be finite"
    )
    refused(table.assign(words=-table["words"]), "must be finite and not negative; it is from -29")
    refused(table, "within --range 0,1", denominator=None, range=(0, 1))
    refused(table, "int9", baseline="int9")
    several = {"dense": ("errors",), "int8": ("errors8", "errors")}
    refused(table, "several members of one variant", outcome=several)
    refused(table.rename(columns={"sex": "centre"}), "'centre' is a column of the table of sums",
            groups=["centre"])  # fmt: skip
    assert not out.exists()


def test_polars_counts_where_it_is(
    rows: pd.DataFrame, expected: dict[Any, int], tmp_path: Path
) -> None:
    polars = pytest.importorskip("polars")

    def held(frame: pd.DataFrame) -> Any:
        return polars.from_pandas(frame).lazy()

    check_every_layout(held, rows, expected, tmp_path)
    check_refusals(held, rows, tmp_path)


def test_duckdb_counts_where_it_is(
    rows: pd.DataFrame, expected: dict[Any, int], tmp_path: Path
) -> None:
    import duckdb

    with duckdb.connect() as connection:
        check_every_layout(connection.from_df, rows, expected, tmp_path)


def test_ibis_counts_where_it_is_and_is_audited(
    rows: pd.DataFrame, expected: dict[Any, int], tmp_path: Path
) -> None:
    ibis = pytest.importorskip("ibis")

    def held(frame: pd.DataFrame) -> Any:  # by Arrow: from pandas it uses an option that is leaving
        return ibis.memtable(pa.Table.from_pandas(frame, preserve_index=False))

    check_every_layout(held, rows, expected, tmp_path)
    whole = TableSpec(rows, groups=GROUPS)
    made = fw.audit_table(replace(whole, sources=held(rows)), n_boot=50)
    both = [one.by_group.query("metric == 'accuracy'") for one in (made, fw.audit_table(whole))]
    assert both[0]["shift"].tolist() == both[1]["shift"].tolist()
    with pytest.raises(InputError, match="groups= is missing"):
        fw.audit_table(held(rows))
    with pytest.raises(InputError, match="query= cannot be used with a ibis table"):
        fw.audit_table(TableSpec(held(rows), groups=GROUPS, query="FROM data"))


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """Spark in this process's machine; it warns of the newest pandas."""
    pytest.importorskip("pyspark")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*pandas.*")
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[1]").appName("fairweight")
        for setting, value in (
            ("spark.ui.enabled", "false"),
            ("spark.sql.shuffle.partitions", "2"),
            ("spark.driver.memory", "1g"),
        ):
            builder = builder.config(setting, value)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*pandas.*")
def test_spark_counts_where_it_is(
    spark: Any, rows: pd.DataFrame, expected: dict[Any, int], tmp_path: Path
) -> None:
    schema = "example_id long, variant string, label string, prediction string, sex string, "
    kinds = {part.split()[0]: part for part in (schema + "age string").split(", ")}
    kinds |= {name: f"{name} string" for name in ("dense", "int8")}

    def held(frame: pd.DataFrame) -> Any:
        plain = frame.astype(object).where(frame.notna(), None)
        types = ", ".join(kinds[name] for name in frame.columns)
        return spark.createDataFrame(plain.values.tolist(), types)

    check_every_layout(held, rows, expected, tmp_path)
    check_refusals(held, rows, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*pandas.*")
def test_spark_sums_outcomes_where_it_is(spark: Any, tmp_path: Path) -> None:
    def held(frame: pd.DataFrame) -> Any:
        plain = frame.astype(object).where(frame.notna(), None)
        kinds = {"i": "long", "f": "double", "b": "boolean"}
        types = ", ".join(f"{c} {kinds.get(frame[c].dtype.kind, 'string')}" for c in frame.columns)
        return spark.createDataFrame(plain.values.tolist(), types)

    check_outcomes(held, tmp_path)
