"""Queries and paths: what they give, and that a query sees nothing but the tables given."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairweight as fw
from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.spec import TableSpec

ROOT = Path(__file__).parents[2]
KEEP = "SELECT *, upper(kind) AS loud FROM data WHERE example_id < 30"


@pytest.fixture
def table() -> dict[str, list[object]]:
    return {
        "example_id": list(range(40)),
        "kind": ["x", "y"] * 20,
        "label": ["a", "b"] * 20,
        "pred_dense": ["a", "b"] * 20,
        "pred_int8": ["a", "b"] * 10 + ["b", "b"] * 10,
    }


def read(source: object, query: str | None = None, **more: object) -> list[tuple[object, ...]]:
    with align(TableSpec(source, query=query, **more)) as aligned:  # type: ignore[arg-type]
        return aligned.connection.sql(f"FROM {aligned.view} ORDER BY example_id").fetchall()


def test_every_kind_of_table_can_be_queried_alike(
    table: dict[str, list[object]], tmp_path: Path
) -> None:
    held = pa.table(table)
    pq.write_table(held, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text(held.to_pandas().to_csv(index=False))
    rows = held.to_pylist()
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = [
        read(source, KEEP.replace("example_id <", "CAST(example_id AS INT) <"), groups="loud")
        for source in (held, *(str(tmp_path / f"t.{end}") for end in ("parquet", "csv", "jsonl")))
    ]
    plain = [[tuple(map(str, row)) for row in sorted(rows, key=lambda r: int(r[0]))]
             for rows in found]  # fmt: skip
    assert len(plain[0]) == 30
    assert plain[0][1] == ("1", "b", "Y", "b", "b")
    assert all(rows == plain[0] for rows in plain[1:])


def test_a_query_runs_on_each_of_several_files(
    table: dict[str, list[object]], tmp_path: Path
) -> None:
    held = pa.table(table)
    for name in ("dense", "int8"):
        own = held.select(["example_id", "kind", "label"]).append_column(
            "answer", held[f"pred_{name}"]
        )
        pq.write_table(own, tmp_path / f"{name}.parquet")
    files = [f"{name}={tmp_path}/{name}.parquet" for name in ("dense", "int8")]
    made = fw.audit_table(
        files, query="SELECT * EXCLUDE answer, answer AS prediction FROM data", n_boot=50
    )
    row = made.overall.query("metric == 'accuracy'").iloc[0]
    assert row["compressed"] == 0.75
    assert made.result.provenance.request["tables"]["query"].startswith("SELECT * EXCLUDE")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM read_csv('{other}')", "it may read nothing but"),
        ("SELECT * FROM '{other}'", "it may read nothing but"),
        ("SELECT * FROM glob('{folder}/*')", "it may read nothing but"),
        ("SELECT * FROM read_text('/etc/hostname')", "it may read nothing but"),
        ("SELECT * FROM read_csv('http://localhost:9/a.csv')", "it may read nothing but"),
        ("COPY data TO '{folder}/copy.csv'", "one SELECT"),
        ("ATTACH '{folder}/new.db'", "one SELECT"),
        ("INSTALL httpfs", "one SELECT"),
        ("SET threads = 1", "one SELECT"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("DROP VIEW data", "one SELECT"),
        ("", "one SELECT"),
        ("SELECT nothing FROM data", "nothing"),
        ("SELEC * FROM data", "cannot be run"),
        ("SELECT * FROM table_of_python", "cannot be run"),
        ("SELECT * FROM data WHERE example_id > 1000", "finds no rows"),
        ("SELECT label, label FROM data", "label"),
    ],
)
def test_a_query_sees_the_table_and_nothing_else(
    query: str, said: str, table: dict[str, list[object]], tmp_path: Path
) -> None:
    table_of_python = pa.table({"a": [1]})
    assert table_of_python.num_rows == 1
    pq.write_table(pa.table(table), tmp_path / "given.parquet")
    other = tmp_path / "other.csv"
    other.write_text("example_id,label\n1,a\n")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=said):
        read(str(tmp_path / "given.parquet"), query.format(other=other, folder=tmp_path))
    assert sorted(tmp_path.iterdir()) == before


def test_text_stays_text_and_is_a_number_where_one_is_needed(tmp_path: Path) -> None:
    lines = ["example_id,label,pred_dense,pred_int8,weight"]
    lines += [f"00{i},a{i % 2},a{i % 2},a0,{i + 1}.5" for i in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    rows = read(str(tmp_path / "t.csv"), "SELECT * FROM data", weight="weight", groups="label")
    assert rows[0][0] == "000"
    assert rows[0][2] == 1.5
    with pytest.raises(InputError, match=r"CAST\(column AS DOUBLE\)"):
        read(str(tmp_path / "t.csv"), "SELECT weight + 1 AS w FROM data")


def test_paths_lead_into_records(tmp_path: Path) -> None:
    lines = [
        {
            "doc": {"id": i, "facts": {"subject": "law" if i % 2 else "art"}, "right": "b"},
            "text": json.dumps({"deep": {"place": i % 3}}),
            "a.b": "plain",
            "pred_dense": "b",
            "pred_int8": "ab"[i % 2],
        }
        for i in range(20)
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    names = {"id": "doc.id", "label": "doc.right"}
    path = str(tmp_path / "t.jsonl")
    rows = read(path, None, **names, groups=("doc.facts.subject", "text.deep.place", "a.b"))
    assert [row[2:5] for row in rows[:3]] == [
        ("art", "0", "plain"),
        ("law", "1", "plain"),
        ("art", "2", "plain"),
    ]
    made = fw.audit_table(path, **names, groups=["doc.facts.subject*text.deep.place"], n_boot=50)
    assert "doc.facts.subject=law & text.deep.place=1" in set(made.by_group["group"])
    with pytest.raises(InputError, match=r"doc\.faults"):
        read(path, None, **names, groups=("doc.faults",))
    with pytest.raises(InputError, match="empty in every row"):
        read(path, None, **names, groups=("text.nothing",))
    with pytest.raises(InputError, match="leads nowhere"):
        read(path, None, **names, groups=("doc.id.more",))


@pytest.fixture
def real() -> Path:
    folder = Path(os.environ.get("FAIRWEIGHT_REAL", ROOT.parent / "shared" / "real"))
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}: set FAIRWEIGHT_REAL to run this test")
    return folder


def test_the_real_mmlu_file_is_refused_by_its_double_id_and_read_by_a_query(real: Path) -> None:
    path = str(real / "mmlu_ollama_fp16_q8_q4" / "predictions.parquet")
    names = {"id": "id", "variant": "arm", "label": "gold", "prediction": "response"}
    with pytest.raises(InputError, match=r"[a-z_]+::[0-9a-f]+"):
        fw.audit_table(path, **names, groups="subject")
    query = (
        "SELECT * EXCLUDE task FROM data WHERE task = 'mmlu' "
        'QUALIFY row_number() OVER (PARTITION BY arm, id ORDER BY "row") = 1'
    )
    with align(TableSpec(path, query=query, **names, groups="subject")) as aligned:
        assert aligned.n_examples == 499
