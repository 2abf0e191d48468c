"""The variants table: one row per variant and seed, with what is known of the model."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from fairweight.errors import InputError
from fairweight.tables.canonical import canonical_sql
from fairweight.tables.checks import require_plain
from fairweight.tables.complaints import reading
from fairweight.tables.connection import Workspace
from fairweight.tables.layout import Names, require
from fairweight.tables.parents import parents
from fairweight.tables.sources import Source, open_source
from fairweight.tables.sql import is_nested, quote

if TYPE_CHECKING:
    import pandas as pd

# Columns of names: text from a text file, whatever they look like. The others may be measured.
NAMES = frozenset(
    ("variant", "seed", "parent", "parent_variant", "parent_seed", "dataset", "model", "method",
     "treatment")
)  # fmt: skip


def variants_table(workspace: Workspace, table: Source, names: Names) -> pd.DataFrame:
    """The table as a frame, its columns `variant` and `seed` so named, its parents checked."""
    require(table, names.variant, "--variant-column (variant=)")
    for column in (names.variant, names.seed, "parent", "parent_variant", "parent_seed", "leak"):
        if column in table.columns:
            require_plain(table, column, column)
    selected = []
    for column in table.columns:
        role = {names.variant: "variant", names.seed: "seed"}.get(column, column)
        if role != column and role in table.columns:
            raise InputError(
                f"The variants table {table.shown} has a column '{role}' beside '{column}', which "
                f"is the {role}; rename the first."
            )
        # What is no plain value (lists, bytes) is shown as text; nothing is computed from it.
        plain = not is_nested(table.columns[column]) and table.columns[column] != "BLOB"
        value = quote(column) if role in NAMES else table.number(column)
        if not plain:
            value = f"CAST({quote(column)} AS VARCHAR)"
        elif role == "variant":
            value = canonical_sql(value, table.columns[column])
        selected.append(f"{value} AS {quote(role)}")
    with reading(f"the variants table {table.shown}"):
        frame = workspace.connection.execute(
            f"SELECT {', '.join(selected)} FROM {quote(table.view)}"
        ).df()
    parents(frame)
    return frame


def read_variants(given: Any, names: Names) -> tuple[pd.DataFrame, Source]:
    """A variants table by itself (of cubes, which need no connection), and where it came from."""
    with closing(Workspace()) as workspace:
        table = open_source(workspace, given)
        return variants_table(workspace, table, names), table
