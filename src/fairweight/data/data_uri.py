"""An image as text that a page can hold."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray


def png_uri(image: NDArray[np.uint8]) -> str:
    """A PNG data URI of one image, (height, width) or (height, width, 1 or 3).

    >>> png_uri(np.zeros((2, 2), dtype=np.uint8))[:22]
    'data:image/png;base64,'
    """
    from PIL import Image

    pixels = image[:, :, 0] if image.ndim == 3 and image.shape[2] == 1 else image
    held = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(held, format="PNG")
    return "data:image/png;base64," + base64.b64encode(held.getvalue()).decode("ascii")
