from __future__ import annotations

import csv
import json
import math
from dataclasses import fields, replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairweight.auditing.archive import from_json, to_json, write_tables
from fairweight.auditing.result import RESULT_COLUMNS, AuditResult
from fairweight.auditing.schema import AUDIT_TABLES, column_names
from fairweight.auditing.table_files import cell_text
from fairweight.errors import InputError


def same(left: pd.DataFrame, right: pd.DataFrame) -> None:
    """Equal cells; nothing is nothing, whatever stands for it."""
    assert list(left.columns) == list(right.columns)
    for name in left.columns:
        a, b = left[name], right[name]
        assert a.isna().tolist() == b.isna().tolist(), name
        assert a.dropna().tolist() == b.dropna().tolist(), name


@pytest.mark.parametrize("name", ["result", "hostile", "bare"])
def test_json_reads_back_into_the_same_audit(name: str, request: pytest.FixtureRequest) -> None:
    audit: AuditResult = request.getfixturevalue(name)
    text = to_json(audit)
    again = from_json(text)
    for frame in AUDIT_TABLES:
        same(getattr(audit, frame), getattr(again, frame))
    for one in fields(AuditResult):
        if one.name not in (*AUDIT_TABLES, "cube"):
            assert getattr(again, one.name) == getattr(audit, one.name)
    assert to_json(again) == text


def test_explanations_read_back_and_are_absent_without_them(
    hostile_explained: AuditResult, result: AuditResult
) -> None:
    assert "explanations" not in json.loads(to_json(result))
    text = to_json(hostile_explained)
    again = from_json(text)
    assert list(again.explanations) == list(hostile_explained.explanations)
    for name, frame in hostile_explained.explanations.items():
        same(frame, again.explanations[name])
    assert to_json(again) == text
    people = again.explanations["individuals"]
    assert people["n"].dtype.kind == "i"
    assert people["tilt"].dtype.kind == "f"


def test_a_table_without_rows_keeps_its_columns(explained: AuditResult) -> None:
    none = explained.explanations["slices"].iloc[:0]
    again = from_json(to_json(replace(explained, explanations={"slices": none})))
    assert list(again.explanations["slices"].columns) == list(none.columns)


def test_the_name_of_a_table_is_no_path(explained: AuditResult) -> None:
    odd = replace(explained, explanations={"../x": explained.explanations["slices"]})
    with pytest.raises(InputError, match=r"has a table called '\.\./x'"):
        from_json(to_json(odd))


def test_csv_is_written_only_where_it_is_asked_for(result: AuditResult, tmp_path: Path) -> None:
    assert not [path for path in write_tables(result, tmp_path) if path.suffix == ".csv"]


def test_explanations_are_written_as_parquet(explained: AuditResult, tmp_path: Path) -> None:
    written = {path.name for path in write_tables(explained, tmp_path)}
    assert {f"{name}.parquet" for name in explained.explanations} <= written
    for name, frame in explained.explanations.items():
        same(pd.read_parquet(tmp_path / f"{name}.parquet"), frame)


def test_json_has_the_contract_s_shape(result: AuditResult) -> None:
    document = json.loads(to_json(result), parse_constant=lambda c: pytest.fail(c))
    assert document["schema"] == 2
    assert list(document)[:4] == ["schema", "version", "baseline", "variants"]
    row = document["results"][0]
    assert tuple(row) == RESULT_COLUMNS
    assert row["n"] == 4000
    assert isinstance(row["n"], int)
    assert isinstance(row["n_family"], int)
    assert row["n_clusters"] is None
    assert len(document["results"]) == len(result.results)


def test_infinite_and_foreign_values_become_json(result: AuditResult) -> None:
    import numpy as np

    power = result.power.copy()
    power.loc[0, "n_needed"] = math.inf
    options = {"path": Path("a/b"), "array": np.arange(3), "nan": math.nan, "set": {"b", "a"}}
    odd = replace(
        result,
        power=power,
        provenance=replace(result.provenance, options=options),
    )
    document = json.loads(to_json(odd))
    assert document["power"][0]["n_needed"] is None
    plain = {"path": "a/b", "array": [0, 1, 2], "nan": None, "set": ["a", "b"]}
    assert document["provenance"]["options"] == plain


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"schema": 3}', "schema 3, this version reads schemas 1 to 2"),
        ('{"schema": 1.0}', r"schema 1\.0, this version reads"),
        ("[]", "schema None"),
        ("{", "not valid JSON"),
        ('{"schema": 1}', "'variants' is missing"),
    ],
)
def test_other_json_is_refused_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        from_json(text)


def test_tables_hold_every_row(hostile: AuditResult, tmp_path: Path) -> None:
    written = write_tables(hostile, tmp_path / "tables", csv=True)
    assert {p.name for p in written} == {p.name for p in (tmp_path / "tables").iterdir()}
    same(pd.read_parquet(tmp_path / "tables/results.parquet"), hostile.results)
    with (tmp_path / "tables/results.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(hostile.results)
    assert [r["group"] for r in rows] == hostile.results["group"].fillna("").tolist()
    exact = [float(r["shift"]) for r in rows if r["shift"]]
    assert exact == hostile.results["shift"].dropna().tolist()
    by_class = pd.read_csv(tmp_path / "tables/by_class.csv")
    assert len(by_class) == (hostile.results["by"] == "class").sum()


def test_frames_without_rows_have_their_headings(bare: AuditResult, tmp_path: Path) -> None:
    write_tables(bare, tmp_path, csv=True)
    for name in AUDIT_TABLES:
        first = (tmp_path / f"{name}.csv").read_text().splitlines()[0]
        assert first == ",".join(column_names(name))


def test_formulas_in_names_are_defused_in_csv_only(result: AuditResult, tmp_path: Path) -> None:
    confusion = result.confusion.copy()
    confusion.loc[:2, "label"] = ["=1+1", "-1", "@cmd"]
    write_tables(replace(result, confusion=confusion), tmp_path, csv=True)
    with (tmp_path / "confusion.csv").open(newline="") as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    assert labels[:4] == ["'=1+1", "-1", "'@cmd", confusion["label"][3]]
    assert json.loads(to_json(replace(result, confusion=confusion)))["confusion"][0]["label"] == (
        "=1+1"
    )


@given(st.text(), st.text())
def test_defused_names_stay_different(left: str, right: str) -> None:
    assert (cell_text(left) == cell_text(right)) == (left == right)


@given(st.text())
def test_no_defused_name_starts_a_formula(name: str) -> None:
    made = cell_text(name)
    if made[:1] in ("=", "+", "-", "@"):
        float(made)  # a plain number is harmless


def test_a_folder_that_cannot_be_made_is_an_error_of_the_system(
    result: AuditResult, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotADirectoryError):
        write_tables(result, tmp_path / "file" / "tables")
