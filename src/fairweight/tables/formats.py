"""CSV and TSV files, read once and whole into a temporary table, as text.

No type is guessed: `007`, `1e2` and 20-digit codes stay what they are. A column in which every
value is a whole number in its plain form (`7`, `-12`) is kept as whole numbers, which lose nothing
and are counted faster. Empty cells are missing; so is `nan` in a column of numbers.
"""

from __future__ import annotations

import csv
import io
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as url_quote

import pyarrow as pa

from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.connection import Workspace, encoding_sentence, literal, one_row, quote
from fairweight.tables.frames import check_names

if TYPE_CHECKING:
    import duckdb
DELIMITERS = (",", "\t", ";", "|")
HEADER_BYTES = 1 << 21  # as long as a line may be for DuckDB
MOST_AGGREGATES = 64  # in one query
HEAD_ROWS = 20_480  # what these rows show of a column is tried, and checked on all others
_LATE = "fairweight: a later value is no whole number"


def read_delimited(
    workspace: Workspace, files: Sequence[Path], listed: str
) -> tuple[str, dict[str, str]]:
    """A temporary table with every line of the files, and the types of its columns of numbers.

    Nothing is skipped. `listed` is the list of files as SQL.
    """
    import duckdb

    table = workspace.name("source")
    delimiter = delimiter_of(_head(files[0]), first="\t" if ".tsv" in files[0].suffixes else ",")
    ends = []  # of lines, in files where a name holds one too
    for file in files:
        head = _head(file)
        # Two columns of one name are refused: DuckDB would call the second one NAME_1.
        # newline="": lines may end in \r alone, and quoted names may hold any of these.
        lines = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
        try:
            header = next(lines, [])
        except csv.Error:
            raise InputError(
                f"The header of '{file}' has a column name of more than "
                f"{csv.field_size_limit():,} characters; shorten it, or close the quotation mark "
                "that it begins with."
            ) from None
        if any("\n" in name for name in header):
            ends.append(_line_end(head))
        texts = (name.encode("latin-1").decode("utf-8-sig", errors="replace") for name in header)
        names = [text.strip() for text in texts]  # as DuckDB does: "a, b" has the columns a and b
        check_names([name for name in names if name], f"'{file}'")
    options = [
        "header = true",
        "skip = 0",
        "comment = ''",
        "quote = '\"'",
        "escape = '\"'",
        f"delim = {literal(delimiter)}",
        f"union_by_name = {'true' if len(files) > 1 else 'false'}",
        "all_varchar = true",
    ]
    if ends == ["\r\n"] * len(files):
        options.append(r"new_line = '\r\n'")  # which DuckDB does not find out behind such a name
    rows = f"read_csv({listed}, {', '.join(options)})"

    def read(whole: Sequence[str], columns: Sequence[str]) -> None:
        selected = [_as_whole(c) if c in whole else quote(c) for c in columns]
        workspace.connection.execute(
            f"CREATE TEMP TABLE {quote(table)} AS SELECT {', '.join(selected)} FROM {rows}"
        )

    try:
        described = workspace.connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()
        columns = [str(row[0]) for row in described]
        head = f"(SELECT * FROM {rows} LIMIT {HEAD_ROWS})"
        try:
            read(_columns_where(workspace, head, columns, PLAIN_WHOLE), columns)
        except duckdb.InvalidInputException as error:
            if _LATE not in str(error):
                raise
            read(_columns_where(workspace, rows, columns, PLAIN_WHOLE), columns)
    except duckdb.InvalidInputException as error:
        for file in files:
            _refuse_ragged(file, delimiter, error)
        raise
    return table, _number_types(workspace, table)


# Conditions on a text `{0}`. The plain form of a whole number: `7`, not `007`, `+7`, `7.0`, `7e0`.
PLAIN_WHOLE = "TRY_CAST({0} AS BIGINT)::VARCHAR = {0}"
DIGITS = "regexp_full_match({0}, '-?[0-9]+') AND TRY_CAST({0} AS BIGINT) IS NOT NULL"
# A leading zero is the mark of a code: between '00' and '0:' are the texts that begin 00 to 09.
NUMBER = (
    "TRY_CAST({0} AS DOUBLE) IS NOT NULL AND NOT contains({0}, '_') "
    "AND NOT ({0} BETWEEN '00' AND '0:' OR {0} BETWEEN '-00' AND '-0:')"
)


