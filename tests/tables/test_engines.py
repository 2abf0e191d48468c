"""Frames that are counted where they are: the same cube as the rows themselves give."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import fairweight as fw
from fairweight.auditing.counts.cube_file import read_cubes
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
