"""Whether every example is there once: cheap where it is so, with names where it is not.

`count(DISTINCT id)` hashes every identity (1.7 s for ten million). Identities that only ever
increase are distinct without any hashing; otherwise 64-bit keys are sorted (0.2 s), and only if
two keys are equal are the identities themselves compared, so the answer is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fairweight.base.wording import are, counted
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical, canonical_sql
from fairweight.tables.connection import Workspace, is_integer, one_row, quote, renamed
from fairweight.tables.groups import LOOK_ROWS, MAX_TEXT_VALUES
from fairweight.tables.sources import Source

if TYPE_CHECKING:
    import duckdb

BATCH_ROWS = 1_000_000
# 1.6 GB of keys; beyond it DuckDB's aggregate, which can spill to disk, is asked instead.
MAX_KEYS_IN_MEMORY = 200_000_000
_SMALL_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
SHOWN_EXAMPLES = 3


def has_duplicates(
    connection: duckdb.DuckDBPyConnection, view: str, kind: str, has_task: bool, rows: int
) -> bool:
    """Whether an (example_id, task) occurs twice in a view with these columns."""
    if rows > MAX_KEYS_IN_MEMORY:
        return bool(duplicate_keys(connection, view, has_task)[0])
    ordered = kind in _SMALL_INTEGERS and not has_task
    key = "CAST(example_id AS BIGINT)" if ordered else "CAST(hash(example_id) >> 1 AS BIGINT)"
    if has_task:
        key = "CAST(hash(example_id, task) >> 1 AS BIGINT)"
    keys = np.empty(rows, dtype=np.int64)
    filled, increasing = 0, True
    for batch in connection.sql(f"SELECT {key} AS k FROM {quote(view)}").to_arrow_reader(
        BATCH_ROWS
    ):
        values = batch.column(0).to_numpy(zero_copy_only=False)
        keys[filled : filled + len(values)] = values
        if increasing:
            start = max(filled - 1, 0)
            part = keys[start : filled + len(values)]
            increasing = bool((part[1:] > part[:-1]).all())
        filled += len(values)
    if increasing:
        return False
    keys.sort()
    if not bool((keys[1:] == keys[:-1]).any()):
        return False
    return ordered or bool(duplicate_keys(connection, view, has_task)[0])


def duplicate_keys(
    connection: duckdb.DuckDBPyConnection, view: str, has_task: bool
) -> tuple[int, list[Any]]:
    """How many keys occur more than once, and the first few of their examples."""
    key = "example_id, task" if has_task else "example_id"
    found = connection.execute(
        f"SELECT example_id, count(*) OVER () AS total FROM (SELECT {key}, count(*) AS copies "
        f"FROM {quote(view)} GROUP BY ALL HAVING count(*) > 1) ORDER BY 1 LIMIT {SHOWN_EXAMPLES}"
    ).fetchall()
    return (int(found[0][1]), [row[0] for row in found]) if found else (0, [])


def check_unique(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    kind: str,
    *,
    has_task: bool,
    rows: int,
    where: str,
    key: str,
    remedy: str = "",
) -> None:
    """Raise where identities are missing or occur twice.

    `where` names the table (and the member) in the message, `key` the columns of the identity,
    `remedy` what else could be meant by rows that repeat.
    """
    nameless = one_row(connection, f"SELECT count(*) FROM {quote(view)} WHERE example_id IS NULL")[
        0
    ]
    if nameless:
        raise InputError(
            f"{where} has {nameless:,} rows without an example id; "
            "give every row one, or leave them out."
        )
    if has_task:
        untold = one_row(connection, f"SELECT count(*) FROM {quote(view)} WHERE task IS NULL")[0]
        if untold:
            raise InputError(f"{where} has {untold:,} rows without a task; name it in every row.")
    if not has_duplicates(connection, view, kind, has_task, rows):
        return
    total, some = duplicate_keys(connection, view, has_task)
    raise InputError(
        f"{where} has {total:,} duplicate {'key' if total == 1 else 'keys'} (the same {key}), "
        f"such as {named(some)}; keep one row of each{f', or {remedy}' if remedy else ''}."
    )


def named(examples: list[Any]) -> str:
    """Examples as they are shown in a message.

    >>> named([1, "a"])
    "example 1, example 'a'"
    """
    return ", ".join(f"example {example!r}" for example in examples)


# What belongs to an example whichever model looks at it: label, weight, cluster, groups.

# An example has one value of each.
OF_EXAMPLES = ("label", "weight", "cluster", "second_cluster", "count")
_WIDTHS = (("UTINYINT", 0, 2**8), ("SMALLINT", -(2**15), 2**15), ("INTEGER", -(2**31), 2**31))


@dataclass(frozen=True)
class Attribute:
    """One column of the user's, under the name of its role (`label`, `weight`, `c0`, ...)."""

    role: str
    column: str

    @property
    def numeric(self) -> bool:
        """Whether the role is one of numbers: a weight, or a further column, if it has numbers."""
        return self.role == "weight" or self.role.startswith("x")