def _as_whole(column: str) -> str:
    name = quote(column)
    number = f"TRY_CAST({name} AS BIGINT)"
    # Single digits, which most classes are, need no writing back: that halves the cost.
    return (
        f"CASE WHEN strlen({name}) = 1 AND {name} BETWEEN '0' AND '9' THEN {number} "
        f"WHEN {name} IS NULL OR {PLAIN_WHOLE.format(name)} THEN {number} "
        f"ELSE error({literal(_LATE)}) END AS {name}"
    )


def _number_types(workspace: Workspace, table: str) -> dict[str, str]:
    """Text columns in which every value is a number: BIGINT if all are digits, else DOUBLE."""
    described = workspace.connection.execute(f"DESCRIBE {quote(table)}").fetchall()
    text = [str(row[0]) for row in described if row[1] == "VARCHAR"]
    head, whole = f"(SELECT * FROM {quote(table)} LIMIT {HEAD_ROWS})", quote(table)
    likely = _columns_where(workspace, head, text, NUMBER)
    numbers = _columns_where(
        workspace, whole, likely, f"{NUMBER} AND NOT isnan(TRY_CAST({{0}} AS DOUBLE))"
    )
    for column in _columns_where(workspace, whole, [c for c in likely if c not in numbers], NUMBER):
        empty_nan(workspace, table, column)
        numbers.append(column)
    digits = _columns_where(workspace, head, numbers, DIGITS)
    digits = _columns_where(workspace, whole, digits, DIGITS)
    return {column: "BIGINT" if column in digits else "DOUBLE" for column in numbers}


def empty_nan(workspace: Workspace, table: str, column: str) -> None:
    """`nan` is how a column of numbers says that one is missing."""
    name = quote(column)
    workspace.connection.execute(
        f"UPDATE {quote(table)} SET {name} = NULL WHERE isnan(TRY_CAST({name} AS DOUBLE))"
    )


def _columns_where(
    workspace: Workspace, rows: str, columns: Sequence[str], condition: str
) -> list[str]:
    """The columns that have values, all of which meet a condition."""
    if not columns:
        return []
    if len(columns) > MOST_AGGREGATES:
        # DuckDB compares every aggregate with every other; as rows, columns need one alone.
        selected = ", ".join(quote(c) for c in columns)
        met = workspace.connection.execute(
            f"SELECT name FROM (UNPIVOT (SELECT {selected} FROM {rows}) ON COLUMNS(*) "
            f"INTO NAME name VALUE value) GROUP BY name "
            f"HAVING bool_and(coalesce({condition.format('value')}, false))"
        ).fetchall()
        known = {str(name) for (name,) in met}
        return [column for column in columns if column in known]
    asked = ", ".join(
        f"bool_and(coalesce({condition.format(quote(c))}, false)) FILTER ({quote(c)} IS NOT NULL)"
        for c in columns
    )
    found = one_row(workspace.connection, f"SELECT {asked} FROM {rows}")
    return [column for column, met in zip(columns, found, strict=True) if met]


def delimiter_of(head: str, first: str = ",") -> str:
    r"""The character that separates the columns of the header: the most frequent unquoted one.

    Of two that are as frequent, the one that divides the next line alike; else `first`: names of a
    TSV file may hold commas.

    >>> [delimiter_of(line) for line in ("a;b;c", 'a,"x;y;z"', "a\tb", "a", "a;b\r1,2,3")]
    [';', ',', '\t', ',', ';']
    >>> delimiter_of("x,0\tx,1\tlabel", first="\t"), delimiter_of("id|two\twords\n7|8")
    ('\t', '|')
    """
    unquoted = re.split("[\r\n]", "".join(head.split('"')[::2]), maxsplit=1)[0]
    ordered = list(dict.fromkeys((first, *DELIMITERS)))
    most = max(map(unquoted.count, ordered))
    likely = [delimiter for delimiter in ordered if unquoted.count(delimiter) == most]
    if len(likely) > 1 and most:
        for delimiter in likely:
            with suppress(csv.Error):
                lines = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
                if len(next(lines, [])) == len(next(lines, [])):
                    return delimiter
    return likely[0]


def _line_end(head: str) -> str:
    """How the header's line ends; '' where it has no end."""
    found = re.search("\r\n|[\r\n]", re.sub('"[^"]*"', "", head))
    return found[0] if found else ""


