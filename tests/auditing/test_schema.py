"""Tables, their columns and types, and what is refused because it does not fit them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing import schema
from fairweight.auditing.schema import AUDIT_TABLES, TABLES, Status
from fairweight.errors import InputError

TYPES = {"text": "str", "number": "float64", "whole": "Int64", "truth": "boolean"}


@pytest.mark.parametrize("name", TABLES)
def test_every_column_has_a_name_a_type_and_a_meaning(name: str) -> None:
    entry = TABLES[name]
    assert entry.about
    assert len(set(entry.names)) == len(entry.names)
    for column in entry.columns:
        assert re.fullmatch("[a-z][a-z0-9_]*", column.name)
        assert column.kind in schema.FORMS
        assert column.meaning.strip()
        assert "|" not in column.meaning  # it is a cell of the page


@pytest.mark.parametrize("name", TABLES)
def test_a_frame_without_rows_has_all_columns_and_their_types(name: str) -> None:
    made = schema.frame(name)
    assert tuple(made.columns) == TABLES[name].names
    for column in TABLES[name].columns:
        if column.kind != "mixed":
            assert str(made[column.name].dtype) == TYPES[column.kind]


def test_rows_get_the_types_of_the_table_whatever_they_hold() -> None:
    rows = [
        {"split": "test", "by": "overall", "n": 3.0, "share": 1, "group": None, "class": None},
        {"split": "test", "by": "class", "n": None, "share": None, "group": None, "class": "7"},
    ]
    made = schema.frame("data", rows)
    assert made["n"].dtype == "Int64"
    assert made["n"].tolist() == [3, pd.NA]
    assert made["share"].tolist()[0] == 1.0
    assert np.isnan(made["share"].tolist()[1])
    assert made["group"].dtype == "str"
    assert made["group"].isna().all()
    weighted = schema.frame("data", [{"n": 1.5}, {"n": 2.0}])
    assert weighted["n"].tolist() == [1.5, 2.0]  # a weighted count has a fraction


def test_columns_of_ones_own_have_the_type_of_what_they_hold() -> None:
    held = pd.DataFrame(
        {
            "whole": pd.array([1, 2], dtype="Int64"),
            "gap": pd.Series([1, None], dtype=object),
            "real": np.array([1.5, 2.5], dtype=np.float32),
            "truth": pd.Series([True, False], dtype=object),
            "names": pd.Series(["a", None], dtype=object),
            "both": pd.Series(["a", 1], dtype=object),
            "nothing": pd.Series([None, None], dtype=object),
            "day": pd.to_datetime(["2026-01-02", "2026-01-03"]),
        }
    )
    made = schema.typed(None, held.set_index(pd.Index([7, 9])))
    assert made.index.tolist() == [0, 1]
    assert made.dtypes.astype(str).to_dict() == {
        "whole": "int64", "gap": "Int64", "real": "float64", "truth": "bool", "names": "str",
        "both": "str", "nothing": "str", "day": "str",
    }  # fmt: skip


def test_a_typed_frame_is_left_as_it_is() -> None:
    made = schema.frame("power", [{"variant": "int8", "n": 4}])
    assert schema.typed("power", made) is made


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"by": "everybody"},
            "'data.by' holds 'everybody', which the audit does not have in row 2",
        ),
        ({"split": None}, "'data.split' is empty in row 2"),
        ({"n": -1}, "'data.n' holds -1, which no audit has, in row 2"),
        ({"share": 1e200}, "'data.share' holds 1e+200, which no audit has, in row 2"),
        ({"task": "hat"}, "'data.task' holds 'hat', which the audit does not have in row 2"),
    ],
)
def test_table_column_and_row_of_what_does_not_fit_are_named(
    change: dict[str, Any], sentence: str
) -> None:
    row = {"split": "test", "by": "overall", "n": 3, "share": 1.0}
    known: dict[str, set[str]] = {"variant": {"dense", "int8"}, "task": set()}
    schema.check("data", schema.frame("data", [row, row]), known)
    with pytest.raises(InputError, match=re.escape(sentence)):
        schema.check("data", schema.frame("data", [row, row | change]), known)


def test_infinite_numbers_are_numbers() -> None:
    schema.check("power", schema.frame("power", [_power(np.inf)]), {"variant": {"int8"}})


def _power(needed: float) -> dict[str, Any]:
    return {"variant": "int8", "metric": "accuracy", "by": "overall", "n": 9, "n_needed": needed}


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("ok", "ok", ""),
        (None, "ok", ""),
        (float("nan"), "ok", ""),
        ("small_group: n < 10", "small_group", "n < 10"),
        ("not_estimable: no scores: none", "not_estimable", "no scores: none"),
        ("ok; one root alone: no clustered fit", "ok", "one root alone: no clustered fit"),
        ("confirmed", "confirmed", ""),
        ("bound: 3 changes", "bound", "3 changes"),
    ],
)
def test_a_status_is_a_kind_and_a_reason(text: Any, kind: str, reason: str) -> None:
    found = Status.of(text)
    assert (found.kind, found.reason) == (kind, reason)
    assert found.ok == (kind == "ok")


def test_the_text_of_a_status_reads_back() -> None:
    for one in (Status("ok"), Status("small_group", "n < 10"), Status("bound", "a: b")):
        assert Status.of(str(one)) == one


def test_the_tables_of_every_audit() -> None:
    assert AUDIT_TABLES[0] == "results"
    assert {"lead", "left_out"} == {name for name in AUDIT_TABLES if TABLES[name].later}
