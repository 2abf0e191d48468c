"""Names and values written into SQL so that no quote, newline or markup in them can do harm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

INTEGER_TYPES: frozenset[str] = frozenset(
    f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")
) | {"INTEGER", "UINTEGER"}
FLOAT_TYPES: frozenset[str] = frozenset(("FLOAT", "DOUBLE"))


def quote(name: str) -> str:
    """A column, table or type name as SQL.

    >>> print(quote('a "b" c'))
    "a ""b"" c"
    """
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """A value as SQL.

    >>> [literal(v) for v in ("it's", 3, 2.5, True, None)]
    ["'it''s'", '3', '2.5::DOUBLE', 'true', 'NULL']
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value!r}::DOUBLE" if math.isfinite(value) else f"'{value!r}'::DOUBLE"
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
    return "'" + str(value).replace("'", "''") + "'"


def is_integer(kind: str) -> bool:
    """Whether a DuckDB type holds whole numbers."""
    return kind in INTEGER_TYPES


def is_float(kind: str) -> bool:
    """Whether a DuckDB type can hold NaN."""
    return kind in FLOAT_TYPES


def is_number(kind: str) -> bool:
    """Whether a DuckDB type holds numbers of any sort."""
    return is_integer(kind) or is_float(kind) or kind.startswith("DECIMAL")


def is_text(kind: str) -> bool:
    """Whether a DuckDB type holds text; types with a name in quotes are enumerations of ours."""
    return kind == "VARCHAR" or kind.startswith(("ENUM(", '"'))


def is_list(kind: str) -> bool:
    """Whether a DuckDB type holds a list per row (class probabilities).

    >>> is_list("DOUBLE[]"), is_list("FLOAT[10]"), is_list("DOUBLE")
    (True, True, False)
    """
    return kind.endswith("]")


def is_nested(kind: str) -> bool:
    """Whether a DuckDB type holds several values per row.

    >>> [is_nested(k) for k in ("INTEGER[]", "STRUCT(a INTEGER)", "MAP(VARCHAR, INTEGER)", "DATE")]
    [True, True, True, False]
    """
    return is_list(kind) or kind.startswith(("STRUCT(", "MAP(", "UNION("))


def missing(expression: str, kind: str) -> str:
    """SQL that is true where a value is missing: null, or not a number.

    >>> missing("x", "DOUBLE")
    '(x IS NULL OR isnan(x))'
    """
    return (
        f"({expression} IS NULL OR isnan({expression}))"
        if is_float(kind)
        else (f"({expression} IS NULL)")
    )


def one_row(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    """The single row that a query returns.

    `fetchone` would leave the result open, and with it the connection busy.
    """
    row: tuple[Any, ...]
    (row,) = connection.execute(sql).fetchall()
    return row
