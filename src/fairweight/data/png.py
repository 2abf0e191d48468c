"""An image as a PNG: bytes for a file, text for a page."""

from __future__ import annotations

import base64
import io
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_START = b"\x89PNG\r\n\x1a\n"
_GREY, _COLOURS = 0, 2  # kinds of pixels, as the format numbers them


def png(image: NDArray[np.uint8]) -> bytes:
    """The file of one image, (height, width) or (height, width, 1 or 3)."""
    pixels = image[:, :, 0] if image.ndim == 3 and image.shape[2] == 1 else image
    try:
        from PIL import Image
    except ImportError:
        return _plain(np.ascontiguousarray(pixels))
    held = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(held, format="PNG")
    return held.getvalue()


def png_uri(image: NDArray[np.uint8]) -> str:
    """The same as a data URI.

    >>> png_uri(np.zeros((2, 2), dtype=np.uint8))[:22]
    'data:image/png;base64,'
    """
    return "data:image/png;base64," + base64.b64encode(png(image)).decode("ascii")


def _plain(pixels: NDArray[np.uint8]) -> bytes:
    """The same without Pillow: eight bits, no filters, so a little larger."""
    height, width = pixels.shape[:2]
    kind = _GREY if pixels.ndim == 2 else _COLOURS
    rows = np.zeros((height, 1 + pixels.size // height), dtype=np.uint8)  # each begins with a 0
    rows[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return _START + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    )
