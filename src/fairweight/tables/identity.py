"""Whether every example is there once: cheap where it is so, with names where it is not.

`count(DISTINCT id)` hashes every identity (1.7 s for ten million). Identities that only ever
increase are distinct without any hashing; otherwise 64-bit keys are sorted (0.2 s), and only if
two keys are equal are the identities themselves compared, so the answer is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.errors import InputError
from fairweight.tables.sql import one_row, quote

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
    import numpy as np

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
