"""Every kind of source gives the same aligned rows; every broken one gives its sentence."""

from __future__ import annotations

import hashlib
import json
import sqlite3
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

from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.align import align
from fairweight.tables.connection import Workspace
from fairweight.tables.sources import is_cube, may_be_logs, open_source, provenance
from fairweight.tables.spec import TableSpec, sources_of

from .conftest import aligned_rows, wide_frame


def write_duckdb(path: Path, frame: pd.DataFrame) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.register("given", pa.Table.from_pandas(frame, preserve_index=False))
        connection.execute("CREATE TABLE predictions AS FROM given")


def write_sqlite(path: Path, frame: pd.DataFrame) -> None:
    with sqlite3.connect(path) as connection:
        names = ", ".join(f'"{column}"' for column in frame.columns)
        connection.execute(f"CREATE TABLE predictions ({names})")
        marks = ", ".join("?" * frame.shape[1])
        rows = [tuple(row) for row in frame.astype(object).itertuples(index=False)]
        connection.executemany(f"INSERT INTO predictions VALUES ({marks})", rows)
    connection.close()


def make_source(kind: str, folder: Path) -> Any:
    frame = wide_frame()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    path = folder / f"table.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind in ("csv", "csv.gz"):
        frame.to_csv(path, index=False)
    elif kind == "tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif kind in ("arrow", "feather"):
        feather.write_feather(table, path, compression="zstd" if kind == "feather" else None)
    elif kind == "arrows":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    elif kind in ("jsonl", "ndjson"):
        frame.to_json(path, orient="records", lines=True)
    elif kind == "json":
        frame.to_json(path, orient="records")
    elif kind == "glob":
        for part in range(3):
            pq.write_table(table.slice(part * 2, 2), folder / f"part-{part}.parquet")
        return str(folder / "part-*.parquet")
    elif kind == "folder":
        (folder / "tables").mkdir()
        for part in range(2):
            pq.write_table(table.slice(part * 3, 3), folder / "tables" / f"{part}.parquet")
        return folder / "tables"
    elif kind == "hive":
        for sex in ("F", "M"):
            (folder / "tables" / f"sex={sex}").mkdir(parents=True)
            kept = frame[frame.sex == sex].drop(columns="sex")
            held = pa.Table.from_pandas(kept, preserve_index=False)
            pq.write_table(held, folder / "tables" / f"sex={sex}" / "a.parquet")
        return folder / "tables"
    elif kind in ("duckdb", "db"):
        write_duckdb(path, frame)
        return f"{path}::SELECT * FROM predictions WHERE example_id >= 0"
    elif kind == "duckdb table":
        write_duckdb(folder / "t.duckdb", frame)
        return f"{folder / 't.duckdb'}::predictions"
    elif kind == "sqlite":
        write_sqlite(path, frame)
        return f"{path}::SELECT * FROM predictions"
    elif kind == "sqlite table":
        write_sqlite(folder / "t.sqlite", frame)
        return str(folder / "t.sqlite")
    elif kind == "pandas":
        return frame
    elif kind == "pandas index":
        return frame.set_index("example_id")
    elif kind == "pandas categories":
        return frame.astype({"sex": "category", "label": "category", "age": "Int64"})
    elif kind == "pandas objects":
        return frame.astype(object)
    elif kind == "polars":
        return pl.from_pandas(frame)
    elif kind == "polars lazy":
        return pl.from_pandas(frame).lazy()
    elif kind == "arrow table":
        return table
    elif kind == "arrow batch":
        return table.to_batches()[0]
    elif kind == "arrow reader":
        return table.to_reader(max_chunksize=2)
    elif kind == "dict of arrays":
        return {column: frame[column].to_numpy() for column in frame}
    elif kind == "dict of lists":
        return {column: frame[column].tolist() for column in frame}
    elif kind == "relation":
        return duckdb.connect().from_arrow(table)
    return path


