"""Which columns and variants play which role."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical, class_order
from fairweight.tables.checks import require_plain
from fairweight.tables.connection import Workspace, is_integer, is_number, is_text
from fairweight.tables.frequencies import likely_counts, refuse_counts
from fairweight.tables.groups import GroupChoice, Offer, chosen_groups, default_groups
from fairweight.tables.identity import Identity
from fairweight.tables.layout import Layout, MemberColumns, Names, require
from fairweight.tables.names import grouping_name
from fairweight.tables.sources import Source
from fairweight.tables.spec import TableSpec

if TYPE_CHECKING:
    import duckdb

BASELINE_NAMES = ("dense", "baseline")


@dataclass(frozen=True)
class Alignment:
    """An alignment under way: what is asked for, and where tables are opened."""

    workspace: Workspace
    tables: TableSpec
    alone: bool = False  # the baseline alone will do
    further: bool = False  # columns that are no groups are wanted too

    @property
    def names(self) -> Names:
        return Names.of(self.tables)

    @property
    def named_columns(self) -> frozenset[str]:
        """Columns whose role the user has named, other than that of a weight."""
        asked = self.tables
        named = {part.strip() for name in asked.groups or () for part in (name, *name.split("*"))}
        return frozenset(named | {asked.label, *asked.clusters, *filter(None, (asked.task,))})

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        return self.workspace.connection


def order_members(
    layout: Layout, baseline: str | None, notes: list[str], *, alone: bool = False
) -> tuple[tuple[MemberColumns, ...], str]:
    """Members with those of the baseline first, each variant's by seed.

    Not in the order of appearance: the numbers must not depend on how the rows are sorted.
    """
    variants = list(dict.fromkeys(part.variant for part in layout.parts))
    if baseline is None:
        likely = next((v for v in variants if v.lower() in BASELINE_NAMES), None)
        baseline = variants[0] if layout.kind == "files" or likely is None else likely
        if layout.kind == "files" and likely is not None and likely != baseline:
            notes.append(
                f"The first table, '{baseline}', is the baseline although one is named "
                f"'{likely}'; to change it: --baseline {shlex.quote(likely)}."
            )
        elif layout.kind != "files" and likely is None:
            notes.append(
                f"The first variant, '{baseline}', is taken as the baseline; "
                "to change it: --baseline NAME."
            )
    baseline = canonical(baseline) or ""
    if baseline not in variants:
        raise UnknownNameError("The baseline", baseline, variants)
    if len(variants) < 2 and not alone:
        raise InputError(
            f"There is no compressed variant, only '{baseline}'; an audit compares at least two."
        )
    ordered = [baseline, *(name for name in variants if name != baseline)]
    seeds = class_order(str(part.seed) for part in layout.parts)
    parts = sorted(
        layout.parts, key=lambda part: (ordered.index(part.variant), seeds.index(str(part.seed)))
    )
    return tuple(parts), baseline


def find_column(
    tables: Sequence[Source], column: str | None, option: str, required: bool
) -> str | None:
    """The column if one of the tables has it; an error if it is required and none does."""
    if column is None:
        return None
    if any(column in table.columns for table in tables):
        return column
    if not required:
        return None
    known = dict.fromkeys(name for table in tables for name in table.columns)
    shown = ", ".join(table.shown for table in tables)
    raise UnknownNameError(
        f"In {shown}, the column", column, known, remedy=f"Name the right one with {option}."
    )


def find_identity(
    request: Alignment,
    layout: Layout,
    tables: Sequence[Source],
    examples: Source | None,
    notes: list[str],
) -> Identity:
    column = request.names.id
    option = "--id COLUMN (id=)"
    task = request.tables.task
    if task is not None:
        for table in tables:
            require(table, task, "--task (task=)")
    elif "task" not in request.named_columns and all("task" in t.columns for t in tables):
        task = "task"
    first, count = tables[0], request.names.count
    if task is not None:
        for table in tables:
            require_plain(table, task, "task")
        if count is not None:
            raise InputError(
                f"--count {count} (count=) cannot be used with tasks (the column '{task}'): counts "
                "do not say which rows of two tasks are the same examples. Audit each task on its "
                "own, without that column, or give one row per example and task."
            )
    if layout.kind == "wide" and column == "example_id" and column not in first.columns:
        close = difflib.get_close_matches(column, first.columns, n=1, cutoff=0.8)
        if not close and task is None and examples is None:
            if count is None:
                declared = {*layout.used, *request.named_columns}
                refuse_counts(
                    request.workspace,
                    layout.inputs,
                    declared=declared,
                    weight=request.tables.weight,
                    id=column,
                )
                notes.append(
                    "There is no 'example_id' column: each row is taken as one example "
                    "(name the column with --id)."
                )
            return Identity(None)
    if layout.kind != "wide" and not all(column in table.columns for table in tables):
        # Counts of each variant alone do not say what the others predicted on those examples.
        declared = {*layout.used, *request.named_columns}
        likely = [count] if count else likely_counts(request.connection, first, declared)
        for counting in likely[:1]:
            raise InputError(
                f"{first.shown} has no '{column}', and each row is of one variant, so predictions "
                f"of two variants cannot be paired. If '{counting}' counts examples, count the "
                "pairs instead: one prediction column per variant (SELECT label, pred_dense, "
                "pred_int8, count(*) AS n ... GROUP BY ALL), and --count n (count='n'). If it does "
                "not, name the id of the examples with --id COLUMN."
            )
    joined = [*tables, examples] if examples is not None else list(tables)
    for table in joined:
        if column not in table.columns and len(joined) > 1:
            option = "--id COLUMN (id=); tables are joined on it, never on the order of rows"
        require(table, column, option)
        require_plain(table, column, "id")
    return Identity(
        column,
        task,
        as_text=not all(is_integer(table.columns[column]) for table in joined),
        task_as_text=task is not None and not all(is_integer(t.columns[task]) for t in tables),
    )


def choose_groups(
    request: Alignment,
    layout: Layout,
    identity: Identity,
    tables: Sequence[Source],
    examples: Source | None,
    columns: Mapping[str, str | None],
) -> GroupChoice:
    offers = offered_columns(layout, tables, examples)
    if request.tables.groups is not None:
        allowed = {
            column: offer
            for column, offer in offers.items()
            if column not in layout.used and column != identity.column
        }
        return chosen_groups(request.connection, allowed, request.tables.groups)
    return default_groups(request.connection, offers, taken_columns(layout, identity, columns))


def further_columns(
    layout: Layout,
    identity: Identity,
    tables: Sequence[Source],
    examples: Source | None,
    columns: Mapping[str, str | None],
    choice: GroupChoice,
) -> tuple[str, ...]:
    """Numbers and texts that describe examples and are no groups, such as measurements."""
    taken = {*taken_columns(layout, identity, columns), *choice.columns, "image"}
    return tuple(
        column
        for column, offer in offered_columns(layout, tables, examples).items()
        if column not in taken
        and (is_number(offer.kind) or is_text(offer.kind) or offer.kind == "BOOLEAN")
    )


def offered_columns(
    layout: Layout, tables: Sequence[Source], examples: Source | None
) -> dict[str, Offer]:
    """Every column of the predictions and of the examples table."""
    offers: dict[str, Offer] = {}
    for table in (*tables, *([examples] if examples is not None else [])):
        sharing = sum(part.source is table for part in layout.parts) if layout.kind == "long" else 1
        examples_here = table.n_examples / max(sharing, 1)
        for column, held in table.columns.items():
            kind = table.kind(column)
            offers.setdefault(column, Offer(table.view, held, kind, examples_here, table.rows))
    return offers


def taken_columns(
    layout: Layout, identity: Identity, columns: Mapping[str, str | None]
) -> frozenset[str]:
    """Columns that have a role other than a group's."""
    taken = set(layout.used) | {column for column in columns.values() if column}
    return frozenset(taken | {column for column in (identity.column, identity.task) if column})


def without_varying(choice: GroupChoice, varying: Mapping[str, str], asked: bool) -> GroupChoice:
    """The choice without columns that turned out to differ between variants."""
    unfit = {choice.columns[int(r[1:])]: why for r, why in varying.items() if r[0] == "c"}
    if not unfit:
        return choice
    if asked:
        column = next(iter(unfit))
        raise InputError(
            f"The column '{column}' {unfit[column]}, so it cannot be a group; "
            "a group is a property of the example: correct the tables, or leave it out of --groups."
        )
    kept = tuple(column for column in choice.columns if column not in unfit)
    names = tuple(grouping_name([column]) for column in kept)
    return GroupChoice(kept, names, {**choice.unused, **unfit}, choice.notes)
