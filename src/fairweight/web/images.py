"""Images of an item's examples as small files that a browser can show."""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fairweight.data import load
from fairweight.data.backdoor import MARKS, Backdoor
from fairweight.errors import FairweightError
from fairweight.report.images import BYTES, PATH, DatasetImages, ending
from fairweight.specs.data import Data, DrawnBackdoor
from fairweight.tables.canonical import canonical_sql
from fairweight.tables.connection import Workspace, quote
from fairweight.tables.sources import open_source
from fairweight.web.items import Item

# Images from a table's column `image` (bytes) or `image_path` (files of the study's folder).

BATCH = 256  # rows of images that are decoded together
MOST_BYTES = 50_000_000  # of one file


class StoredImages:
    """Images in a Parquet file, read a few rows at a time."""

    def __init__(self, path: Path, ids: pa.ChunkedArray) -> None:
        self._file, self._ids = pq.ParquetFile(path), ids
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

    def __init__(self, table: Path, named: pa.Table, item: Item) -> None:
        self._ids, self._paths = named.column(0), named.column(1)
        self._beside = table.resolve().parent
        roots = [item.folder, *([] if item.data is None else [item.data])]
        self._roots = [root.resolve() for root in roots]

    def file(self, example_id: str) -> bytes | None:
        """The bytes of the file; None also where it lies anywhere else."""
        row = _place(self._ids, example_id)
        named: str | None = None if row is None else self._paths[row].as_py()
        if named is None or "\x00" in named or Path(named).is_absolute():
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
    if item.tables is None:
        return None
    id = item.tables.id
    one = item.tables.sources[0] if len(item.tables.sources) == 1 else None
    for ref in (item.tables.examples, one):
        given = None if ref is None or ref.variant else ref.path
        if given is None or not Path(given).is_file():
            continue
        workspace = Workspace()
        try:
            source = open_source(workspace, given)
            if id not in source.columns:
                continue
            ids, view = canonical_sql(quote(id), source.columns[id]), quote(source.view)
            if BYTES in source.columns and Path(given).suffix in (".parquet", ".pq"):
                rows = workspace.connection.sql(f"SELECT {ids} FROM {view}").to_arrow_table()
                return StoredImages(Path(given), rows.column(0))
            if PATH in source.columns:  # each example once
                paths = f"any_value(CAST({quote(PATH)} AS VARCHAR))"
                rows = workspace.connection.sql(f"SELECT {ids}, {paths} FROM {view} GROUP BY 1")
                return NamedImages(Path(given), rows.to_arrow_table(), item)
        finally:
            workspace.close()
    return None


def _place(ids: Any, example_id: str) -> int | None:
    try:
        wanted = pa.scalar(example_id, ids.type)
    except UnicodeEncodeError:  # lone surrogates are in no table
        return None
    found = int(pc.index(ids, wanted).as_py())
    return None if found < 0 else found


def dataset_images(spec: Data, root: Path | None) -> DatasetImages:
    """The images of a data set with the marks that the study gave them."""
    if isinstance(spec.backdoor, DrawnBackdoor):
        # Who is marked depends on the parts, which only the lab divides.
        from fairweight.lab.partition import prepare

        return DatasetImages(prepare(spec, root).test)
    images = load(spec.name, root, **dict(spec.options))
    if not isinstance(spec.backdoor, str):
        return DatasetImages(images)
    drawn = Backdoor.read(Path(spec.backdoor))
    return DatasetImages(images, MARKS[drawn.kind], drawn.ids)


SMALLEST, LARGEST = 16, 1024  # sides in pixels
MOST_PIXELS = 50_000_000  # of a file; more is refused before it is decoded
KEPT = 512  # encoded images in memory
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
PNG = "image/png"
# What is sent as it is where Pillow is missing.
PLAIN = {".png": PNG, ".jpg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
NONE = (
    "There are no images: no table has a column image or image_path, and the folder does not name "
    "its data set; name it (--dataset NAME --data DIR)."
)


class ImageSource(Protocol):
    """Where the image files of examples come from."""

    def file(self, example_id: str) -> bytes | None:
        """The file of an example's image; None where there is none."""


class Pictures:
    """The images of an item: from its tables, else from its data set.

    `reason` says why there are none, once somebody has asked.
    """

    def __init__(self, item: Item) -> None:
        self._item = item
        self._lock = threading.Lock()
        self._opened = False
        self._source: ImageSource | None = None
        self.reason: str | None = None
        self._kept = lru_cache(maxsize=KEPT)(self._made)

    def encoded(self, example_id: str, size: int = 128) -> tuple[bytes, str] | None:
        """A file and its media type, at most `size` pixels wide and high; None: no image."""
        return self._kept(example_id, min(max(size, SMALLEST), LARGEST))

    @property
    def available(self) -> bool:
        """Whether there are images at all; opens where they come from."""
        return self._open() is not None

    def _made(self, example_id: str, size: int) -> tuple[bytes, str] | None:
        source = self._open()
        if source is None:
            return None
        try:
            with self._lock:  # readers of tables are not made for several threads
                file = source.file(example_id)
        except (FairweightError, OSError):
            return None
        return None if file is None else thumbnail(file, size)

    def _open(self) -> ImageSource | None:
        with self._lock:
            if self._opened:
                return self._source
            self._opened = True
            item = self._item
            try:
                self._source = table_images(item)
                if self._source is None and item.dataset is not None:
                    self._source = dataset_images(item.dataset, item.data)
                elif self._source is None:
                    self.reason = NONE
            except (FairweightError, OSError, ImportError) as error:
                self.reason = str(error)
        return self._source


def thumbnail(file: bytes, size: int) -> tuple[bytes, str] | None:
    """An image file encoded again, so that nothing of it but the pixels is sent; None: no image."""
    kind = ending(file)
    if kind is None:
        return None
    try:
        from PIL import Image
    except ImportError:
        return (file, PLAIN[kind]) if kind in PLAIN else None
    try:
        with Image.open(io.BytesIO(file), formats=FORMATS) as opened:
            if opened.width * opened.height > MOST_PIXELS:
                return None
            opened.draft("RGB", (size, size))  # JPEGs are decoded small at once
            small = opened if opened.mode in ("L", "RGB") else opened.convert("RGB")
            if max(small.size) > size:
                small = small.copy()
                small.thumbnail((size, size))
            held = io.BytesIO()
            small.save(held, format="PNG")
            return held.getvalue(), PNG
    # Pillow's decoders raise many kinds of errors about damaged files.
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError):
        return None
