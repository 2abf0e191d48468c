"""Images from a table's column `image` (bytes) or `image_path` (files of the study's folder)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.report.image_sources import BYTES, PATH
from fairweight.tables.canonical import canonical_sql
from fairweight.tables.sql import quote
from fairweight.web.item import Item

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 256  # rows of images that are decoded together
MOST_BYTES = 50_000_000  # of one file


class StoredImages:
    """Images in a Parquet file, read a few rows at a time."""

    def __init__(self, path: Path, id: str) -> None:
        import pyarrow.parquet as pq

        self._file = pq.ParquetFile(path)
        self._ids = _columns(str(path), id).column(0)
        self._rows = lru_cache(maxsize=8)(self._read)

    def file(self, example_id: str) -> bytes | None:
        """The bytes in the table."""
        row = _place(self._ids, example_id)
        if row is None:
            return None
        value = self._rows(row // BATCH)[row % BATCH].as_py()
        if isinstance(value, Mapping):  # Hugging Face's images: {bytes, path}
            value = value.get("bytes")
        return value if isinstance(value, bytes) else None

    def _read(self, number: int) -> pa.Array:
        for i, batch in enumerate(self._file.iter_batches(BATCH, columns=[BYTES])):
            if i == number:
                return batch.column(0)
        raise IndexError(number)


class NamedImages:
    """Image files that a table names, of the study's own folder or the given one."""

    def __init__(self, table: str, id: str, item: Item) -> None:
        found = _columns(table, id, PATH)
        self._ids, self._paths = found.column(0), found.column(1)
        self._beside = Path(table).resolve().parent
        roots = [item.folder, *([] if item.data is None else [item.data])]
        self._roots = [root.resolve() for root in roots]

    def file(self, example_id: str) -> bytes | None:
        """The bytes of the file; None also where it lies anywhere else."""
        row = _place(self._ids, example_id)
        named = None if row is None else self._paths[row].as_py()
        return None if named is None else self._confined(named)

    def _confined(self, named: str) -> bytes | None:
        if "\x00" in named or Path(named).is_absolute():
            return None
        for base in (self._beside, *self._roots):
            # Resolved first: a link or `..` that leads out of the folder is seen as what it is.
            path = (base / named).resolve()
            inside = any(path.is_relative_to(root) for root in self._roots)
            if inside and path.is_file() and path.stat().st_size <= MOST_BYTES:
                return path.read_bytes()
        return None


def table_images(item: Item) -> StoredImages | NamedImages | None:
    """Where a table of the item has images; None where none has."""
    id = item.columns.get("id", "example_id")
    for given in (item.examples, item.predictions):
        if not isinstance(given, str) or not Path(given).is_file():
            continue
        names = _names(given)
        if id not in names:
            continue
        if BYTES in names and Path(given).suffix in (".parquet", ".pq"):
            return StoredImages(Path(given), id)
        if PATH in names:
            return NamedImages(given, id, item)
    return None


def _names(table: str) -> list[str]:
    from fairweight.tables.connection import Workspace
    from fairweight.tables.sources import open_source

    workspace = Workspace()
    try:
        return list(open_source(workspace, table).columns)
    finally:
        workspace.close()


def _columns(table: str, id: str, path: str | None = None) -> pa.Table:
    """Identities as text, row by row; with a column of paths each example once, and its path."""
    from fairweight.tables.connection import Workspace
    from fairweight.tables.sources import open_source

    workspace = Workspace()
    try:
        source = open_source(workspace, table)
        ids = canonical_sql(quote(id), source.columns[id])
        rows = f"FROM {quote(source.view)}"
        sql = f"SELECT {ids} {rows}"
        if path is not None:
            sql = f"SELECT {ids}, any_value(CAST({quote(path)} AS VARCHAR)) {rows} GROUP BY 1"
        return workspace.connection.sql(sql).to_arrow_table()
    finally:
        workspace.close()


def _place(ids: Any, example_id: str) -> int | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        wanted = pa.scalar(example_id, ids.type)
    except UnicodeEncodeError:  # lone surrogates are in no table
        return None
    found = int(pc.index(ids, wanted).as_py())
    return None if found < 0 else found
