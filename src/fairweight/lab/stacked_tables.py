"""Tables on top of each other, where a column may be empty in one and filled in another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairweight.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


def stacked(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows in their order; whole numbers become fractions where both occur."""
    import pyarrow as pa

    return pa.concat_tables(fitted(tables, common_schema([table.schema for table in tables])))


def fitted(tables: Sequence[pa.Table], schema: pa.Schema) -> list[pa.Table]:
    """The tables with the types of a common schema."""
    return [table if table.schema == schema else table.cast(schema) for table in tables]


def common_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """A schema that holds the columns of all; an error names the column for which there is none."""
    import pyarrow as pa

    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        first = schemas[0]
        for other in schemas[1:]:
            for name in first.names:
                pair = [pa.schema([schema.field(name)]) for schema in (first, other)]
                try:
                    pa.unify_schemas(pair, promote_options="permissive")
                except (pa.ArrowInvalid, pa.ArrowTypeError):
                    kinds = " in one place and ".join(str(s.field(0).type) for s in pair)
                    raise InputError(
                        f"The column '{name}' holds {kinds} in another (batches or models); give "
                        "values of one type."
                    ) from None
        raise
