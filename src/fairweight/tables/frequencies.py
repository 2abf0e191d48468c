"""Counted tables: each row stands for as many examples as one of its columns says.

`SELECT sex, label, pred_dense, pred_int8, count(*) AS n ... GROUP BY ALL` is such a table, and so
is a cube of `fairweight count` that another program has written again. Nothing but its counts
tells it from a table with a row per example, so a table that may be either is refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairweight.base.wording import are, counted
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.checks import MOST_EXAMPLES
from fairweight.tables.connection import Workspace, is_number, is_text, one_row, quote, reading
from fairweight.tables.groups import LOOK_ROWS
from fairweight.tables.sources import Source, open_source

if TYPE_CHECKING:
    import duckdb

SHOWN_VALUES = 3
_THINGS = "(rows?|obs|observations?|examples?|samples?|cases?|records?|items?)"
# What SQL, pandas ("size", "0"), polars ("len"), R ("n", "Freq") and BigQuery ("f0_") call counts.
_COUNT_NAME = re.compile(
    rf"n+|counts?|cnt|freqs?|frequency|frequencies|num|number|total|size|len|tally|nobs|obs|0|f0_"
    rf"|count_star\(\)|count\(.*\)|(n|num|number|count)[_ .](of[_ .])?{_THINGS}"
    rf"|{_THINGS}[_ .](n|count)",
    re.DOTALL,
)


def is_count_name(column: str) -> bool:
    """Whether a column is called as counts are.

    >>> [is_count_name(c) for c in ("n", "Freq", "COUNT(*)", "n_rows", "count_star()", "words")]
    [True, True, True, True, True, False]
    """
    return _COUNT_NAME.fullmatch(column.strip().casefold()) is not None


def read_counts(workspace: Workspace, table: Source, column: str) -> Source:
    """The table with whole numbers in its count column and without the rows that count nobody."""
    option = "--count (count=)"
    if column not in table.columns:
        raise UnknownNameError(
            f"In {table.shown}, the column", column, table.columns,
            remedy=f"Name the right one with {option}.",
        )  # fmt: skip
    kind, name = table.columns[column], quote(column)
    if not is_number(kind) and not is_text(kind):
        raise InputError(
            f"The count column '{column}' of {table.shown} holds no numbers (type {kind.lower()}); "
            f"name the column that says how many examples a row stands for with {option}."
        )
    number = _number(column, kind)
    real = f"{number}::DOUBLE"
    gone = f"({name} IS NULL OR coalesce(isnan({real}), false))"
    faults = {
        "missing": gone,
        "no number": f"NOT {gone} AND {number} IS NULL",
        "negative": f"NOT {gone} AND {number} < 0",
        "no whole number": f"NOT {gone} AND {number} <> trunc({number})",
        "too large": f"NOT {gone} AND {number} > {MOST_EXAMPLES}",
    }
    asked = [f"count(*) FILTER ({fault})" for fault in faults.values()]
    asked += [f"count(*) FILTER ({number} > 0)", f"sum({real}) FILTER ({number} > 0)"]
    with reading(table.shown):
        *found, rows, total = one_row(
            workspace.connection, f"SELECT {', '.join(asked)} FROM {quote(table.view)}"
        )
    for (what, fault), values in zip(faults.items(), found, strict=True):
        if not values:
            continue
        some = workspace.connection.execute(
            f"SELECT DISTINCT CAST({name} AS VARCHAR) AS held FROM {quote(table.view)} "
            f"WHERE {fault} ORDER BY 1 LIMIT {SHOWN_VALUES}"
        ).fetchall()
        shown = ", ".join(f"'{row[0]}'" for row in some if row[0] is not None)
        raise InputError(
            f"The count column '{column}' of {table.shown} cannot be used: "
            f"{counted(values, 'value')} {are(values)} {what}"
            f"{f' (such as {shown})' if shown else ''}. Each row must say how many examples "
            "it stands for (0 or more); sampling weights are named with --weight (weight=)."
        )
    if not rows:
        raise InputError(
            f"The count column '{column}' of {table.shown} is 0 in every row; there is no example."
        )
    view = workspace.name("counted")
    workspace.connection.execute(
        f"CREATE TEMP VIEW {quote(view)} AS SELECT * REPLACE (CAST({number} AS BIGINT) AS {name}) "
        f"FROM {quote(table.view)} WHERE {number} > 0"
    )
    columns = {**table.columns, column: "BIGINT"}
    return replace(table, view=view, columns=columns, rows=int(rows), total=int(total))


def refuse_counts(
    workspace: Workspace,
    tables: Sequence[Source],
    *,
    declared: Collection[str],
    weight: str | None,
    id: str,
) -> None:
    """An error where tables without identities may well be counted ones.

    `tables` are parts of one; `declared` are columns whose role was named, `weight` is the column
    of sampling weights.
    """
    table = tables[0]
    for column in likely_counts(workspace.connection, table, declared):
        # Parts that were counted apart (`sites/*.csv`, say) may repeat each other's rows.
        parts = []
        for whole in tables:
            several = len(whole.files) > 1
            parts += [open_source(workspace, f) for f in whole.files] if several else [whole]
        if not all(_all_different(workspace.connection, part, without=column) for part in parts):
            continue
        said = (
            f"{table.shown} has no '{id}', no two of its rows are alike, and '{column}' holds "
            "whole numbers, so each row may stand for that many examples. If so, add "
            f"--count {shlex.quote(column)} (count={column!r}; audit, gate, choose, explain and "
            "count take it). "
        )
        said += (
            f"If '{column}' is a sampling weight of single examples, name their id: --id COLUMN."
            if column == weight
            else f"If '{column}' is something else, name the id of the examples (--id COLUMN), "
            f"name '{column}' as a group (--groups), or leave it out of the table."
        )
        if {"count", "label", "prediction:0"} <= set(table.columns):
            units = [name for name in ("unit", "second_unit") if name in table.columns]
            unit = "".join(f" and --cluster {name}" for name in units)
            said += (
                " It looks like a cube that another program wrote again, without its metadata: "
                "give the file of fairweight count itself, or name the variants (--prediction "
                f"NAME=prediction:0){unit}."
            )
        raise InputError(said)


def likely_counts(
    connection: duckdb.DuckDBPyConnection, table: Source, declared: Collection[str]
) -> list[str]:
    """Columns named like counts that hold whole numbers, none below 0 and some above 1.

    Numbers of more than 15 digits are codes.
    """
    found = []
    for column, kind in table.columns.items():
        if column in declared or not is_count_name(column):
            continue
        if not is_number(kind) and not is_text(kind):
            continue
        number = _number(column, kind)
        # Text that is no number is NULL here: it makes the column none of whole numbers.
        whole = f"coalesce({number} >= 0 AND {number} = trunc({number}), false)"
        all_whole, most = one_row(
            connection,
            f"SELECT bool_and({whole}), max({number}) FROM {quote(table.view)} "
            f"WHERE {quote(column)} IS NOT NULL AND NOT coalesce(isnan({number}::DOUBLE), false)",
        )
        if all_whole and 1 < most < 1e15:
            found.append(column)
    return found


def _number(column: str, kind: str) -> str:
    """SQL for the number in a column; NULL where its text is none."""
    name = quote(column)
    return name if is_number(kind) else f"TRY_CAST(CAST({name} AS VARCHAR) AS DOUBLE)"


def _all_different(connection: duckdb.DuckDBPyConnection, table: Source, *, without: str) -> bool:
    """Whether no two rows agree in all other columns; the first rows often tell."""
    others = ", ".join(quote(name) for name in table.columns if name != without)
    if not others:
        return False
    for rows in (f"(SELECT * FROM {quote(table.view)} LIMIT {LOOK_ROWS})", quote(table.view)):
        held, distinct = one_row(
            connection,
            f"SELECT (SELECT count(*) FROM {rows}), "
            f"(SELECT count(*) FROM (SELECT DISTINCT {others} FROM {rows}))",
        )
        if distinct < held:
            return False
    return True