@dataclass(frozen=True)
class Identity:
    """How an example is told from others, the same way in every table."""

    column: str | None  # None: the row number
    task: str | None = None
    as_text: bool = True  # False: whole numbers in every table, compared as they are
    task_as_text: bool = True

    def select(self, source: Source, prefix: str = "") -> str:
        """SQL for the key columns of a source."""
        selected = renamed(self.example(source, prefix), self.column, "example_id")
        if self.task is None:
            return selected
        task = prefix + quote(self.task)
        kind = source.columns[self.task]
        value = canonical_sql(task, kind) if self.task_as_text else task
        return f"{selected}, {renamed(value, self.task, 'task')}"

    def example(self, source: Source, prefix: str = "") -> str:
        """SQL for the example's identity alone."""
        if self.column is None:
            # A window over all rows runs before every count; a counter of the reader is free.
            return prefix + source.row_number if source.row_number else "row_number() OVER ()"
        name = prefix + quote(self.column)
        return canonical_sql(name, source.columns[self.column]) if self.as_text else name

    def kind(self, source: Source) -> str:
        """The type of the example's identity."""
        return "VARCHAR" if self.as_text else source.columns[self.column or ""]

    @property
    def keys(self) -> tuple[str, ...]:
        return ("example_id",) if self.task is None else ("example_id", "task")


def same_text(one: Any, other: Any) -> bool:
    """Whether two values are one class or group, however they are written.

    >>> same_text(1, "1.0"), same_text(True, 1), same_text("a", "b")
    (True, True, False)
    """
    return canonical(one) == canonical(other) or (
        canonical(one, truth_as_number=True) == canonical(other, truth_as_number=True)
    )


@dataclass
class Compact:
    """Smaller types for columns that are copied: the values stay what they are.

    Text with few values becomes an ENUM (one or two bytes a row instead of sixteen), whole
    numbers the narrowest type that holds them.
    """

    workspace: Workspace
    _known: dict[tuple[str, str], str] = field(default_factory=dict)

    def kind(self, source: Source, column: str, *, numeric: bool = False) -> str:
        """The type to store this column in; `numeric`: in a role of numbers."""
        if numeric and column in source.guessed:
            return source.kind(column)
        key = (source.view, column)
        if key not in self._known:
            self._known[key] = self._find(source.view, column, source.columns[column])
        return self._known[key]

    def select(self, source: Source, column: str, role: str, *, numeric: bool = False) -> str:
        """SQL for the column in its compact type, under the name of its role."""
        kind = self.kind(source, column, numeric=numeric)
        return f"CAST({quote(column)} AS {kind}) AS {quote(role)}"

    def _find(self, view: str, column: str, kind: str) -> str:
        connection = self.workspace.connection
        name, table = quote(column), quote(view)
        if is_integer(kind):
            least, most = one_row(connection, f"SELECT min({name}), max({name}) FROM {table}")
            if least is None:
                return kind
            return next((n for n, low, end in _WIDTHS if low <= least and most < end), kind)
        if kind != "VARCHAR":
            return kind if not kind.startswith("ENUM(") else "VARCHAR"
        for rows in (f"(SELECT {name} FROM {table} LIMIT {LOOK_ROWS})", table):
            values = one_row(connection, f"SELECT count(DISTINCT {name}) FROM {rows}")[0]
            if not 0 < values <= MAX_TEXT_VALUES:
                return kind
        made = self.workspace.name("values")
        connection.execute(
            f"CREATE TEMP TYPE {quote(made)} AS ENUM (SELECT DISTINCT {name} FROM {table} "
            f"WHERE {name} IS NOT NULL ORDER BY 1)"
        )
        return quote(made)


# The examples table: what is known of each example, joined by its identity.


def check_examples(workspace: Workspace, identity: Identity, examples: Source, view: str) -> None:
    """Every example of the view (a column `example_id`) is in the examples table, and once."""
    connection = workspace.connection
    keys = workspace.name("examples")
    connection.execute(
        f"CREATE TEMP VIEW {quote(keys)} AS SELECT {identity.example(examples)} AS example_id "
        f"FROM {quote(examples.view)}"
    )
    check_unique(
        connection,
        keys,
        identity.kind(examples),
        has_task=False,
        rows=examples.rows,
        where=f"The examples table {examples.shown}",
        key=str(identity.column),
    )
    absent = f"FROM {quote(view)} ANTI JOIN {quote(keys)} USING (example_id)"
    total = one_row(connection, f"SELECT count(DISTINCT example_id) {absent}")[0]
    if total:
        some = connection.execute(
            f"SELECT DISTINCT example_id {absent} ORDER BY 1 LIMIT {SHOWN_EXAMPLES}"
        ).fetchall()
        raise InputError(
            f"{counted(total, 'example')} {are(total)} not in the examples table "
            f"{examples.shown}, such as "
            f"{named([row[0] for row in some])}; add them to it."
        )