def _head(file: Path) -> str:
    with pa.input_stream(str(file), compression="detect") as stream:
        # The separators are plain ASCII, whatever the encoding of the names around them.
        return bytes(stream.read(HEADER_BYTES)).decode("latin-1")


def _refuse_ragged(file: Path, delimiter: str, error: Exception) -> None:
    """Raise with the first line that has more or fewer columns than the header."""
    with pa.input_stream(str(file), compression="detect") as stream:
        try:
            rows = csv.reader(io.TextIOWrapper(stream, "utf-8", newline=""), delimiter=delimiter)
            width = len(next(rows, []))
            for row in rows:
                if row and len(row) != width:
                    raise InputError(
                        f"'{file}' cannot be read: line {rows.line_num} has {len(row)} columns, "
                        f"but the header has {width}; correct the line, or quote what holds a "
                        "separator."
                    ) from error
        except UnicodeDecodeError:
            raise InputError(encoding_sentence(f"'{file}'")) from error
        except csv.Error:
            return


# Tables and queries in DuckDB and SQLite files, opened for reading only.
#
# A file may hold views and macros that read other files. They, and queries, run in a connection of
# their own that sees the one file and nothing else of the system.

BATCH_ROWS = 50_000
LARGE = f"typeof({{0}}) = 'integer' AND abs({{0}}) > {2**53}"  # a double would round them
_SELECT = re.compile(r"\s*(select|with|from|values)\b", re.IGNORECASE)


def open_duckdb(workspace: Workspace, path: Path, query: str | None) -> str:
    """A view of a table of a DuckDB file, or a temporary table with the rows of a query."""
    import duckdb

    connection = workspace.connection
    database = workspace.attach(path)
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
    workspace.detach(database)
    try:
        with _alone(workspace, path) as held:
            statements = held.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise InputError(f"The query on '{path}' must be one SELECT; given was: {query}")
            rows = held.sql(query.rstrip().rstrip(";"))
            return copied(workspace, rows.to_arrow_reader(BATCH_ROWS))
    except duckdb.Error as error:
        raise _bad_query(path, query, error) from error


@contextmanager
def _alone(workspace: Workspace, path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection in which the file is all that there is: no other file, no network, no Python."""
    import duckdb

    spill = str(Path(str(workspace.config["temp_directory"]), "alone"))
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


def copied(workspace: Workspace, rows: Any) -> str:
    """A temporary table with the rows of a stream of Arrow batches."""
    table, stream = workspace.name("source"), workspace.name("stream")
    workspace.connection.register(stream, rows)
    try:
        workspace.connection.execute(f"CREATE TEMP TABLE {quote(table)} AS FROM {quote(stream)}")
    finally:
        workspace.connection.unregister(stream)
    return table


def open_sqlite(workspace: Workspace, path: Path, query: str | None) -> str:
    """A temporary table with the rows of a SQLite table or query, copied in batches."""
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
        return copied(workspace, reader)
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
    names = [item[0] for item in file.execute(f"SELECT * FROM ({query}) LIMIT 0").description]
    kinds = ("integer", "real", "text", "blob", "large")
    conditions = [*(f"typeof({{0}}) = '{kind}'" for kind in kinds[:4]), LARGE]
    asked = ", ".join(f"max({c.format(quote(name))})" for name in names for c in conditions)
    found = file.execute(f"SELECT {asked} FROM ({query})").fetchone()
    fields = []
    for position, name in enumerate(names):
        flags = found[position * len(kinds) : (position + 1) * len(kinds)]
        present = {kind for kind, there in zip(kinds, flags, strict=True) if there}
        if present and present <= {"integer", "large"}:
            kind = pa.int64()
        elif present and present <= {"integer", "real"}:  # beside fractions large ones are text
            kind = pa.float64()
        else:
            kind = pa.binary() if present == {"blob"} else pa.string()
        fields.append(pa.field(name, kind))
    return pa.schema(fields)


def _batches(cursor: sqlite3.Cursor, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a query in batches; in a column of text, whatever is there as text."""
    while rows := cursor.fetchmany(BATCH_ROWS):
        arrays = []
        for values, field in zip(zip(*rows, strict=True), schema, strict=True):
            held: list[Any] = list(values)
            if pa.types.is_string(field.type):
                plain = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in held]
                held = [None if value is None else str(value) for value in plain]
            arrays.append(pa.array(held, type=field.type))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