KINDS = (
    *("parquet", "csv", "csv.gz", "tsv", "arrow", "feather", "arrows", "jsonl", "ndjson", "json"),
    *("glob", "folder", "hive", "duckdb", "db", "duckdb table", "sqlite", "sqlite table"),
    *("pandas", "pandas index", "pandas categories", "pandas objects", "polars", "polars lazy"),
    *("arrow table", "arrow batch", "arrow reader", "dict of arrays", "dict of lists", "relation"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_gives_the_same_rows(kind: str, tmp_path: Path) -> None:
    with (
        align(TableSpec(sources_of(wide_frame()))) as expected,
        align(TableSpec(sources_of(make_source(kind, tmp_path)))) as found,
    ):
        assert set(found.group_columns) == {"sex", "age"}
        assert aligned_rows(found) == aligned_rows(expected)
        assert (found.n_examples, found.n_rows) == (6, 6)


def test_values_stay_as_given() -> None:
    table = pa.table(
        {
            "example_id": [1, 2],
            "label": [True, False],
            "pred_dense": [1.0, 0.0],
            "pred_int8": ["1", None],
            "g": ["a", "b"],
        }
    )
    with align(TableSpec(sources_of(table))) as found:
        rows = found.connection.execute(
            f"SELECT label, p0, p1 FROM {found.view} ORDER BY example_id"
        ).fetchall()
    assert rows == [(True, 1.0, "1"), (False, 0.0, None)]


def test_missing_and_mixed_values_of_object_columns(workspace: Workspace) -> None:
    frame = pd.DataFrame({"a": [1, "x", None], "b": pd.array([1, None, 3], dtype="Int64")})
    frame["c"] = pd.Series(["u", float("nan"), "v"], dtype=object)
    source = open_source(workspace, frame)
    rows = workspace.connection.execute(f"FROM {source.view}").fetchall()
    assert rows == [("1", 1, "u"), ("x", None, None), (None, 3, "v")]


def test_two_dimensional_arrays_are_lists(workspace: Workspace) -> None:
    source = open_source(workspace, {"v": np.array([[0.25, 0.75], [0.5, 0.5]])})
    rows = workspace.connection.execute(f"FROM {source.view}").fetchall()
    assert rows == [([0.25, 0.75],), ([0.5, 0.5],)]


def test_codes_in_csv_are_not_turned_into_truth_values(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "codes.csv"
    path.write_text("code,answer,id,day\nT,yes,007,2020-01-01\nF,no,008,2020-01-02\n")
    source = open_source(workspace, path)
    rows = workspace.connection.execute(f"FROM {source.view}").fetchall()
    assert rows == [("T", "yes", "007", "2020-01-01"), ("F", "no", "008", "2020-01-02")]


def test_no_line_of_a_csv_is_skipped(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "marks.csv"
    path.write_text('a,b\n#1,"x\ny"\n2,"<b>,"\n')
    source = open_source(workspace, path)
    rows = workspace.connection.execute(f"FROM {source.view}").fetchall()
    assert rows == [("#1", "x\ny"), ("2", "<b>,")]


def test_types_that_change_late_in_a_csv(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("a\n" + "\n".join(map(str, range(50_000))) + "\nx1\n")
    source = open_source(workspace, path)
    assert source.columns == {"a": "VARCHAR"}
    assert source.rows == 50_001


def test_names_with_pattern_characters_are_read_as_they_are(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(wide_frame(), preserve_index=False)
    pq.write_table(table, tmp_path / "t[1]*.parquet")
    pq.write_table(table.slice(0, 1), tmp_path / "t1.parquet")
    with align(TableSpec(sources_of(tmp_path / "t[1]*.parquet"))) as found:
        assert found.n_rows == 6


def test_sqlite_columns_of_several_types(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a, b, c)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(None, 1, 1), (2, 1.5, "x")])
    connection.close()
    source = open_source(workspace, f"{path}::t")
    assert source.columns == {"a": "BIGINT", "b": "DOUBLE", "c": "VARCHAR"}
    assert workspace.connection.execute(f"FROM {source.view}").fetchall() == [
        (None, 1.0, "1"),
        (2, 1.5, "x"),
    ]


def test_databases_are_not_changed(tmp_path: Path) -> None:
    for kind in ("duckdb", "sqlite"):
        given = make_source(kind, tmp_path)
        path = Path(given.partition("::")[0])
        before = path.read_bytes()
        align(TableSpec(sources_of(given))).close()
        assert path.read_bytes() == before


def test_provenance_hashes_files_and_not_frames(workspace: Workspace, tmp_path: Path) -> None:
    path = make_source("csv", tmp_path)
    found = provenance([open_source(workspace, path), open_source(workspace, wide_frame())])
    assert found == (
        {"name": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "rows": 6},
        {"name": "pandas DataFrame", "sha256": None, "rows": 6},
    )


def test_cubes_are_told_by_their_metadata(tmp_path: Path) -> None:
    table = pa.table({"n": [1]})
    plain, cube = tmp_path / "plain.parquet", tmp_path / "cube.parquet"
    pq.write_table(table, plain)
    pq.write_table(table.replace_schema_metadata({"fairweight_cube": "1"}), cube)
    (tmp_path / "text.csv").write_text("a\n1\n")
    assert is_cube(cube)
    assert not is_cube(plain)
    assert not is_cube(tmp_path / "text.csv")
    assert not is_cube(tmp_path / "nothing.parquet")
    assert not is_cube(wide_frame())


def test_class_order_of_scores_comes_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    frame = {
        "example_id": [1, 2],
        "label": ["b", "a"],
        "pred_dense": ["b", "a"],
        "pred_int8": ["b", "b"],
        "scores_dense": [[0.9, 0.1], [0.2, 0.8]],
        "scores_int8": [[0.6, 0.4], [0.6, 0.4]],
    }
    table = pa.table(frame).replace_schema_metadata({"fairweight_classes": json.dumps(["b", "a"])})
    pq.write_table(table, path)
    with align(TableSpec(sources_of(path))) as found:
        assert found.score_classes == ("b", "a")
        assert [member.scores for member in found.members] == ["v0", "v1"]
    with pytest.raises(InputError, match="have 2 entries, but 3 classes"):
        align(TableSpec(sources_of(path), score_classes=["a", "b", "c"]))


# --- what cannot be read -----------------------------------------------------------------------


def broken(kind: str, folder: Path) -> Any:
    path = folder / f"broken.{kind.partition(' ')[0]}"
    whole = folder / "whole.parquet"
    pq.write_table(pa.table({"a": list(range(10_000))}), whole)
    if kind == "csv latin":
        path.write_bytes("example_id,label\n1,é\n2,ü\n".encode("latin-1"))
    elif kind == "csv empty":
        path.write_bytes(b"")
    elif kind == "csv header":
        path.write_text("example_id,label\n")
    elif kind == "csv ragged":
        path.write_text("a,b\n1,2\n3,4,5,6\n7,8\n")
    elif kind == "parquet cut":
        path.write_bytes(whole.read_bytes()[:2_000])
    elif kind == "arrow cut":
        feather.write_feather(pa.table({"a": list(range(10_000))}), path)
        path.write_bytes(path.read_bytes()[:2_000])
    elif kind == "jsonl bad":
        path.write_text('{"a": 1}\n{"a":\n')
    elif kind == "xyz unknown":
        path.write_text("what is this")
    elif kind == "sqlite bad":
        path.write_text("no database")
    elif kind == "duckdb sql":
        write_duckdb(path, wide_frame())
        return f"{path}::SELECT nothing FROM predictions"
    elif kind == "duckdb write":
        write_duckdb(path, wide_frame())
        return f"{path}::WITH a AS (SELECT 1) SELECT 1; DROP TABLE predictions"
    elif kind == "duckdb name":
        write_duckdb(path, wide_frame())
        return f"{path}::prediction"
    elif kind == "sqlite sql":
        write_sqlite(path, wide_frame())
        return f"{path}::SELECT FROM"
    elif kind == "csv query":
        path.write_text("a\n1\n")
        return f"{path}::SELECT 1"
    elif kind == "folder":
        return folder / "."
    elif kind == "glob":
        return str(folder / "nothing-*.csv")
    elif kind == "remote":
        return "s3://bucket/table.parquet"
    return path


BROKEN = {
    "csv latin": "is not UTF-8 text; save it as UTF-8",
    "csv empty": r"is empty \(0 bytes\)",
    "csv header": "has no rows",
    "csv ragged": "line 3 has 4 columns, but the header has 2",
    "parquet cut": "not a complete Parquet file",
    "arrow cut": "not a complete Arrow file",
    "jsonl bad": "cannot be read: Malformed JSON",
    "xyz unknown": "unknown kind; fairweight reads Parquet",
    "sqlite bad": "neither a DuckDB nor a SQLite file",
    "duckdb sql": "The query on .* cannot be run .*nothing",
    "duckdb write": "must be one SELECT",
    "duckdb name": "Did you mean 'predictions'",
    "sqlite sql": "The query on .* cannot be run .*syntax error",
    "csv query": "is not a DuckDB or SQLite file",
    "glob": "No file matches",
    "remote": "reads local files only",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_cannot_be_read_gets_its_sentence(
    kind: str, tmp_path: Path, workspace: Workspace
) -> None:
    given = broken(kind, tmp_path)
    with pytest.raises(InputError, match=BROKEN[kind]) as caught:
        open_source(workspace, given)
    assert "\n" not in str(caught.value)


IN_CASE_ALONE = (
    ["a", "Sex", "sex"],
    "has the columns 'Sex' and 'sex', which differ in upper and lower case alone",
)
TWICE = (["a", "é", "é"], "has two columns named 'é'; rename one of them")


@pytest.mark.parametrize(
    ("names", "sentence", "suffix"),
    [
        *(
            (*IN_CASE_ALONE, s)
            for s in (".csv", ".jsonl", ".json", ".parquet", ".arrow", ".arrows")
        ),
        *((*TWICE, s) for s in (".csv", ".parquet", ".arrow", ".arrows")),
    ],
)
def test_two_columns_that_would_be_one(
    names: list[str], sentence: str, suffix: str, tmp_path: Path, workspace: Workspace
) -> None:
    path = tmp_path / f"t{suffix}"
    table = pa.Table.from_arrays([pa.array(["x", "y"])] * 3, names=names)
    if suffix == ".csv":
        path.write_text("\ufeff" + ",".join(names) + "\nx,x,x\ny,y,y\n", encoding="utf-8")
    elif suffix.startswith(".json"):
        lines = [json.dumps(dict.fromkeys(names, value)) for value in "xy"]
        path.write_text("\n".join(lines) if suffix == ".jsonl" else f"[{','.join(lines)}]")
    elif suffix == ".parquet":
        pq.write_table(table, path)
    else:
        opened = pa.ipc.new_stream if suffix == ".arrows" else pa.ipc.new_file
        with opened(str(path), table.schema) as sink:
            sink.write_table(table)
    with pytest.raises(InputError, match=sentence):
        open_source(workspace, path)


def test_a_name_of_two_lines_in_a_csv_of_windows(workspace: Workspace, tmp_path: Path) -> None:
    """The quoted name has a line end of another kind than the lines."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'id|"two\nlines"|b\r\n1|x|"y\nz"\r\n2|v|w\r\n')
    source = open_source(workspace, path)
    rows = workspace.connection.execute(f"FROM {source.view}").fetchall()
    assert list(source.columns) == ["id", "two\nlines", "b"]
    assert rows == [(1, "x", "y\nz"), (2, "v", "w")]


def test_blanks_around_names_of_a_csv_are_no_part_of_them(
    tmp_path: Path, workspace: Workspace
) -> None:
    (tmp_path / "t.csv").write_text('a, b ,"c "\n1, 2,3\n')
    source = open_source(workspace, tmp_path / "t.csv")
    assert list(source.columns) == ["a", "b", "c"]
    (tmp_path / "t.csv").write_text("a,sex, sex\n1,2,3\n")
    with pytest.raises(InputError, match="has two columns named 'sex'"):
        open_source(workspace, tmp_path / "t.csv")


@pytest.mark.parametrize("compression", [None, "lz4"])
def test_arrow_files_are_mapped_and_joined_by_name(
    compression: str | None, tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not read ahead by a data set of Arrow, whose threads outlive a scan that is left early."""
    import pyarrow.dataset

    monkeypatch.delattr(pyarrow.dataset, "dataset")
    parts = (
        pa.table({"id": pa.array([1, 2], pa.int16()), "sex": ["F", "M"]}),
        pa.table({"sex": ["F"], "id": pa.array([3], pa.int64()), "age": [7]}),
    )
    for number, part in enumerate(parts):
        feather.write_feather(
            part, tmp_path / f"{number}.feather", compression=compression or "uncompressed"
        )
    source = open_source(workspace, tmp_path / "*.feather")
    rows = workspace.connection.execute(f'SELECT id, sex, age FROM "{source.view}" ORDER BY id')
    assert rows.fetchall() == [(1, "F", None), (2, "M", None), (3, "F", 7)]
    feather.write_feather(pa.table({"id": ["x"], "sex": [["F"]]}), tmp_path / "2.feather")
    with pytest.raises(InputError, match=r"do not fit together .* with one type in all of them"):
        open_source(workspace, tmp_path / "*.feather")


def test_missing_file_names_the_nearest(tmp_path: Path, workspace: Workspace) -> None:
    (tmp_path / "dense.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match=r"does not exist. Did you mean '.*dense.csv'"):
        open_source(workspace, tmp_path / "dnse.csv")
    with pytest.raises(InputError, match="there is no folder"):
        open_source(workspace, tmp_path / "nowhere" / "dense.csv")


def test_a_folder_without_parquet(tmp_path: Path, workspace: Workspace) -> None:
    with pytest.raises(InputError, match="holds no Parquet file"):
        open_source(workspace, tmp_path)


def test_a_database_with_two_tables_asks_which(tmp_path: Path, workspace: Workspace) -> None:
    path = tmp_path / "t.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE a (x)")
        connection.execute("CREATE TABLE b (x)")
    connection.close()
    with pytest.raises(InputError, match=r"has 2 tables \('a', 'b'\)"):
        open_source(workspace, path)
    with pytest.raises(UnknownNameError, match="table 'c' does not exist"):
        open_source(workspace, f"{path}::c")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"a": [1, 2], "b": [1]}, "different lengths: 'a' has 2, 'b' has 1"),
        ({"a": 3}, "is 3; give one value per example"),
        ({"a": np.zeros((2, 2, 2))}, "has 3 dimensions"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns named 'a'"),
        (pd.DataFrame({"a": []}), "has no rows"),
        (pd.DataFrame(), "has no columns"),
        (42, "A table was given as int"),
    ],
)
def test_frames_that_are_no_tables(given: Any, sentence: str, workspace: Workspace) -> None:
    with pytest.raises(InputError, match=sentence):
        open_source(workspace, given)


@pytest.mark.parametrize(
    ("paths", "options", "looked"),
    [
        (["dense.csv", "int8.parquet"], {}, False),
        (["dense.csv", "samples_boolq_1.jsonl"], {}, True),
        (["run.eval", "other.eval"], {}, True),
        (["details_boolq_1.parquet"], {}, True),  # of lighteval
        (["dense.csv", "folder"], {}, True),
        (["dense.csv", "int8.csv"], {"log_tasks": ("boolq",)}, True),  # is refused
        (["dense.csv", "int8.csv"], {"score_threshold": 0.3}, True),
        (["dense.csv", "int8.csv"], {"examples": "instances.json"}, True),
        (["dense.csv", "int8.csv"], {"examples": "people.csv"}, False),
    ],
)
def test_what_cannot_be_a_log_is_not_looked_at(
    paths: list[str], options: dict[str, Any], looked: bool, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    given = sources_of([str(tmp_path / path) for path in paths])
    if "examples" in options:
        options = {"examples": sources_of([str(tmp_path / options["examples"])])[0]}
    assert may_be_logs(TableSpec(given, **options)) is looked
