"""One class however a value is written, two where texts differ: in Python, SQL, every source."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crosses import crossed

from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.group_by import count, training_table
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.align import align
from fairweight.tables.canonical import canonical, canonical_sql
from fairweight.tables.spec import TableSpec, sources_of

from .test_table_sources import write_duckdb, write_sqlite

# Every text beside the class that it is of.
TEXTS = {
    "1": "1", "1.0": "1", "1.": "1", "1.000": "1", "-7": "-7", "-7.0": "-7",
    "0": "0", "-0": "0", "-0.0": "0", "0.0": "0", "0.": "0",
    "123456789012345": "123456789012345", "123456789012345.0": "123456789012345",
    "1234567890123456": "1234567890123456", "1234567890123456.0": "1234567890123456.0",
    "12345678901234567890": "12345678901234567890",
    "12345678901234567891": "12345678901234567891",
    "007": "007", "00": "00", "-07": "-07", "01.0": "01.0", "+5": "+5", " 5": " 5", "5 ": "5 ",
    "1e2": "1e2", "100": "100", "1E2": "1E2", "0x10": "0x10", "16": "16", "1_000": "1_000",
    ".0": ".0", ".": ".", "-": "-", "": "", "1.5": "1.5", "1.50": "1.50", "٣": "٣",
    "true": "true", "TRUE": "true", "True": "true", "FALSE": "false", "False": "false",
    "yes": "yes", "T": "T", "t": "t", "nan": "nan", "None": "None", "falsey": "falsey",
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TEXTS.items())
def test_texts(text: str, expected: str) -> None:
    assert canonical(text) == expected
    assert canonical(text.encode()) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "1"), (1.0, "1"), (True, "true"), (np.bool_(False), "false"), (-0.0, "0"),
        (2.5, "2.5"), (0.1, "0.1"), (np.float32(0.1), "0.1"), (np.float16(0.1), "0.1"),
        (np.float32(3.0), "3"), (1e15, "1000000000000000"), (float(2**53), "9007199254740992.0"),
        (1e16, "1e+16"), (1e300, "1e+300"), (float("inf"), "inf"), (float("nan"), None),
        (np.float32("nan"), None), (None, None), (pd.NA, None), (pd.NaT, None),
        (12345678901234567890, "12345678901234567890"), (np.uint64(2**64 - 1), str(2**64 - 1)),
        (Decimal("12345678901234567890"), "12345678901234567890"),
        (Decimal("5.00"), "5"), (Decimal("2.50"), "2.5"), (Decimal("NaN"), None),
    ],
)  # fmt: skip
def test_typed_values(value: Any, expected: str | None) -> None:
    assert canonical(value) == expected


def in_sql(values: Sequence[Any], kind: str) -> list[str | None]:
    with duckdb.connect() as connection:
        connection.register("given", pa.table({"v": pa.array(values)}))
        rows = connection.execute(
            f"SELECT {canonical_sql('v', kind)} FROM (SELECT CAST(v AS {kind}) AS v FROM given)"
        ).fetchall()
    return [row[0] for row in rows]


DIGITS = st.from_regex(r"[+-]?0{0,2}[0-9]{0,17}(\.[0-9]{0,3})?(e[0-9])?", fullmatch=True)
TRUTHS = st.sampled_from(["true", "True", "FALSE", "fAlse", "truee", "tru", "T"])


@given(st.lists(DIGITS | TRUTHS | st.text(max_size=6) | st.sampled_from(list(TEXTS)), min_size=1))
def test_sql_agrees_on_text(texts: list[str]) -> None:
    kept = [text for text in texts if "\0" not in text and text.isprintable()] or ["1"]
    assert in_sql(kept, "VARCHAR") == [canonical(text) for text in kept]


@given(st.lists(st.floats() | st.integers(-(2**54), 2**54).map(float), min_size=1))
def test_sql_agrees_on_floats(values: list[float]) -> None:
    assert in_sql(values, "DOUBLE") == [canonical(value) for value in values]


@given(st.lists(st.floats(width=32), min_size=1))
def test_sql_agrees_on_single_precision(values: list[float]) -> None:
    assert in_sql(values, "FLOAT") == [canonical(np.float32(value)) for value in values]


def test_sql_agrees_on_other_types() -> None:
    assert in_sql([True, False, None], "BOOLEAN") == ["true", "false", None]
    assert in_sql([1, -2, None], "BIGINT") == ["1", "-2", None]
    decimals = [Decimal("5.00"), Decimal("2.50"), Decimal("-0.10"), None]
    assert in_sql(decimals, "DECIMAL(4, 2)") == ["5", "2.5", "-0.1", None]
    assert in_sql(["a", "1.0", "TRUE"], "ENUM('a', '1.0', 'TRUE')") == ["a", "1", "true"]


# --- every source ------------------------------------------------------------------------------

# Two texts that were read as one number, each the label of half of the examples.
CODES = {
    "20 digits": ("12345678901234567890", "12345678901234567891"),
    "exponent": ("1e2", "100"),
    "hexadecimal": ("0x10", "16"),
    "leading zeros": ("007", "7"),
    "sign": ("+5", "5"),
    "space": (" 5", "5"),
}
TEXT_SOURCES = (
    *("csv", "csv.gz", "tsv", "json", "jsonl", "parquet", "arrow", "duckdb", "sqlite", "glob"),
    *("pandas", "pandas objects", "pandas categories", "polars", "arrow table", "relation"),
    *("dict of arrays", "dict of lists", "dict of objects"),
)
N = 20  # examples, half of each code


def write_source(kind: str, frame: pd.DataFrame, folder: Path, name: str = "t") -> Any:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    path = folder / f"{name}.{kind}"
    if kind in ("csv", "csv.gz", "tsv"):
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    elif kind in ("json", "jsonl"):
        frame.to_json(path, orient="records", lines=kind == "jsonl")
    elif kind == "parquet":
        pq.write_table(table, path)
    elif kind == "glob":
        for part in range(2):
            half = frame.iloc[part * len(frame) // 2 : (part + 1) * len(frame) // 2]
            half.to_csv(folder / f"{name}-{part}.csv", index=False)
        return str(folder / f"{name}-*.csv")
    elif kind == "arrow":
        feather.write_feather(table, path, compression=None)
    elif kind == "duckdb":
        write_duckdb(path, frame)
        return f"{path}::predictions"
    elif kind == "sqlite":
        write_sqlite(path, frame)
    elif kind == "pandas categories":
        return frame.astype("category")
    elif kind == "pandas objects":
        return frame.astype(object)
    elif kind == "polars":
        return pl.from_pandas(frame)
    elif kind == "arrow table":
        return table
    elif kind == "relation":
        return duckdb.connect().from_arrow(table)
    elif kind == "dict of arrays":
        return {column: np.array(frame[column].tolist()) for column in frame}
    elif kind == "dict of objects":
        return {column: frame[column].to_numpy(dtype=object) for column in frame}
    elif kind == "dict of lists":
        return {column: frame[column].tolist() for column in frame}
    else:
        return frame
    return path


def cube_of(source: Any, **options: Any) -> Cube:
    with align(TableSpec(sources_of(source), **options)) as aligned:
        return count(aligned)


def right(cube: Cube, variant: str) -> int:
    (member,) = cube.member_indices(variant)
    return int(cube.count[cube.prediction[:, member] == cube.label].sum())


@pytest.mark.parametrize(("codes", "kind"), crossed(CODES.values(), TEXT_SOURCES, every=3))
def test_codes_stay_two_classes_and_two_groups(
    codes: tuple[str, str], kind: str, tmp_path: Path
) -> None:
    one, other = codes
    # `dense` is always right; `int8` says the first code always: right on half of the examples.
    frame = pd.DataFrame(
        {
            "example_id": [f"123456789012345678{i:02d}" for i in range(N)],
            "label": [one, other] * (N // 2),
            "pred_dense": [one, other] * (N // 2),
            "pred_int8": [one] * N,
            "site": [one] * 10 + [other] * 10,
            "person": [one, one, other, other] * (N // 4),
        },
        dtype=object,
    )
    cube = cube_of(write_source(kind, frame, tmp_path), groups=["site"], cluster="person")
    assert set(cube.label_classes) == {one, other}
    assert (right(cube, "dense"), right(cube, "int8")) == (20, 10)
    assert set(cube.columns[0].values) == {one, other}
    assert set(cube.unit_names) == {one, other}
    assert cube.n_examples == N


@pytest.mark.parametrize(("codes", "kind"), crossed(CODES.values(), TEXT_SOURCES, every=3))
def test_codes_stay_two_variants_tasks_and_examples(
    codes: tuple[str, str], kind: str, tmp_path: Path
) -> None:
    one, other = codes
    rows = [
        {"example_id": example, "task": task, "variant": variant, "seed": one,
         "label": "a" if example == one else "b", "prediction": "a"}
        for variant in (one, other) for example in (one, other) for task in (one, other)
    ]  # fmt: skip
    source = write_source(kind, pd.DataFrame(rows, dtype=object), tmp_path)
    cube = cube_of(source, baseline=other, groups=[])
    assert [member.variant for member in cube.members] == [other, one]
    assert {member.seed for member in cube.members} == {one}
    assert set(cube.tasks) == {one, other}
    assert (cube.n_examples, int(cube.count.sum())) == (2, 4)


SPELLINGS = {
    "whole": ("1", "1.0", "1.", "1.00"),
    "zero": ("0", "-0", "0.0", "-0.0"),
    "truth": ("true", "True", "TRUE", "tRuE"),
}


@pytest.mark.parametrize(("spellings", "kind"), crossed(SPELLINGS.values(), TEXT_SOURCES, every=2))
def test_spellings_are_one_class_and_one_group(
    spellings: tuple[str, ...], kind: str, tmp_path: Path
) -> None:
    n = len(spellings)
    frame = pd.DataFrame(
        {
            "example_id": [f"e{i}" for i in range(n + 1)],
            "label": [*spellings, "x"],
            "pred_dense": [*spellings[::-1], "x"],
            "pred_int8": [*spellings[1:], spellings[0], "x"],
            "site": [*spellings, "x"],
        },
        dtype=object,
    )
    cube = cube_of(write_source(kind, frame, tmp_path), groups=["site"])
    assert set(cube.label_classes) == {spellings[0], "x"}
    assert (right(cube, "dense"), right(cube, "int8")) == (n + 1, n + 1)
    assert set(cube.columns[0].values) == {spellings[0], "x"}


@pytest.mark.parametrize("kind", TEXT_SOURCES)
def test_an_example_that_is_written_twice_is_a_duplicate(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"example_id": ["1", "1.0", "007"], "label": ["a", "b", "a"],
         "pred_dense": ["a", "b", "a"], "pred_int8": ["a", "a", "a"]}, dtype=object
    )  # fmt: skip
    with pytest.raises(InputError, match="1 duplicate key"):
        cube_of(write_source(kind, frame, tmp_path))


# --- typed sources -----------------------------------------------------------------------------

SAME_NUMBERS: dict[str, Any] = {
    "int64": np.array([1, 2], dtype=np.int64),
    "uint8": np.array([1, 2], dtype=np.uint8),
    "float64": np.array([1.0, 2.0]),
    "float32": np.array([1.0, 2.0], dtype=np.float32),
    "text": np.array(["1", "2"], dtype=object),
    "text with zeros": np.array(["1.0", "2.0"], dtype=object),
    "nullable": pd.array([1, 2], dtype="Int64"),
    "decimal": pa.array([Decimal("1.00"), Decimal("2.00")]),
    "list": [1, 2.0],
}
TYPED_SOURCES = ("parquet", "pandas", "arrow table", "dict", "relation")


@pytest.mark.parametrize(
    ("label", "prediction", "kind"), crossed(SAME_NUMBERS, SAME_NUMBERS, TYPED_SOURCES, every=9)
)
def test_typed_numbers_are_one_class_however_they_are_held(
    label: str, prediction: str, kind: str, tmp_path: Path
) -> None:
    columns = {
        "example_id": [0, 1],
        "label": SAME_NUMBERS[label],
        "pred_dense": SAME_NUMBERS[prediction],
        "pred_int8": SAME_NUMBERS["int64"],
    }
    if kind == "pandas":
        source: Any = pd.DataFrame(
            {k: v.to_pylist() if isinstance(v, pa.Array) else v for k, v in columns.items()}
        )
    elif kind == "dict":
        source = columns
    else:
        source = pa.table({k: pa.array(v) for k, v in columns.items()})
        if kind == "parquet":
            pq.write_table(source, tmp_path / "t.parquet")
            source = tmp_path / "t.parquet"
        elif kind == "relation":
            source = duckdb.connect().from_arrow(source)
    cube = cube_of(source)
    assert cube.label_classes == ("1", "2")
    assert (right(cube, "dense"), right(cube, "int8")) == (2, 2)


@pytest.mark.parametrize("written", ["1", "1.0", "true", "True"])
@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "dict of lists"])
def test_truth_values_beside_numbers_or_text(kind: str, written: str, tmp_path: Path) -> None:
    """Labels that are truth values meet predictions of 0 and 1, or of true and false."""
    other = {"1": "0", "1.0": "0.0", "true": "false", "True": "False"}[written]
    labels = pa.table({"example_id": [1, 2], "label": [True, False], "prediction": [True, True]})
    pq.write_table(labels, tmp_path / "dense.parquet")
    frame = pd.DataFrame({"example_id": ["1", "2"], "prediction": [written, other]}, dtype=object)
    cube = cube_of(
        {"dense": tmp_path / "dense.parquet", "int8": write_source(kind, frame, tmp_path)}
    )
    assert (right(cube, "dense"), right(cube, "int8")) == (1, 2)


def test_large_codes_in_every_typed_column() -> None:
    first, second = 12345678901234567890, 12345678901234567891
    held = {
        "uint64": pa.array([first, second], pa.uint64()),
        "decimal": pa.array([Decimal(first), Decimal(second)], pa.decimal128(38, 0)),
        "text": pa.array([str(first), str(second)]),
    }
    for label in held.values():
        for prediction in held.values():
            table = pa.table(
                {"example_id": label, "label": label, "pred_dense": prediction, "pred_int8": label}
            )
            cube = cube_of(table)
            assert cube.label_classes == (str(first), str(second))
            assert right(cube, "dense") == 2
    lists = {"example_id": [1, 2, 3], "label": [first, second, -1], "pred_dense": [first, 0.5, -1],
             "pred_int8": [first, first, first]}  # fmt: skip
    cube = cube_of(lists)
    assert cube.label_classes == ("-1", str(first), str(second))
    assert (right(cube, "dense"), right(cube, "int8")) == (2, 1)


def test_polars_integers_of_128_bits() -> None:
    codes = pl.Series([10**30, 10**30 + 1], dtype=pl.Int128)
    cube = cube_of(
        pl.DataFrame(
            {"example_id": codes, "label": codes, "pred_dense": codes, "pred_int8": codes[[0, 0]]}
        )
    )
    assert (right(cube, "dense"), right(cube, "int8")) == (2, 1)


def test_single_precision_is_shown_as_it_was_written(tmp_path: Path) -> None:
    bins = pa.array([0.1, 0.2], pa.float32())
    table = {"example_id": [1, 2], "label": ["a", "b"], "prediction": ["a", "b"]}
    pq.write_table(pa.table({**table, "bin": bins}), tmp_path / "dense.parquet")
    (tmp_path / "int8.csv").write_text("example_id,label,prediction,bin\n1,a,a,0.1\n2,b,a,0.2\n")
    cube = cube_of([tmp_path / "dense.parquet", tmp_path / "int8.csv"], groups=["bin"])
    assert cube.columns[0].values == ("0.1", "0.2")


# --- files of different types ------------------------------------------------------------------


@pytest.mark.parametrize("order", [("csv", "parquet"), ("parquet", "csv"), ("json", "csv")])
@pytest.mark.parametrize(
    ("text", "typed"),
    [
        (["1", "2", "3"], [1, 2, 3]),
        (["1.0", "2.0", "3.0"], [1, 2, 3]),
        (["1", "2", "3"], [1.0, 2.0, 3.0]),
        (["1234567890123456", "2", "3"], [1234567890123456.0, 2.0, 3.0]),
        (["12345678901234567890", "2", "3"], pa.array([12345678901234567890, 2, 3], pa.uint64())),
        (["true", "a", "0.5"], ["TRUE", "a", "0.5"]),
    ],
)
def test_ids_are_joined_by_canonical_text(
    text: list[str], typed: Any, order: tuple[str, str], tmp_path: Path
) -> None:
    columns = {"label": ["a", "b", "a"], "prediction": ["a", "b", "b"]}
    for name, kind in zip(("dense", "int8"), order, strict=True):
        held = {"example_id": typed if kind == "parquet" else text, **columns}
        if kind == "parquet":
            pq.write_table(pa.table(held), tmp_path / f"{name}.parquet")
        else:
            write_source(kind, pd.DataFrame(held, dtype=object), tmp_path, name)
    files = [tmp_path / f"{n}.{k}" for n, k in zip(("dense", "int8"), order, strict=True)]
    (tmp_path / "people.csv").write_text(
        "example_id,sex\n" + "".join(f"{i},{s}\n" for i, s in zip(text[::-1], "FMF", strict=True))
    )
    cube = cube_of(files, examples=tmp_path / "people.csv", groups=["sex"])
    assert (cube.n_examples, right(cube, "int8")) == (3, 2)


def test_codes_do_not_match_numbers(tmp_path: Path) -> None:
    (tmp_path / "dense.csv").write_text("example_id,label,prediction\n007,a,a\n1e2,b,b\n")
    (tmp_path / "int8.csv").write_text("example_id,label,prediction\n7,a,a\n100,b,b\n")
    with pytest.raises(InputError, match=r"2 examples of 'dense' are missing from 'int8'"):
        cube_of([tmp_path / "dense.csv", tmp_path / "int8.csv"])


def test_parts_of_different_types_are_one_table(tmp_path: Path) -> None:
    """The first part has whole numbers only, the second codes that no number holds."""
    header = "example_id,label,pred_dense,pred_int8,score_dense,score_int8\n"
    (tmp_path / "a.csv").write_text(header + "1,1,1,1,1,0\n2,2,2,1,0,1\n")
    rest = "3,007,007,7,0.25,0.5\n12345678901234567890,7,7,7,0.5,0.5\n"
    (tmp_path / "b.csv").write_text(header + rest)
    with align(TableSpec(sources_of([tmp_path / "a.csv", tmp_path / "b.csv"]))) as aligned:
        assert aligned.connection.execute(
            f"SELECT example_id, label, s0 FROM {aligned.view} ORDER BY 1"
        ).fetchall() == [
            ("1", "1", 1.0), ("12345678901234567890", "7", 0.5), ("2", "2", 0.0),
            ("3", "007", 0.25),
        ]  # fmt: skip
        cube = count(aligned)
    assert cube.label_classes == ("1", "2", "007", "7")
    assert (right(cube, "dense"), right(cube, "int8")) == (4, 2)
    large = {"example_id": [2**60 + 1, 2**60 + 2], "label": [1, 2], "pred_dense": [1, 2],
             "pred_int8": [1, 1]}  # fmt: skip
    pq.write_table(pa.table(large), tmp_path / "a.parquet")
    pq.write_table(pa.table({**large, "example_id": [0.5, 1.5]}), tmp_path / "b.parquet")
    assert cube_of([tmp_path / "a.parquet", tmp_path / "b.parquet"]).n_examples == 4


def test_folder_names_are_text(tmp_path: Path) -> None:
    for i, site in enumerate(("007", "7")):
        (tmp_path / "t" / f"site={site}").mkdir(parents=True)
        rows = {"example_id": [2 * i, 2 * i + 1], "label": ["a", "b"], "pred_dense": ["a", "b"],
                "pred_int8": ["a", "a"]}  # fmt: skip
        pq.write_table(pa.table(rows), tmp_path / "t" / f"site={site}" / "a.parquet")
    assert cube_of(tmp_path / "t").columns[0].values == ("007", "7")


# --- what is missing, what is a number ---------------------------------------------------------


def test_what_is_missing_in_a_csv(tmp_path: Path) -> None:
    """An empty cell everywhere; `nan` in a column of numbers; with force no other word."""
    path = tmp_path / "t.csv"
    path.write_text(
        "example_id,label,pred_dense,pred_int8,text,number,word\n"
        '1,1,1,nan,nan,nan,NA\n2,2,2,1,b,1,NULL\n3,1,"",1.0,,2,None\n'
    )
    groups = ["text", "number", "word"]
    with align(TableSpec(sources_of(path), groups=groups, force=True)) as aligned:
        cube = count(aligned)
        rows = aligned.connection.execute(
            f"SELECT p0, p1, g0, g1, g2 FROM {aligned.view} ORDER BY example_id"
        ).fetchall()
    assert rows == [
        (1, None, "nan", None, "NA"), (2, "1", "b", "1", "NULL"), (None, "1.0", None, "2", "None"),
    ]  # fmt: skip
    assert cube.label_classes == ("1", "2")
    assert [c.values for c in cube.columns] == [
        ("b", "nan", None), ("1", "2", None), ("NA", "NULL", "None"),
    ]  # fmt: skip


def test_what_is_missing_in_json(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    rows = [
        {"example_id": 1, "label": "", "pred_dense": "", "pred_int8": None, "bin": float("nan")},
        {"example_id": 2, "label": "nan", "pred_dense": "nan", "pred_int8": "nan", "bin": 0.10},
    ]
    path.write_text(json.dumps(rows))
    cube = cube_of(path, groups=["bin"], force=True)
    assert cube.label_classes == ("", "nan")
    assert cube.columns[0].values == ("0.1", None)


def test_texts_of_json_are_texts(tmp_path: Path) -> None:
    """A day, a time and a UUID in quotes: groups by default, as in a CSV file."""
    texts = {
        "day": "2020-01-0{}",
        "time": "12:30:0{}",
        "key": "0c7e6a70-0000-4000-8000-00000000000{}",
    }
    rows = [
        {"example_id": i, "label": i % 2, "pred_dense": i % 2, "pred_int8": 0}
        | {name: text.format(1 + i % 3) for name, text in texts.items()}
        for i in range(30)
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(rows))
    cube = cube_of(path)
    assert {column.name: column.values for column in cube.columns} == {
        name: tuple(text.format(1 + i) for i in range(3)) for name, text in texts.items()
    }


@pytest.mark.parametrize("value", [[0.5, 0.5], {"a": 1}])
def test_lists_among_texts_of_json(tmp_path: Path, value: object) -> None:
    path = tmp_path / "t.jsonl"
    rows = [
        {"example_id": i, "label": "a", "pred_dense": "a", "pred_int8": value if i else "a"}
        for i in range(3)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"column 'pred_int8' .* holds lists"):
        cube_of(path)


def test_numbers_of_json_are_told_by_their_syntax(tmp_path: Path) -> None:
    """`1e2` is the number 100, `"1e2"` a text; whole numbers are their digits."""
    path = tmp_path / "t.jsonl"
    texts = ["100", "1e2", '"1e2"', "100.0", "0.10", "123456789012345678901234567890", "true"]
    path.write_text(
        "".join(
            f'{{"example_id": {i}, "label": {text}, "pred_dense": {text}, "pred_int8": 100}}\n'
            for i, text in enumerate(texts)
        )
    )
    cube = cube_of(path)
    expected = {"100", "1e2", "0.1", "123456789012345678901234567890", "true"}
    assert set(cube.label_classes) == expected
    assert (right(cube, "dense"), right(cube, "int8")) == (7, 3)


def test_columns_without_a_role_are_judged_by_their_values(tmp_path: Path) -> None:
    """Groups by default: text, and whole numbers of at most 50 values; no other numbers."""
    n = 120
    frame = pd.DataFrame(
        {
            "example_id": range(n),
            "label": ["a", "b"] * (n // 2),
            "pred_dense": ["a", "b"] * (n // 2),
            "pred_int8": ["a", "a"] * (n // 2),
            "few": [i % 5 for i in range(n)],
            "many": [i % 60 for i in range(n)],
            "zip": [f"{i % 60:05d}" for i in range(n)],
            "bin": [f"{i % 4}.50" for i in range(n)],
            "float_whole": [f"{i % 4}.0" for i in range(n)],
            "one": ["1", "1.0"] * (n // 2),
            "flag": ["True", "FALSE"] * (n // 2),
            "day": ["2020-01-01", "2020-01-02"] * (n // 2),
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    with align(TableSpec(sources_of(tmp_path / "t.csv"))) as aligned:
        assert aligned.group_columns == ("few", "zip", "flag", "day")
        (note,) = [note for note in aligned.notes if "not used as groups" in note]
    assert "'many' (more than 50 values)" in note
    for column in ("bin", "float_whole", "one"):
        assert f"'{column}' (numbers with fractions)" in note


def test_roles_of_numbers_read_numbers(tmp_path: Path) -> None:
    """Weights, scores, ranks, counts and measurements, written in ways that no class may be."""
    (tmp_path / "t.csv").write_text(
        "example_id,label,pred_dense,pred_int8,score_dense,score_int8,weight,height\n"
        "1,1,1,0,1e-1,.5,2,1.80\n2,0,0,0,0.50,0.5,1e0,1.7\n"
    )
    (tmp_path / "train.csv").write_text("label,n\n1,1e2\n1.0,5.0\n0,7\n")
    with align(
        TableSpec(sources_of(tmp_path / "t.csv"), train=tmp_path / "train.csv"), further=True
    ) as aligned:
        cube = count(aligned, scores=True)
        train = training_table(aligned, cube.label_classes)
        assert aligned.further_columns == ("height",)
        heights = aligned.connection.execute(f"SELECT x0 FROM {aligned.view} ORDER BY 1").fetchall()
    assert heights == [(1.7,), (1.8,)]
    assert cube.weight is not None
    assert sorted(cube.weight.tolist()) == [1.0, 2.0]
    assert cube.scores is not None
    assert cube.scores.score is not None
    assert sorted(cube.scores.score[:, 0].tolist()) == [0.1, 0.5]
    assert train is not None
    assert dict(zip(train["label"], train["n"], strict=True)) == {"1": 105.0, "0": 7.0}
    frame = pd.read_csv(tmp_path / "t.csv", dtype=str).assign(heavy=["a", "1"])
    frame.to_csv(tmp_path / "text.csv", index=False)
    with pytest.raises(InputError, match="weight column 'heavy' must hold numbers"):
        cube_of(tmp_path / "text.csv", weight="heavy")


def test_training_rows_that_differ_in_spelling_are_one(tmp_path: Path) -> None:
    table = {"example_id": [1, 2], "label": [1, 2], "pred_dense": [1, 2], "pred_int8": [1, 1],
             "site": ["1", None]}  # fmt: skip
    (tmp_path / "train.csv").write_text("label,site,n\n1,1.0,3\n1.0,1,4\n1,,5\n2,007,6\n")
    with align(
        TableSpec(sources_of(table), groups=["site"], train=tmp_path / "train.csv")
    ) as aligned:
        train = training_table(aligned, ("1", "2"))
    assert train is not None
    assert {tuple(row) for row in train[["label", "site", "n"]].itertuples(index=False)} == {
        ("1", "1", 7.0), ("1", None, 5.0), ("2", "007", 6.0),
    }  # fmt: skip


def test_truth_values_of_training_labels_beside_numbers() -> None:
    table = {"example_id": [1, 2], "label": [1, 0], "pred_dense": [1, 0], "pred_int8": [1, 1]}
    with align(TableSpec(sources_of(table), train={"label": [True, True, False]})) as aligned:
        train = training_table(aligned, count(aligned).label_classes)
    assert train is not None
    assert dict(zip(train["label"], train["n"], strict=True)) == {"1": 2.0, "0": 1.0}


def test_a_value_that_is_no_whole_number_comes_late(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{i},{i % 2},{i % 2},0" for i in range(30_000)] + ["30000,007,007,007"]
    path.write_text("example_id,label,pred_dense,pred_int8\n" + "\n".join(rows) + "\n")
    cube = cube_of(path)
    assert cube.label_classes == ("0", "1", "007")
    assert (right(cube, "dense"), right(cube, "int8")) == (30_001, 15_001)


def test_baselines_are_named_by_canonical_text() -> None:
    rows = {"example_id": [1, 1], "variant": [0.5, 1.0], "label": ["a", "a"],
            "prediction": ["a", "b"]}  # fmt: skip
    for name in ("1", "1.0", 1):
        with align(TableSpec(sources_of(rows), baseline=name)) as aligned:
            assert (aligned.baseline, aligned.variants) == ("1", ("0.5",))
    with pytest.raises(UnknownNameError):
        align(TableSpec(sources_of(rows), baseline="01"))
