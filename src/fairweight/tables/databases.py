"""Tables and queries in DuckDB and SQLite files, opened for reading only.

A file may hold views and macros that read other files. They, and queries, run in a connection of
their own that sees the one file and nothing else of the system.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as url_quote

from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.connection import Workspace
from fairweight.tables.sql import literal, quote

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

BATCH_ROWS = 50_000
LARGE = f"typeof({{0}}) = 'integer' AND abs({{0}}) > {2**53}"  # a double would round them
_SELECT = re.compile(r"\s*(select|with|from|values)\b", re.IGNORECASE)


def open_duckdb(workspace: Workspace, path: Path, query: str | None) -> str:
    """A view of a table of a DuckDB file, or a temporary table with the rows of a query."""
    import duckdb

    connection = workspace.connection
    database = workspace.name("file")
    connection.execute(f"ATTACH {literal(str(path))} AS {quote(database)} (READ_ONLY)")
    tables: dict[str, tuple[str, str]] = {}
    for table, schema, kind in connection.execute(
        "SELECT table_name, table_schema, table_type FROM information_schema.tables "
        "WHERE table_catalog = ? ORDER BY table_schema <> 'main', table_name",
        [database],
    ).fetchall():
        tables.setdefault(table, (f"{quote(schema)}.{quote(table)}", kind))
    if query is None or not _SELECT.match(query):
        chosen, kind = tables[_choose(path, query, list(tables))]
        if kind == "BASE TABLE":
            view = workspace.name("source")
            place = f"{quote(database)}.{chosen}"
            connection.execute(f"CREATE TEMP VIEW {quote(view)} AS FROM {place}")
            return view
        query = f"FROM {chosen}"
    connection.execute(f"DETACH {quote(database)}")
    try:
        with _alone(workspace, path) as held:
            statements = held.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise InputError(f"The query on '{path}' must be one SELECT; given was: {query}")
            rows = held.sql(query.rstrip().rstrip(";"))
            return _copied(workspace, rows.to_arrow_reader(BATCH_ROWS))
    except duckdb.Error as error:
        raise _bad_query(path, query, error) from error


@contextmanager
def _alone(workspace: Workspace, path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection in which the file is all that there is: no other file, no network, no Python."""
    import duckdb

    spill = os.path.join(str(workspace.config["temp_directory"]), "alone")
    config = {**workspace.config, "temp_directory": spill}
    with duckdb.connect(":memory:", config=config) as held:
        held.execute(f"ATTACH {literal(str(path))} AS file (READ_ONLY)")
        held.execute("USE file")  # its tables are named without it
        for setting in (
            "python_enable_replacements = false",
            "arrow_lossless_conversion = true",
            "enable_external_access = false",  # after attaching, which is access too
            "lock_configuration = true",
        ):
            held.execute(f"SET {setting}")
        with workspace.interrupts.watching(held):
            yield held


def _copied(workspace: Workspace, rows: pa.RecordBatchReader) -> str:
    table, stream = workspace.name("source"), workspace.name("stream")
    workspace.connection.register(stream, rows)
    try:
        workspace.connection.execute(f"CREATE TEMP TABLE {quote(table)} AS FROM {quote(stream)}")
    finally:
        workspace.connection.unregister(stream)
    return table


def open_sqlite(workspace: Workspace, path: Path, query: str | None) -> str:
    """A temporary table with the rows of a SQLite table or query, copied in batches."""
    import pyarrow as pa

    # DuckDB pulls the batches from a thread of its own.
    address = f"file:{url_quote(str(path))}?mode=ro"
    file = sqlite3.connect(address, uri=True, check_same_thread=False)
    try:
        file.execute("PRAGMA trusted_schema = OFF")  # views call harmless functions only
        if query is None or not _SELECT.match(query):
            names = [
                str(row[0])
                for row in file.execute(
                    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                    "AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name"
                )
            ]
            query = f"SELECT * FROM {quote(_choose(path, query, names))}"
        query = query.rstrip().rstrip(";")
        schema = _sqlite_schema(file, query)
        cursor = file.execute(query)
        reader = pa.RecordBatchReader.from_batches(schema, _batches(cursor, schema))
        return _copied(workspace, reader)
    except sqlite3.Error as error:
        raise _bad_query(path, query or "", error) from error
    finally:
        file.close()


def _choose(path: Path, name: str | None, names: list[str]) -> str:
    if name is not None:
        plain = name.strip('"')
        if plain in names:
            return plain
        raise UnknownNameError(
            f"In '{path}', the table", plain, names, remedy="A query starts with SELECT."
        )
    if len(names) == 1:
        return names[0]
    shown = ", ".join(f"'{n}'" for n in names) or "none"
    raise InputError(
        f"'{path}' has {len(names)} tables ({shown}); say which one, or give a query: "
        f"'{path}::SELECT ...'."
    )


def _bad_query(path: Path, query: str, error: Exception) -> InputError:
    message = " ".join(str(error).split("LINE 1:")[0].split())
    return InputError(f"The query on '{path}' cannot be run ({query}): {message}")


def _sqlite_schema(file: sqlite3.Connection, query: str) -> pa.Schema:
    """Types by looking at every value: SQLite columns hold whatever was put into them."""
    import pyarrow as pa

    names = [item[0] for item in file.execute(f"SELECT * FROM ({query}) LIMIT 0").description]
    kinds = ("integer", "real", "text", "blob", "large")
    conditions = [*(f"typeof({{0}}) = '{kind}'" for kind in kinds[:4]), LARGE]
    asked = ", ".join(f"max({c.format(quote(name))})" for name in names for c in conditions)
    found = file.execute(f"SELECT {asked} FROM ({query})").fetchone()
    fields = []
    for position, name in enumerate(names):
        flags = found[position * len(kinds) : (position + 1) * len(kinds)]
        present = {kind for kind, there in zip(kinds, flags, strict=True) if there}
        fields.append(pa.field(name, _arrow_type(present)))
    return pa.schema(fields)


def _arrow_type(present: set[str]) -> pa.DataType:
    import pyarrow as pa

    if not present:
        return pa.string()
    if present <= {"integer", "large"}:
        return pa.int64()
    if present <= {"integer", "real"}:  # with large ones beside fractions it is text
        return pa.float64()
    return pa.binary() if present == {"blob"} else pa.string()


def _batches(cursor: sqlite3.Cursor, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    texts = [pa.types.is_string(field.type) for field in schema]
    while rows := cursor.fetchmany(BATCH_ROWS):
        arrays = []
        for values, is_text, field in zip(zip(*rows, strict=True), texts, schema, strict=True):
            held = [_text(value) for value in values] if is_text else list(values)
            arrays.append(pa.array(held, type=field.type))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return None if value is None else str(value)
