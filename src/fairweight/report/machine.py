"""The audit for programs: JSON that reads back into the same audit; its tables as files."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fairweight.auditing.explain.tables import COLUMNS
from fairweight.auditing.result import AuditResult, Provenance
from fairweight.errors import InputError
from fairweight.report.frames import BOOLEAN, FRAMES, INTEGER, LATER, TEXT
from fairweight.report.numbers import missing, shown
from fairweight.report.tables import write_tables

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FRAMES", "SCHEMA", "from_json", "records", "to_json", "write_tables"]

SCHEMA = 1


def to_json(result: AuditResult) -> str:
    """The whole audit as JSON; what is undefined (or infinite) is null, integers stay integers."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "version": result.provenance.version,
        "baseline": result.baseline,
        "variants": list(result.variants),
        "classes": list(result.classes),
        "positive": result.positive,
        "tasks": list(result.tasks),
        "groupings": list(result.groupings),
        "single_columns": list(result.single_columns),
        "n_examples": result.n_examples,
        "test_set": result.test_set,
        "pairing": result.pairing,
        "notes": list(result.notes),
        "provenance": asdict(result.provenance),
    }
    document = _plain(document)
    for name in FRAMES:
        document[name] = records(getattr(result, name))
    table = result.variants_table
    document["variants_table"] = None if table is None else records(table)
    if result.explanations:
        document["explanations"] = {
            name: records(frame) for name, frame in result.explanations.items()
        }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as dictionaries of plain values."""
    names = [str(name) for name in frame.columns]
    columns = [_cells(frame[name]) for name in frame.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _cells(column: pd.Series) -> list[Any]:
    """The values of a column as JSON has them."""
    if column.dtype.kind == "f":  # most columns of a large audit: masked in one step
        import numpy as np

        values = column.to_numpy(dtype=float)
        plain = values.astype(object)
        plain[~np.isfinite(values)] = None
        return plain.tolist()
    # Text repeats: each distinct value is looked at once.
    known: dict[Any, Any] = {}
    cells = []
    for value in column.tolist():
        if isinstance(value, str):
            cells.append(value)
            continue
        try:
            key = (type(value), value)  # 1, 1.0 and True are equal, and not the same in JSON
            if key not in known:
                known[key] = _cell(value)
            cells.append(known[key])
        except TypeError:  # a list or another value that cannot be a key
            cells.append(_cell(value))
    return cells


def _cell(value: Any) -> Any:
    """One value of a frame as JSON has it.

    >>> [_cell(v) for v in (1, 2.0, 0.5, float("nan"), float("inf"), "x", None)]
    [1, 2.0, 0.5, None, None, 'x', None]
    """
    if isinstance(value, str | int):  # bool is an int
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None if missing(value) else _plain(value)


def _plain(value: Any) -> Any:
    """Containers and foreign scalars as JSON has them; a path or a date becomes its text."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        inner = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [_plain(item) for item in inner]
    if value is None or isinstance(value, str | int | float):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return records(value)
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return _plain(value.tolist())
    return str(value)


def from_json(text: str) -> AuditResult:
    """The audit that `to_json` wrote."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"The audit is not valid JSON (line {error.lineno}, column {error.colno}); give the "
            "audit.json that fairweight wrote."
        ) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise InputError(
            f"The audit has the schema {schema!r}, this version reads schema {SCHEMA}; make the "
            "audit again, or read it with the version of fairweight that wrote it."
        )
    try:
        origin = document["provenance"]
        return AuditResult(
            baseline=document["baseline"],
            variants=tuple(document["variants"]),
            classes=tuple(document["classes"]),
            positive=document["positive"],
            tasks=tuple(document["tasks"]),
            groupings=tuple(document["groupings"]),
            single_columns=tuple(document["single_columns"]),
            n_examples=document["n_examples"],
            test_set=document.get("test_set"),
            pairing=document["pairing"],
            notes=tuple(document["notes"]),
            provenance=Provenance(
                version=origin["version"],
                command=origin["command"],
                created=origin["created"],
                inputs=tuple(origin["inputs"]),
                options=origin["options"],
            ),
            variants_table=_table(document["variants_table"]),
            explanations=_explanations(document.get("explanations", {})),
            **{
                name: _frame(document.get(name, []) if name in LATER else document[name], columns)
                for name, columns in FRAMES.items()
            },
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"The audit lacks {error} or has it in another form; give the audit.json that "
            "fairweight wrote."
        ) from None


def _table(rows: list[dict[str, Any]] | None) -> pd.DataFrame | None:
    import pandas as pd

    return None if rows is None else pd.DataFrame(rows)


def _frame(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> pd.DataFrame:
    """Rows as a frame with the types of the contract."""
    import pandas as pd

    # Columns that an earlier version did not have are empty.
    extra = [name for name in rows[0] if name not in columns] if rows else []
    names = [*columns, *extra]
    made = {}
    for name in names:
        values = [row.get(name) for row in rows]
        made[name] = pd.Series(values, dtype=_dtype(name, values))
    return pd.DataFrame(made, columns=names)


_TABLE_NAME = re.compile("[a-z][a-z0-9_]*")


def _explanations(tables: dict[str, list[dict[str, Any]]]) -> dict[str, pd.DataFrame]:
    """Tables of exemplars and explanations; columns have the types of what was written."""
    import pandas as pd

    made = {}
    for name, rows in tables.items():
        if not _TABLE_NAME.fullmatch(name):  # it becomes the name of a file
            raise InputError(
                f"The audit has an explanation called '{shown(name, 60)}'; give the audit.json "
                "that fairweight wrote."
            )
        columns = list(rows[0]) if rows else list(COLUMNS.get(name, ()))
        cells = {column: [row[column] for row in rows] for column in columns}
        made[name] = pd.DataFrame(
            {column: pd.Series(held, dtype=_written(held)) for column, held in cells.items()},
            columns=columns,
        )
    return made


def _written(values: list[Any]) -> str:
    """The type of a column by what is in it.

    >>> _written(["a", None]), _written([1, None]), _written([1.5, None]), _written([True, False])
    ('object', 'Int64', 'float64', 'bool')
    """
    kinds = {type(value) for value in values if value is not None}
    whole = None not in values
    if kinds == {bool}:
        return "bool" if whole else "boolean"
    if kinds == {int}:
        return "int64" if whole else "Int64"
    return "float64" if kinds and kinds <= {int, float} else "object"


def _dtype(name: str, values: list[Any]) -> str:
    """Text by name, numbers by what was written: a weighted count has a fraction.

    >>> _dtype("n", [1, None]), _dtype("n", [1.5]), _dtype("count", [2]), _dtype("shift", [None])
    ('Int64', 'float64', 'int64', 'float64')
    """
    if name in TEXT:
        return "str"
    if name in BOOLEAN:
        return "boolean"
    whole = not any(isinstance(value, float) for value in values)
    if whole and name in INTEGER:
        return "Int64"
    return "int64" if whole and values and None not in values else "float64"
