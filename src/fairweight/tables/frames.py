"""Frames and arrays in memory as Arrow tables, with one meaning for everything that is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fairweight.errors import InputError
from fairweight.tables.canonical import canonical

if TYPE_CHECKING:
    import pyarrow as pa


def kind_of_frame(given: Any) -> str | None:
    """What sort of in-memory table this is; None if it is none. Imports nothing to find out."""
    for base in type(given).__mro__:
        module = base.__module__.partition(".")[0]
        found = _KINDS.get((module, base.__name__))
        if found is not None:
            return found
    return "mapping" if isinstance(given, Mapping) else None


_KINDS: dict[tuple[str, str], str] = {
    ("pandas", "DataFrame"): "pandas DataFrame",
    ("polars", "DataFrame"): "polars DataFrame",
    ("polars", "LazyFrame"): "polars LazyFrame",
    ("pyarrow", "Table"): "pyarrow Table",
    ("pyarrow", "RecordBatch"): "pyarrow RecordBatch",
    ("pyarrow", "RecordBatchReader"): "pyarrow RecordBatchReader",
    ("pyarrow", "Dataset"): "pyarrow Dataset",
    ("duckdb", "DuckDBPyRelation"): "DuckDB relation",
    ("_duckdb", "DuckDBPyRelation"): "DuckDB relation",
}


def to_arrow(given: Any, kind: str, name: str) -> pa.Table:
    """An in-memory frame as an Arrow table. Streams and data sets are not for this function."""
    import pyarrow as pa

    if kind == "pandas DataFrame":
        return _table(_pandas_columns(given), name)
    if kind == "polars LazyFrame":
        given = given.collect()
    if kind.startswith("polars"):
        return _table(_polars_columns(given), name)
    if kind == "pyarrow RecordBatch":
        return _plain(pa.Table.from_batches([given]), name)
    if kind == "pyarrow Table":
        return _plain(given, name)
    return _table(((str(key), value) for key, value in given.items()), name)


def _pandas_columns(frame: Any) -> Iterable[tuple[str, Any]]:
    # A named index often is the example's identity; an unnamed one is a row number.
    if any(label is not None for label in frame.index.names):
        frame = frame.reset_index()
    for position, label in enumerate(frame.columns):
        yield str(label), frame.iloc[:, position]


def _polars_columns(frame: Any) -> Iterable[tuple[str, Any]]:
    for column in frame.get_columns():
        kind = str(column.dtype)
        if kind in ("Int128", "UInt128"):  # Arrow has no such type; the text is the same number
            from polars import String

            column = column.cast(String)
        yield str(column.name), column.to_list() if kind == "Object" else column.to_arrow()


def _plain(table: pa.Table, name: str) -> pa.Table:
    check_names(table.column_names, name)
    return table


def _table(columns: Iterable[tuple[str, Any]], name: str) -> pa.Table:
    import pyarrow as pa

    held = list(columns)
    check_names((label for label, _ in held), name)
    arrays = {
        label: column_to_arrow(values, f"column '{label}' of {name}") for label, values in held
    }
    lengths = {label: len(array) for label, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"'{label}' has {length:,}" for label, length in lengths.items())
        raise InputError(f"The columns of {name} have different lengths: {shown}.")
    table: pa.Table = pa.table(arrays)
    return table


def check_names(names: Iterable[str], name: str) -> None:
    """Raise where two columns have one name; DuckDB takes `Sex` and `sex` for one, too.

    >>> check_names(["sex", "Sex"], "'a.csv'")
    Traceback (most recent call last):
    ...
    fairweight.errors.InputError: 'a.csv' has the columns 'sex' and 'Sex', which differ in upper
    and lower case alone; rename one of them.
    """
    seen: dict[str, str] = {}
    for label in names:
        other = seen.get(label.lower())
        if other == label:
            raise InputError(f"{name} has two columns named '{label}'; rename one of them.")
        if other is not None:
            raise InputError(
                f"{name} has the columns '{other}' and '{label}', which differ in upper and lower "
                "case alone; rename one of them."
            )
        seen[label.lower()] = label


def column_to_arrow(values: Any, name: str) -> pa.Array | pa.ChunkedArray:
    """One column as Arrow: what is missing becomes null, mixed types become canonical text.

    >>> column_to_arrow([1, "b", None], "x").to_pylist()
    ['1', 'b', None]
    >>> column_to_arrow([1, 2], "x").type
    DataType(int64)
    """
    import numpy as np
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise InputError(f"{name} is {values!r}; give one value per example (a list or an array).")
    shape = getattr(values, "shape", (len(values),))
    if len(shape) > 2:
        raise InputError(f"{name} has {len(shape)} dimensions; give one or two.")
    if len(shape) == 2:
        values = np.asarray(values)
        flat = column_to_arrow(values.reshape(-1), name)
        offsets = np.arange(0, values.size + 1, max(values.shape[1], 1), dtype=np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), flat)
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return _mixed(values, name)


def _mixed(values: Any, name: str) -> pa.Array:
    import pyarrow as pa

    texts: list[str | None] = []
    for value in values:
        if hasattr(value, "__len__") and not isinstance(value, str | bytes):
            raise InputError(
                f"{name} holds lists beside single values or lists of mixed types; "
                "give one number or text per example."
            )
        try:
            # pandas' own missing values (NA, NaT) are the only ones not equal to themselves.
            absent = value is None or bool(value != value)
        except TypeError:
            absent = True
        texts.append(None if absent else canonical(value))
    return pa.array(texts, type=pa.string())
