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
from typing import TYPE_CHECKING, Any

from fairweight.base.files import atomic_file
from fairweight.errors import FairweightError, InputError

if TYPE_CHECKING:
    import pyarrow as pa


# Tables on top of each other, where a column may be empty in one and filled in another.


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
        self._done = self._earlier() if resume and self._same(text) else []
        self._taken = 0
        if not self._done:
            self._start(text)

    def has(self, digest: str) -> bool:
        """Whether the next batch is there already; an error if another one is in its place."""
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
        """Take the rows of the next batch; they are on disk a few seconds later."""
        self._pending.append(rows)
        self._digests.append(digest)
        waited = time.monotonic() - self._since
        if waited >= PART_SECONDS or sum(table.nbytes for table in self._pending) > PART_BYTES:
            self.flush()

    def flush(self) -> None:
        """Put on disk what has been taken."""
        import pyarrow.parquet as pq

        if self._pending:
            table = stacked(self._pending)
            held = {**(table.schema.metadata or {}), BATCHES: json.dumps(self._digests).encode()}
            part = self.folder / f"{len(self._parts()):06d}.parquet"
            with atomic_file(part, "wb") as file:
                pq.write_table(table.replace_schema_metadata(held), file)
            self._pending, self._digests = [], []
        self._since = time.monotonic()

    def abandon(self) -> None:
        """Keep what can be kept of an interrupted run."""
        with suppress(FairweightError):
            self.flush()

    def finish(self) -> Path:
        """Make one file of all parts, and remove them."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._taken < len(self._done):
            raise InputError(
                f"'{self.out}' was begun with more examples ({len(self._done)} batches, now "
                f"{self._taken}); give the same batches, or start anew with resume=False."
            )
        self.flush()
        parts = self._parts()
        schema = common_schema([self._schema(part) for part in parts])
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

    def _schema(self, part: Path) -> pa.Schema:
        import pyarrow.parquet as pq

        schema = pq.read_schema(part)
        held = {k: v for k, v in (schema.metadata or {}).items() if k != BATCHES}
        return schema.with_metadata(held)

    def _parts(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9]*.parquet"))

    def _same(self, text: str | None) -> bool:
        try:
            return text is not None and (self.folder / RUN).read_text(encoding="utf-8") == text
        except (OSError, UnicodeDecodeError):
            return False

    def _earlier(self) -> list[str]:
        """Digests of the batches on disk; parts are written whole, so each can be read."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        done: list[str] = []
        try:
            for part in self._parts():
                done += json.loads((pq.read_schema(part).metadata or {})[BATCHES])
        except (pa.ArrowException, OSError, KeyError, ValueError):
            return []
        return done

    def _start(self, text: str | None) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        with atomic_file(self.folder / RUN) as file:
            file.write(text or "")
