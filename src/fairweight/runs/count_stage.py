"""One part of a prediction data set as a cube: the examples whose ids fall into it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairweight.errors import InputError
from fairweight.runs.context import Context

CUBE = "cube.parquet"


def run(spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: Context) -> None:
    """Count the examples of one part; every file is read, and only these rows are kept."""
    import duckdb

    from fairweight.auditing.counts.count import count
    from fairweight.auditing.counts.store import write_cube
    from fairweight.tables.align import align
    from fairweight.tables.canonical import canonical_sql
    from fairweight.tables.sql import literal, quote

    files = ", ".join(literal(name) for name in spec["files"])
    table = f"read_parquet([{files}], union_by_name=true)"
    id_column = spec["options"]["id"]
    with duckdb.connect() as connection:
        described = connection.execute(f"DESCRIBE FROM {table}").fetchall()
        kind = next((str(row[1]) for row in described if row[0] == id_column), "VARCHAR")
        # By canonical text, so that an id is in one part however it is written.
        rows = connection.sql(
            f"SELECT * FROM {table} WHERE hash({canonical_sql(quote(id_column), kind)}) "
            f"% {int(spec['parts'])} = {int(spec['part'])}"
        )
        if not rows.limit(1).fetchall():
            raise InputError(
                f"Part {spec['part'] + 1} of {spec['parts']} has no example; count in fewer parts "
                "(--parts)."
            )
        with align(rows, **spec["options"]) as aligned:
            write_cube(
                count(aligned),
                room / CUBE,
                groupings=aligned.groupings,
                baseline=aligned.baseline,
                key=spec["unit_key"],
            )
