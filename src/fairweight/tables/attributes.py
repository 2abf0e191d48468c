"""What belongs to an example whichever model looks at it: label, weight, cluster, groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fairweight.tables.canonical import canonical, canonical_sql
from fairweight.tables.connection import Workspace
from fairweight.tables.groups import LOOK_ROWS, MAX_TEXT_VALUES
from fairweight.tables.sources import Source
from fairweight.tables.sql import is_integer, one_row, quote

OF_EXAMPLES = ("label", "weight", "cluster", "count")  # an example has one value of each
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
        selected = f"{self.example(source, prefix)} AS example_id"
        if self.task is None:
            return selected
        task = prefix + quote(self.task)
        kind = source.columns[self.task]
        return f"{selected}, {canonical_sql(task, kind) if self.task_as_text else task} AS task"

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
            f"CREATE TYPE {quote(made)} AS ENUM (SELECT DISTINCT {name} FROM {table} "
            f"WHERE {name} IS NOT NULL ORDER BY 1)"
        )
        return quote(made)
