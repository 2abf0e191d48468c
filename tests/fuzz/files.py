"""Tables as files: every format, encoding and dialect that people hand in, written and read.

The reader is the oracle's. It knows how a file was written, so it guesses nothing: cells of CSV
are text, JSON numbers keep their kind, Parquet and Arrow columns their type.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TEXT = ("csv", "tsv")
SUFFIXES = {
    "csv": ".csv", "tsv": ".tsv", "jsonl": ".jsonl", "json": ".json", "parquet": ".parquet",
    "arrow": ".arrow", "feather": ".feather", "stream": ".arrows",
}  # fmt: skip


@dataclass(frozen=True)
class Style:
    """How a table is written."""

    format: str = "csv"
    encoding: str = "utf-8"  # utf-8-sig has a byte-order mark
    newline: str = "\n"
    delimiter: str = ","
    quote_all: bool = False
    row_group: int | None = None  # rows of a Parquet row group or an Arrow batch
    odd_numbers: bool = False  # JSON: 0.5 as 0.50 in one row and as 0.5e0 in the next


@dataclass
class Column:
    """A column: Python values (None is missing), and the type that typed formats give it."""

    name: str
    values: list[Any]
    kind: str = "text"  # text, category, int, small, float, bool, decimal, date, list, struct


@dataclass
class Table:
    """A file to be written, in a folder of its own case."""

    path: str
    columns: list[Column]
    style: Style = field(default_factory=Style)
    damage: str | None = None  # what is done to the file after it was written

    @property
    def rows(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


_TYPES: dict[str, Any] = {
    "text": pa.string(), "category": pa.dictionary(pa.int32(), pa.string()), "int": pa.int64(),
    "small": pa.int16(), "float": pa.float64(), "bool": pa.bool_(), "decimal": pa.decimal128(18, 2),
    "date": pa.date32(), "list": pa.list_(pa.float64()),
    "struct": pa.struct([("a", pa.int64()), ("b", pa.string())]),
}  # fmt: skip


def text_of(value: Any) -> str:
    """A value as a cell of a text file; a missing one is an empty cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list | dict):
        return json.dumps(value)
    return str(value)


def _arrow(column: Column) -> pa.Array:
    if column.kind in ("text", "category"):
        texts = [None if value is None else text_of(value) for value in column.values]
        return pa.array(texts, type=pa.string()).cast(_TYPES[column.kind])
    return pa.array(column.values, type=_TYPES[column.kind])


def _json(column: Column, value: Any) -> Any:
    if column.kind in ("text", "category") and value is not None:
        return text_of(value)
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, date) else value


def _json_line(table: Table, row: int) -> str:
    parts = []
    for column in table.columns:
        value = _json(column, column.values[row])
        text = json.dumps(value, ensure_ascii=row % 2 == 0)
        if table.style.odd_numbers and isinstance(value, float) and re.fullmatch("[-0-9.]+", text):
            text += "0" if row % 2 else "e0"
        parts.append(f"{json.dumps(column.name)}: {text}")
    return "{" + ", ".join(parts) + "}"


def write(table: Table, folder: Path) -> None:
    """Write the table, and damage it where the case asks for that."""
    path, style = folder / table.path, table.style
    path.parent.mkdir(parents=True, exist_ok=True)
    if style.format in TEXT:
        path.write_bytes(_delimited(table).encode(style.encoding))
    elif style.format in ("json", "jsonl"):
        lines = [_json_line(table, row) for row in range(table.rows)]
        text = "\n".join(lines) if style.format == "jsonl" else "[" + ",\n".join(lines) + "]"
        path.write_text(text + "\n", encoding=style.encoding)
    else:
        held = pa.Table.from_arrays([_arrow(c) for c in table.columns], names=table.names)
        _write_arrow(held, path, style)
    if table.damage is not None:
        _damage(path, table.damage, style)


def _delimited(table: Table) -> str:
    stream = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if table.style.quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(
        stream,
        delimiter=table.style.delimiter,
        lineterminator=table.style.newline,
        quoting=quoting,
    )
    writer.writerow(table.names)
    for row in range(table.rows):
        writer.writerow([text_of(column.values[row]) for column in table.columns])
    return stream.getvalue()


def _write_arrow(held: pa.Table, path: Path, style: Style) -> None:
    size = style.row_group or max(1, held.num_rows)
    if style.format == "parquet":
        pq.write_table(held, path, row_group_size=size)
        return
    opened = pa.ipc.new_stream if style.format == "stream" else pa.ipc.new_file
    with opened(str(path), held.schema) as sink:
        sink.write_table(held, max_chunksize=size)


def _damage(path: Path, damage: str, style: Style) -> None:
    held = path.read_bytes()
    if damage == "cut":
        path.write_bytes(held[: len(held) * 2 // 3])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "ragged":  # a cell too many in the last line
        path.write_bytes(held + f"x{style.delimiter * 40}y{style.newline}".encode(style.encoding))
    elif damage == "garbage":
        path.write_bytes(b"\x00\xff\xfe\x80" * 16)
    else:
        raise ValueError(damage)


def read(table: Table, folder: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """Names and rows of a file as it is on disk, with no type guessed."""
    path, style = folder / table.path, table.style
    if style.format in TEXT:
        text = path.read_bytes().decode(style.encoding)
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=style.delimiter)
        header = next(lines)
        width = len(str(len(header) - 1))
        # Blanks around a name are no part of it: "a, b" has the columns a and b.
        names = [name.strip() or f"column{at:0{width}}" for at, name in enumerate(header)]
        rows: list[dict[str, Any]] = [
            {name: cell if cell != "" else None for name, cell in zip(names, line, strict=True)}
            for line in lines
            if line
        ]
        for name in names:
            _empty_nan(name, rows)
        return names, rows
    if style.format == "jsonl":
        records = [json.loads(line) for line in _lines(path)]
        return _keys(records), records
    if style.format == "json":
        records = json.loads(path.read_text(encoding="utf-8"))
        return _keys(records), records
    if style.format == "parquet":
        held = pq.ParquetFile(path).read()
    elif style.format == "stream":
        held = pa.ipc.open_stream(path.read_bytes()).read_all()
    else:
        held = pa.ipc.open_file(path.read_bytes()).read_all()
    return held.column_names, held.to_pylist()


def _empty_nan(name: str, rows: Sequence[dict[str, Any]]) -> None:
    """In a column of a text file that holds numbers alone, `nan` is a missing one."""
    cells = [row[name] for row in rows if row[name] is not None]
    if any(cell.lower() in ("nan", "-nan") for cell in cells) and all(map(is_number, cells)):
        for row in rows:
            if row[name] is not None and row[name].lower() in ("nan", "-nan"):
                row[name] = None


def is_number(text: str) -> bool:
    """Whether a cell reads as a number; a leading zero is the mark of a code.

    >>> [is_number(text) for text in ("1e2", "-0.5", "inf", "007", "1_000", "x")]
    [True, True, True, False, False, False]
    """
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and not re.match("-?0[0-9]", text.strip())


def _lines(path: Path) -> Sequence[str]:
    # Not splitlines(): other line separators may stand inside a text.
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _keys(records: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for record in records for key in record))
