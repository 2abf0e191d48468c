"""Images of an item's examples as small files that a browser can show."""

from __future__ import annotations

import io
import threading
from functools import lru_cache
from typing import Any, Protocol

from fairweight.errors import FairweightError
from fairweight.report.image_sources import ending
from fairweight.web.dataset_images import DatasetImages
from fairweight.web.item import Item
from fairweight.web.table_images import table_images

SMALLEST, LARGEST = 16, 1024  # sides in pixels
MOST_PIXELS = 50_000_000  # of a file; more is refused before it is decoded
KEPT = 512  # encoded images in memory
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
PNG = "image/png"
# What is sent as it is where Pillow is missing.
PLAIN = {".png": PNG, ".jpg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}


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
            if not self._opened:
                try:
                    self._source = self._found()
                except (FairweightError, OSError, ImportError) as error:
                    self.reason = str(error)
                self._opened = True
        return self._source

    def _found(self) -> ImageSource | None:
        in_tables = table_images(self._item)
        if in_tables is not None:
            return in_tables
        if self._item.dataset is not None:
            return DatasetImages(self._item.dataset, self._item.data)
        self.reason = (
            "There are no images: no table has a column image or image_path, and the folder does "
            "not name its data set; name it (--dataset NAME --data DIR)."
        )
        return None


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
            return _png(opened, size), PNG
    # Pillow's decoders raise many kinds of errors about damaged files.
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError):
        return None


def _png(opened: Any, size: int) -> bytes:
    shown = opened if opened.mode in ("L", "RGB") else opened.convert("RGB")
    if max(shown.size) > size:
        shown = shown.copy()
        shown.thumbnail((size, size))
    held = io.BytesIO()
    shown.save(held, format="PNG")
    return held.getvalue()
