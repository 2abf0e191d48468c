"""What users ask of a table before it is audited: a query (`--query`), and paths (`doc.subject`).

A query is one SELECT of DuckDB's SQL on the table `data`, the rows of one table that was given. It
runs in a connection of its own that can read the files given and nothing else: no other file, no
network, no extension, no setting, and nothing can be written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairweight.base.wording import shown
from fairweight.errors import InputError
from fairweight.tables.connection import Workspace, is_number, literal, one_row, quote, reading
from fairweight.tables.formats import BATCH_ROWS, copied
from fairweight.tables.frames import check_names
from fairweight.tables.sources import Source, open_source, source_of_view

if TYPE_CHECKING:
    from fairweight.tables.spec import TableSpec

DATA = "data"  # what a query calls the rows of a table


def open_tables(workspace: Workspace, request: TableSpec) -> list[tuple[str | None, Source]]:
    """Every table of the predictions with its variant's name, after the query and with paths."""
    opened = []
    for ref in request.sources:
        name = ref.variant if ref.frame else None
        if request.query is None:
            table = open_source(workspace, ref.given, name=name)
        else:
            table = _open_query(workspace, ref.given, name, request.query)
        opened.append((ref.variant, with_paths(workspace, table, request.column_names)))
    return opened


def _open_query(workspace: Workspace, given: Any, name: str | None, query: str) -> Source:
    import duckdb

    with closing(Workspace(alone=True)) as alone:
        source = open_source(alone, given, name=name)
        if isinstance(given, Source):  # it is a view of the other connection
            rows = workspace.connection.sql(f"FROM {quote(source.view)}")
            source = replace(source, view=copied(alone, rows.to_arrow_reader(BATCH_ROWS)))
        connection = alone.connection
        columns = ", ".join(map(quote, source.columns))
        connection.execute(f"CREATE TEMP VIEW {DATA} AS SELECT {columns} FROM {quote(source.view)}")
        alone.confine(source.files)
        try:
            statements = connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise InputError(
                    f"--query must be one SELECT on the table {DATA}; given was: "
                    f"{shown(query, 200)}"
                )
            with workspace.interrupts.watching(connection):
                rows = connection.sql(query.rstrip().rstrip(";")).to_arrow_reader(BATCH_ROWS)
                check_names(rows.schema.names, f"the result of --query on {source.shown}")
                table = copied(workspace, rows)
        except duckdb.InterruptException as error:
            raise KeyboardInterrupt from error
        except duckdb.Error as error:
            message = " ".join(re.split(r"\n+LINE \d+:", str(error))[0].split()).rstrip(".")
            if "PermissionException" in type(error).__name__:
                message = f"it may read nothing but {source.shown}, as the table {DATA}"
            advice = ""
            if "VARCHAR" in source.columns.values() and "VARCHAR" in message:
                advice = (
                    " Columns of text files are text: write CAST(column AS DOUBLE) for numbers."
                )
            raise InputError(
                f"--query cannot be run ({shown(query, 200)}): {message}.{advice}"
            ) from error
    found = source_of_view(workspace, table, source.name, source.files, source.score_classes)
    if found.rows == 0:
        raise InputError(
            f"--query finds no rows in {source.shown} ({source.rows:,} rows); check its conditions."
        )
    # Text columns that looked like numbers before the query, and do after it.
    guessed = {
        column: kind
        for column, kind in source.guessed.items()
        if found.columns.get(column) == "VARCHAR"
        and is_number(kind)
        and _all_are(workspace, found.view, column, kind)
    }
    return replace(found, guessed=guessed)


def _all_are(workspace: Workspace, view: str, column: str, kind: str) -> bool:
    """Whether the texts of a column are numbers of a type, all that are there."""
    name = quote(column)
    asked = f"count({name}) > 0 AND count({name}) = count(TRY_CAST({name} AS {kind}))"
    return bool(one_row(workspace.connection, f"SELECT {asked} FROM {quote(view)}")[0])


# Paths into columns that hold records: `doc.subject`, `arguments.gen_args_0.arg_0`.


def with_paths(workspace: Workspace, table: Source, names: Iterable[str]) -> Source:
    """The table with a column for every path among the names that leads into one of its columns.

    A column that is called so itself comes first.
    """
    for name in dict.fromkeys(names):
        column, *parts = name.split(".")
        if name not in table.columns and parts and column in table.columns:
            table = _with_path(workspace, table, column, parts, name)
    return table


def _with_path(
    workspace: Workspace, table: Source, column: str, parts: Sequence[str], name: str
) -> Source:
    """The table with one more column: a field of a record, a key of a map, a member of JSON."""
    sql, kind = quote(column), table.columns[column]
    view = workspace.name("path")
    for part in parts:
        if kind.startswith("STRUCT("):
            sql = f"struct_extract({sql}, {literal(part)})"
        elif kind.startswith("MAP(VARCHAR,"):
            sql = f"{sql}[{literal(part)}]"
        elif kind in ("JSON", "VARCHAR"):
            place = literal("$." + quote(part))
            sql = f"CASE WHEN json_valid({sql}) THEN json_extract_string({sql}, {place}) END"
        else:
            raise InputError(
                f"In {table.shown}, '{shown(name, 80)}' leads nowhere: '{column}' holds "
                f"{shown(kind.lower(), 60)}, no records with fields."
            )
        with reading(f"'{shown(name, 80)}' in {table.shown}"):
            found = workspace.connection.execute(
                f"DESCRIBE SELECT {sql} FROM {quote(table.view)}"
            ).fetchall()
        kind = str(found[0][1])
    with reading(table.shown):
        workspace.connection.execute(
            f"CREATE TEMP VIEW {quote(view)} AS SELECT *, {sql} AS {quote(name)} "
            f"FROM {quote(table.view)}"
        )
        asked = f"SELECT count({quote(name)}) FROM {quote(view)}"
        if one_row(workspace.connection, asked)[0] == 0:
            raise InputError(
                f"In {table.shown}, '{shown(name, 80)}' is empty in every row; check the path."
            )
    guessed = dict(table.guessed)
    if kind == "VARCHAR" and not table.columns[column].startswith("STRUCT("):
        likely = [k for k in ("BIGINT", "DOUBLE") if _all_are(workspace, view, name, k)]
        if likely:
            guessed[name] = likely[0]
    return replace(table, view=view, columns=table.columns | {name: kind}, guessed=guessed)
