"""A small picture for a page that holds hundreds of them."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairweight.data.png import png

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

SIDE = 96  # pixels: the size at which a page shows it
MOST_BYTES = 9_000  # two hundred of them are 2.4 MB of text
_QUALITIES = (85, 70, 50, 30)


def thumbnail_uri(image: NDArray[np.uint8]) -> str:
    """An image as a data URI: a PNG where that is small or Pillow is not there, else a JPEG.

    >>> thumbnail_uri(np.zeros((2, 2), dtype=np.uint8))[:22]
    'data:image/png;base64,'
    """
    largest = max(image.shape[:2])
    if largest <= SIDE:
        whole = png(image)
        if len(whole) <= MOST_BYTES // 3:  # drawings and small images keep every pixel
            return _uri(whole, "png")
    try:
        from PIL import Image
    except ImportError:
        step = -(-largest // SIDE)
        return _uri(png(image[::step, ::step]), "png")
    with Image.open(io.BytesIO(png(image))) as opened:
        opened.thumbnail((SIDE, SIDE))
        return _uri(_jpeg(opened), "jpeg")


def _jpeg(picture: Picture) -> bytes:
    encoded = b""
    for quality in _QUALITIES:
        held = io.BytesIO()
        picture.save(held, format="JPEG", quality=quality, optimize=True)
        encoded = held.getvalue()
        if len(encoded) <= MOST_BYTES:
            break
    return encoded


def _uri(encoded: bytes, kind: str) -> str:
    return f"data:image/{kind};base64," + base64.b64encode(encoded).decode("ascii")
