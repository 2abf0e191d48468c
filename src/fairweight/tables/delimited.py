"""CSV and TSV files, read once and whole into a temporary table."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from fairweight.errors import InputError
from fairweight.tables.connection import Workspace
from fairweight.tables.sql import literal, quote

DELIMITERS = (",", "\t", ";", "|")
HEADER_BYTES = 1 << 20
# Booleans and dates are left as text: DuckDB would turn the codes F and T, or yes and no, into
# truth values.
_TYPES = "auto_type_candidates = ['BIGINT', 'DOUBLE', 'VARCHAR']"


def read_delimited(workspace: Workspace, files: Sequence[Path], listed: str) -> str:
    """The name of a temporary table with every line of the files; nothing is skipped.

    `listed` is the list of files as SQL.
    """
    import duckdb

    table = workspace.name("source")
    delimiter = delimiter_of(_head(files[0]))
    for file in files:
        _refuse_repeated_names(file, delimiter)
    options = [
        "header = true",
        "skip = 0",
        "comment = ''",
        "quote = '\"'",
        "escape = '\"'",
        f"delim = {literal(delimiter)}",
        f"union_by_name = {'true' if len(files) > 1 else 'false'}",
    ]

    def read(*more: str) -> None:
        workspace.connection.execute(
            f"CREATE TEMP TABLE {quote(table)} AS SELECT * FROM read_csv("
            f"{listed}, {', '.join((*options, *more))})"
        )

    try:
        try:
            read(_TYPES)
        except duckdb.ConversionException:
            # Types were guessed from the first lines and a later line disagrees: look at all.
            read(_TYPES, "sample_size = -1")
    except duckdb.InvalidInputException as error:
        for file in files:
            _refuse_ragged(file, delimiter, error)
        raise
    return table


def delimiter_of(head: str) -> str:
    r"""The character that separates the columns of the header: the most frequent unquoted one.

    >>> [delimiter_of(line) for line in ("a;b;c", 'a,"x;y;z"', "a\tb", "a")]
    [';', ',', '\t', ',']
    """
    unquoted = "".join(head.split('"')[::2]).split("\n", 1)[0]
    return max(DELIMITERS, key=unquoted.count)


def _head(file: Path) -> str:
    import pyarrow as pa

    with pa.input_stream(str(file), compression="detect") as stream:
        # The separators are plain ASCII, whatever the encoding of the names around them.
        return bytes(stream.read(HEADER_BYTES)).decode("latin-1")


def _refuse_repeated_names(file: Path, delimiter: str) -> None:
    """Raise where two columns have one name: DuckDB would call the second one NAME_1."""
    header = next(csv.reader(io.StringIO(_head(file)), delimiter=delimiter), [])
    repeated = next((name for name in header if name and header.count(name) > 1), None)
    if repeated is not None:
        shown = repeated.encode("latin-1").decode("utf-8", errors="replace")
        raise InputError(f"'{file}' has two columns named '{shown}'; rename one of them.")


def _refuse_ragged(file: Path, delimiter: str, error: Exception) -> None:
    """Raise with the first line that has more or fewer columns than the header."""
    import pyarrow as pa

    with pa.input_stream(str(file), compression="detect") as stream:
        try:
            rows = csv.reader(io.TextIOWrapper(stream, "utf-8", newline=""), delimiter=delimiter)
            width = len(next(rows, []))
            for row in rows:
                if row and len(row) != width:
                    raise InputError(
                        f"'{file}' cannot be read: line {rows.line_num} has {len(row)} columns, "
                        f"but the header has {width}."
                    ) from error
        except (UnicodeDecodeError, csv.Error):
            return
