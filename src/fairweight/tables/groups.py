"""Which columns are groups: those asked for, or those that look like properties of examples."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairweight.errors import InputError
from fairweight.tables.canonical import canonical_sql
from fairweight.tables.connection import is_float, is_integer, is_text, one_row, quote
from fairweight.tables.names import grouping_columns, grouping_name

if TYPE_CHECKING:
    import duckdb

MAX_INTEGER_VALUES = 50  # more whole numbers than this are a measurement, not a group
MAX_TEXT_VALUES = 1_000  # more texts than this are left out unless asked for
MOST_COLUMNS = 1_000  # that are looked at where nobody says which are groups
FEW_VALUES = 20  # up to here a column may be a group even where every example differs
LOOK_ROWS = 100_000  # enough values among the first rows settle that a column has too many
IMAGE_COLUMNS = frozenset(("image", "image_path"))
CLUSTER_WORDS = frozenset(("writer", "person", "subject", "identity", "patient", "user", "speaker"))


@dataclass(frozen=True)
class Offer:
    """A column that could be a group: where it is, of which type, and for how many examples."""

    view: str
    held: str  # the type that the view has it in
    kind: str  # the type that its values have: numbers in a text file too
    examples: float
    rows: int  # of the view


@dataclass(frozen=True)
class GroupChoice:
    """The single columns needed, the groupings made of them, and what is to be said."""

    columns: tuple[str, ...]
    groupings: tuple[str, ...]
    unused: dict[str, str]  # column -> why it is no group
    notes: tuple[str, ...] = ()


def chosen_groups(
    connection: duckdb.DuckDBPyConnection,
    offers: Mapping[str, Offer],
    asked: str | Sequence[str],
) -> GroupChoice:
    """The groups asked for (`sex`, `age`, `sex*age`); their columns must exist."""
    columns: dict[str, None] = {}
    groupings: dict[str, None] = {}
    for given in [asked] if isinstance(asked, str) else asked:
        parts = grouping_columns(str(given), offers, "--groups (groups=)")
        columns |= dict.fromkeys(parts)
        groupings[grouping_name(parts)] = None
    notes = []
    for column in columns:
        values = _count_values(connection, column, offers[column])
        if values > MAX_TEXT_VALUES:
            notes.append(
                f"The group column '{column}' has {values:,} values; all are in the tables, "
                "few can be judged on their own."
            )
    return GroupChoice(tuple(columns), tuple(groupings), {}, tuple(notes))


def default_groups(
    connection: duckdb.DuckDBPyConnection, offers: Mapping[str, Offer], taken: frozenset[str]
) -> GroupChoice:
    """Text, truth and whole-number columns with few values that have no other role."""
    columns: list[str] = []
    unused: dict[str, str] = {}
    free = {c: o for c, o in offers.items() if c not in taken and c not in IMAGE_COLUMNS}
    asked = [c for c, o in free.items() if _unfit_kind(o) is None]
    if len(asked) > MOST_COLUMNS:
        raise InputError(
            f"{len(asked):,} columns could be groups, such as '{asked[0]}' and '{asked[-1]}', and "
            f"at most {MOST_COLUMNS:,} are looked at; name those that matter with --groups "
            "(groups=)."
        )
    for column, offer in free.items():
        reason = _unfit(connection, column, offer)
        if reason is None:
            columns.append(column)
        else:
            unused[column] = reason
    return GroupChoice(tuple(columns), tuple(grouping_name([c]) for c in columns), unused)


def unused_note(unused: Mapping[str, str]) -> str | None:
    """One sentence with every column that was left out and why."""
    if not unused:
        return None
    shown = "; ".join(f"'{column}' ({reason})" for column, reason in unused.items())
    return f"Columns not used as groups: {shown}. Include one with --groups."


def cluster_suggestion(
    connection: duckdb.DuckDBPyConnection, columns: Mapping[str, Offer]
) -> str | None:
    """A hint where one of the columns without a role seems to say which examples belong together.

    By its name, and by its values: several examples share one, and there are more of them than a
    property of people has (yes and no, free and paid).
    """
    for column, offer in columns.items():
        words = re.sub(r"([a-z])([A-Z])", r"\1 \2", column).lower()
        if not CLUSTER_WORDS & set(re.split(r"[^a-z]+", words)):
            continue
        values = _count_values(connection, column, offer)
        many = values > FEW_VALUES or values * FEW_VALUES >= offer.examples
        if many and 2 < values < offer.examples:
            return (
                f"Examples assumed independent, but the column '{column}' seems to say which "
                f"belong together; if so, use --cluster {shlex.quote(column)}."
            )
    return None


def _unfit_kind(offer: Offer) -> str | None:
    """Why a column of this type is no group, whatever its values are."""
    if is_float(offer.kind) or offer.kind.startswith("DECIMAL"):
        return "numbers with fractions"
    if is_integer(offer.kind) or is_text(offer.kind) or offer.kind == "BOOLEAN":
        return None
    return f"type {offer.kind.partition('(')[0].lower()}"


def _unfit(connection: duckdb.DuckDBPyConnection, column: str, offer: Offer) -> str | None:
    kind = _unfit_kind(offer)
    if kind is not None:
        return kind
    most = MAX_INTEGER_VALUES if is_integer(offer.kind) else MAX_TEXT_VALUES
    seen = _count_values(connection, column, offer, LOOK_ROWS)
    if seen > most:
        # The first rows have too many already; the exact number would need every row.
        return f"more than {most:,} values"
    if offer.rows > LOOK_ROWS:
        seen = _count_values(connection, column, offer)
    if seen > most:
        return f"{seen:,} values"
    if seen > FEW_VALUES and seen > offer.examples / 2:
        return "nearly every example has a value of its own"
    if seen < 2:
        return "one value only" if seen else "no values"
    return None


def _count_values(
    connection: duckdb.DuckDBPyConnection, column: str, offer: Offer, rows: int | None = None
) -> int:
    """Distinct values; a missing value is one of them where others are there too."""
    some = f" LIMIT {rows}" if rows is not None else ""
    text = canonical_sql("value", offer.held)
    total, present = one_row(
        connection,
        f"SELECT count(*), count(text) FROM (SELECT DISTINCT {text} AS text FROM "
        f"(SELECT DISTINCT {quote(column)} AS value FROM (FROM {quote(offer.view)}{some})))",
    )
    return int(total) if present else 0
