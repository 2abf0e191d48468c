"""What belongs to an example whichever model looks at it: label, weight, cluster, groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fairweight.tables.canonical import canonical
from fairweight.tables.connection import Workspace
from fairweight.tables.groups import LOOK_ROWS, MAX_TEXT_VALUES
from fairweight.tables.sources import Source
from fairweight.tables.sql import is_float, is_integer, is_text, one_row, quote

OF_EXAMPLES = ("label", "weight", "cluster", "count")  # an example has one value of each
_WIDTHS = (("UTINYINT", 0, 2**8), ("SMALLINT", -(2**15), 2**15), ("INTEGER", -(2**31), 2**31))


@dataclass(frozen=True)
class Attribute:
    """One column of the user's, under the name of its role (`label`, `weight`, `c0`, ...)."""

    role: str
    column: str


@dataclass(frozen=True)
class Identity:
    """How an example is told from others, the same way in every table."""

    column: str | None  # None: the row number
    task: str | None = None
    as_text: bool = False  # tables write the identity in different types

    def select(self, source: Source) -> str:
        """SQL for the key columns of a source."""
        return f"{self.example(source)} AS example_id" + (
            f", {quote(self.task)} AS task" if self.task is not None else ""
        )

    def example(self, source: Source, prefix: str = "") -> str:
        """SQL for the example's identity alone."""
        if self.column is None:
            # A window over all rows runs before every count; a counter of the reader is free.
            return prefix + source.row_number if source.row_number else "row_number() OVER ()"
        name = prefix + quote(self.column)
        if not self.as_text:
            return name
        plain = f"CAST({name} AS VARCHAR)"
        if not is_float(source.columns[self.column]):
            return plain
        # 7.0 in one table is 7 in another.
        return f"CASE WHEN {name} = trunc({name}) THEN CAST({name} AS DECIMAL(38, 0))::VARCHAR" + (
            f" ELSE {plain} END"
        )

    @property
    def keys(self) -> tuple[str, ...]:
        return ("example_id",) if self.task is None else ("example_id", "task")


def same_kind_of_id(kinds: Iterable[str]) -> bool:
    """Whether identities of these types can be compared as they are.

    >>> same_kind_of_id(["BIGINT", "INTEGER"]), same_kind_of_id(["BIGINT", "VARCHAR"])
    (True, False)
    """
    families = {
        "integer" if is_integer(kind) else "text" if is_text(kind) else kind for kind in kinds
    }
    return len(families) == 1


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

    def kind(self, source: Source, column: str) -> str:
        """The type to store this column in."""
        key = (source.view, column)
        if key not in self._known:
            self._known[key] = self._find(source.view, column, source.columns[column])
        return self._known[key]

    def select(self, source: Source, column: str, role: str) -> str:
        """SQL for the column in its compact type, under the name of its role."""
        return f"CAST({quote(column)} AS {self.kind(source, column)}) AS {quote(role)}"

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
