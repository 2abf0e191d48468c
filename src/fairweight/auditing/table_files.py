"""Frames as files: CSV that spreadsheets take, Parquet that reads back exactly, rows of JSON."""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.auditing import schema
from fairweight.auditing.schema import TABLES, other_form
from fairweight.base.trust import inside
from fairweight.base.wording import missing
from fairweight.errors import InputError

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

LEVEL = 9  # of zstd: 4 % smaller than 1 at the same speed
FEW_VALUES, HARDLY_REPEAT = 0.05, 0.9  # different values, as a share of a column's numbers
MOST_VALUES = 1_000_000_000  # of one table that is read


def write_frames(
    frames: Mapping[str, pd.DataFrame], directory: str | os.PathLike[str]
) -> tuple[Path, ...]:
    """Every frame as CSV and as Parquet under its name; the paths written."""
    import duckdb

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with duckdb.connect() as connection:
        for name, held in frames.items():
            frame = schema.typed(name, held)
            written.append(write_csv(connection, frame, folder / f"{name}.csv"))
            written.append(write_parquet(frame, folder / f"{name}.parquet"))
    return tuple(written)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A path beside the file to write to; at the end it replaces the file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def write_parquet(frame: pd.DataFrame, path: Path) -> Path:
    """Numbers are stored by how often they repeat, each way where it is the smallest.

    Those that hardly repeat are split into their bytes, those of few values are a dictionary; of
    those between, such as limits that several metrics share, zstd finds the runs that come again.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as parquet

    with _beside(path) as place, place.open("wb") as file:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        different = {
            name: pc.count_distinct(column).as_py() / max(len(column) - column.null_count, 1)
            for name, column in zip(table.column_names, table.columns, strict=True)
            if pa.types.is_float64(column.type)
        }
        split = [name for name, share in different.items() if share > HARDLY_REPEAT]
        parquet.write_table(
            table,
            file,
            compression="zstd",
            compression_level=LEVEL,
            use_dictionary=[n for n in table.column_names if different.get(n, 0.0) < FEW_VALUES],
            use_byte_stream_split=split or False,
        )
    return path


def write_csv(connection: duckdb.DuckDBPyConnection, frame: pd.DataFrame, path: Path) -> Path:
    """By DuckDB, which is fast and writes numbers so that they read back exactly."""
    import duckdb

    try:
        with _beside(path) as place:
            columns, changed = [], {}
            for name, column in frame.items():
                quoted = '"' + str(name).replace('"', '""') + '"'
                if str(column.dtype).startswith("float"):  # NaN is null
                    quoted = f"CASE WHEN isnan({quoted}) THEN NULL ELSE {quoted} END AS {quoted}"
                columns.append(quoted)
                if column.dtype.kind in "OUSTV":  # text is made safe for a spreadsheet
                    cells = {v: cell_text(v) for v in column.unique() if isinstance(v, str)}
                    if any(before != after for before, after in cells.items()):
                        changed[str(name)] = column.astype(object).map(
                            lambda v, c=cells: c.get(v, v)
                        )
            connection.register("frame", frame.assign(**changed))
            query = f"COPY (SELECT {', '.join(columns)} FROM frame) TO ? (FORMAT csv, HEADER)"
            connection.execute(query, [str(place)])
    except duckdb.IOException as error:
        # DuckDB says only in words what the system answered; whoever writes the folder needs both.
        code = errno.ENOSPC if "No space left" in str(error) else errno.EIO
        raise OSError(code, os.strerror(code), str(path)) from error
    return path


_FORMULA = re.compile(r"'*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")  # the last four are full width
_PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def cell_text(text: str) -> str:
    """Text that a spreadsheet shows and does not run; different names stay different.

    >>> [cell_text(t) for t in ("=1+1", "-1", "+1.5e3", "-a", "'=x", "a=b")]
    ["'=1+1", '-1', '+1.5e3', "'-a", "''=x", 'a=b']
    """
    if _FORMULA.match(text) and not _PLAIN_NUMBER.fullmatch(text):
        return "'" + text
    return text


# Rows as plain values.


def plain_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as dictionaries of plain values."""
    names = [str(name) for name in frame.columns]
    columns = [_cells(frame[name]) for name in frame.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _cells(column: pd.Series) -> list[Any]:
    """The values of a column as JSON has them."""
    if column.dtype.kind == "f":  # most columns of a large audit: masked in one step
        import numpy as np

        values = column.to_numpy(dtype=float)
        found = values.astype(object)
        found[~np.isfinite(values)] = None
        return found.tolist()
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
    return None if missing(value) else plain(value)


def plain(value: Any) -> Any:
    """Containers and foreign scalars as JSON has them; a path or a date becomes its text."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        inner = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [plain(item) for item in inner]
    if value is None or isinstance(value, str | int | float):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return plain_records(value)
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return plain(value.tolist())
    return str(value)


# Parquet that anybody may have written.


def read_table(path: Path) -> pd.DataFrame:
    """A table that `write_frames` wrote, with the types of its columns; it is checked."""
    held = read_parquet(path.parent, path.name, path.stem, None)
    schema.check(path.stem, held, {})
    return held


def read_parquet(folder: Path, name: str, table: str, rows: int | None) -> pd.DataFrame:
    """A table of a folder, read with the types that its columns should have."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as parquet

    place = inside(folder, name, links=True)
    try:
        with parquet.ParquetFile(place) as file:
            size, names = file.metadata.num_rows, file.schema_arrow.names
            if rows is not None and size != rows:
                raise InputError(
                    f"'{name}' has {size:,} rows where audit.json says {rows:,}: they are not of "
                    "one audit; give the folder as fairweight audit wrote it."
                )
            if size * max(len(names), 1) > MOST_VALUES or len(set(names)) < len(names):
                raise InputError(f"'{name}' is not a table that fairweight wrote; make it again.")
            held = file.read().replace_schema_metadata(None)
    except (OSError, pa.ArrowException, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"'{name}' beside audit.json cannot be read as Parquet; make the audit again."
        ) from error
    kinds = TABLES[table].kinds if table in TABLES else {}
    for column, kind in zip(held.column_names, held.schema.types, strict=True):
        number = pa.types.is_floating(kind) or pa.types.is_integer(kind)
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        truth = pa.types.is_boolean(kind)
        wanted = kinds.get(column, "mixed")
        fits = {"text": text, "number": number, "whole": number, "truth": truth}
        if not (pa.types.is_null(kind) or fits.get(wanted, text or number or truth)):
            form = schema.FORMS[wanted]
            raise other_form(f"{table}.{column}", f"should be {form} or empty, not {kind}")
    try:
        made = held.to_pandas(
            split_blocks=True,
            types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get,
        )
    except (pa.ArrowException, UnicodeError, ValueError) as error:
        raise InputError(f"'{name}' beside audit.json holds text that is no UTF-8.") from error
    return schema.typed(table, made)
