"""The examples table: what is known of each example, joined by its identity."""

from __future__ import annotations

from fairweight.errors import InputError
from fairweight.tables.attributes import Identity
from fairweight.tables.connection import Workspace
from fairweight.tables.identity import SHOWN_EXAMPLES, check_unique, named
from fairweight.tables.sources import Source
from fairweight.tables.sql import one_row, quote
from fairweight.tables.words import are, counted


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
