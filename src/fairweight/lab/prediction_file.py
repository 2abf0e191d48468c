"""A prediction table that is written while it is made, and goes on where it was interrupted.

Rows are kept in small Parquet files in a hidden folder beside the table until all are there; then
they become one file, by one rename. A run with other models, or other options, starts anew.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fairweight.base.files import atomic_file
from fairweight.errors import InputError


def stacked(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows of tables in their order; a column may be empty in one and filled in another.

    Whole numbers become fractions where both occur.
    """
    return pa.concat_tables(fitted(tables, common_schema([table.schema for table in tables])))


def fitted(tables: Sequence[pa.Table], schema: pa.Schema) -> list[pa.Table]:
    """The tables with the types of a common schema."""
    return [table if table.schema == schema else table.cast(schema) for table in tables]


def common_schema(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """A schema that holds the columns of all; an error names the column for which there is none."""
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


PART_SECONDS = 5.0  # how much work an interruption may cost
PART_BYTES = 64 << 20
ROWS_TOGETHER = 1 << 17  # rows per row group of the final file
BATCHES = b"fairweight_batches"
RUN = "run.json"


class PredictionFile:
    """Rows of one batch after the other, on their way to a file.

    Parameters
    ----------
    run
        What decides the rows: an earlier part of the same run is kept. None where that cannot be
        known (functions), which means starting anew.
    """

    def __init__(self, out: str | Path, run: Mapping[str, Any] | None, *, resume: bool) -> None:
        self.out = Path(out)
        self.folder = self.out.parent / f".{self.out.name}.parts"
        self._pending: list[pa.Table] = []
        self._digests: list[str] = []
        self._since = time.monotonic()
        text = None if run is None else json.dumps(run, sort_keys=True)
        self._done: list[str] = []  # digests of the batches on disk
        self._taken = 0
        # Parts are written whole, so each can be read.
        with suppress(OSError, UnicodeDecodeError, pa.ArrowException, KeyError, ValueError):
            if resume and text == (self.folder / RUN).read_text(encoding="utf-8"):
                held = [pq.read_schema(part).metadata or {} for part in self._parts()]
                self._done = [digest for one in held for digest in json.loads(one[BATCHES])]
        if not self._done:
            shutil.rmtree(self.folder, ignore_errors=True)
            with atomic_file(self.folder / RUN) as file:
                file.write(text or "")

    def has(self, digest: str) -> bool:
        """Whether the next batch was written before; an error if another one was."""
        if self._taken >= len(self._done):
            return False
        if self._done[self._taken] != digest:
            raise InputError(
                f"'{self.out}' was begun with other examples, or in another order (batch "
                f"{self._taken}); give the same batches, or start anew with resume=False."
            )
        self._taken += 1
        return True

    def add(self, digest: str, rows: pa.Table) -> None:
        """Add the rows of the next batch; they reach the disk within seconds."""
        self._pending.append(rows)
        self._digests.append(digest)
        waited = time.monotonic() - self._since
        if waited >= PART_SECONDS or sum(table.nbytes for table in self._pending) > PART_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the collected rows to disk."""
        if self._pending:
            table = stacked(self._pending)
            held = {**(table.schema.metadata or {}), BATCHES: json.dumps(self._digests).encode()}
            part = self.folder / f"{len(self._parts()):06d}.parquet"
            with atomic_file(part, "wb") as file:
                pq.write_table(table.replace_schema_metadata(held), file)
            self._pending, self._digests = [], []
        self._since = time.monotonic()

    def finish(self) -> Path:
        """Make one file of all parts, and remove them."""
        if self._taken < len(self._done):
            raise InputError(
                f"'{self.out}' was begun with more examples ({len(self._done)} batches, now "
                f"{self._taken}); give the same batches, or start anew with resume=False."
            )
        self.flush()
        parts = self._parts()
        schemas = []
        for part in parts:
            schema = pq.read_schema(part)
            held = {k: v for k, v in (schema.metadata or {}).items() if k != BATCHES}
            schemas.append(schema.with_metadata(held))
        schema = common_schema(schemas)
        with atomic_file(self.out, "wb") as file, pq.ParquetWriter(file, schema) as writer:
            waiting: list[pa.Table] = []
            for part in parts:
                waiting += fitted([pq.read_table(part)], schema)
                if sum(table.num_rows for table in waiting) >= ROWS_TOGETHER:
                    writer.write_table(pa.concat_tables(waiting))
                    waiting = []
            if waiting:
                writer.write_table(pa.concat_tables(waiting))
        shutil.rmtree(self.folder, ignore_errors=True)
        return self.out

    def _parts(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9]*.parquet"))
