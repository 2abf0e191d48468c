"""An image as a PNG: bytes for a file, text for a page."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray

from fairweight.errors import InputError


def png(image: NDArray[np.uint8]) -> bytes:
    """The file of one image, (height, width) or (height, width, 1 or 3)."""
    try:
        from PIL import Image
    except ImportError:
        raise InputError(
            "Drawing images of a data set needs Pillow, which is not installed: "
            "pip install 'fairweight[lab]'."
        ) from None
    pixels = image[:, :, 0] if image.ndim == 3 and image.shape[2] == 1 else image
    held = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(held, format="PNG")
    return held.getvalue()


def png_uri(image: NDArray[np.uint8]) -> str:
    """The same as a data URI.

    >>> png_uri(np.zeros((2, 2), dtype=np.uint8))[:22]
    'data:image/png;base64,'
    """
    return "data:image/png;base64," + base64.b64encode(png(image)).decode("ascii")
