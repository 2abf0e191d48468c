"""Encoded images (JPEG, PNG, WebP …) to pixels of a given size, and pixels to PNG or JPEG."""

from __future__ import annotations

import base64
import io
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.data.dataset import Pixels
from fairweight.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

Fit: TypeAlias = Literal["crop", "stretch", "exact"]
FITS: tuple[Fit, ...] = ("crop", "stretch", "exact")
_THREADS = min(4, os.cpu_count() or 1)  # Pillow decodes outside Python's lock


@dataclass(frozen=True)
class Target:
    """What an image is to become.

    fit    `crop`: scaled until it covers the target, then cut around its middle;
           `stretch`: scaled in both directions; `exact`: it must have this size already
    """

    height: int
    width: int
    channels: int
    fit: Fit

    @property
    def shape(self) -> tuple[int, int, int]:
        return (self.height, self.width, self.channels)


def decode(source: bytes | Path, target: Target, *, named: str) -> Pixels:
    """Pixels (height, width, channels) of a file, or of the bytes of one."""
    with _opened(source, named) as opened:
        image = opened.convert("L" if target.channels == 1 else "RGB")
        wide, high = image.size
        if target.fit == "exact" and (high, wide) != (target.height, target.width):
            raise InputError(
                f"'{named}' has {wide} × {high} pixels instead of "
                f"{target.width} × {target.height}; give the size that all shall have (size=...)."
            )
        if (high, wide) != (target.height, target.width):
            bilinear = _pillow().Resampling.BILINEAR
            if target.fit == "stretch":
                image = image.resize((target.width, target.height), bilinear)
            else:
                scale = max(target.height / high, target.width / wide)
                wide = max(target.width, round(wide * scale))
                high = max(target.height, round(high * scale))
                left, top = (wide - target.width) // 2, (high - target.height) // 2
                middle = (left, top, left + target.width, top + target.height)
                image = image.resize((wide, high), bilinear).crop(middle)
        return np.asarray(image, dtype=np.uint8).reshape(target.shape)


def decode_all(sources: Iterable[tuple[bytes | Path, str]], target: Target) -> Pixels:
    """Pixels (images, height, width, channels) of sources and their names."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return np.stack(list(pool.map(lambda one: decode(one[0], target, named=one[1]), sources)))


def shape_of(source: bytes | Path, *, named: str) -> tuple[int, int, int]:
    """Height, width and channels (1 where the image is grey, else 3) of an encoded image."""
    with _opened(source, named) as image:
        return image.height, image.width, 1 if image.mode in ("1", "L") else 3


@contextmanager
def _opened(source: bytes | Path, named: str) -> Iterator[Image]:
    pillow = _pillow()
    if pillow is None:
        raise InputError(
            "Reading images needs Pillow, which is not installed: pip install 'fairweight[lab]'."
        )
    try:
        with pillow.open(io.BytesIO(source) if isinstance(source, bytes) else source) as image:
            yield image
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(
            f"'{named}' does not exist although the data set lists it; unpack the official "
            "download again."
        ) from None
    except Exception as error:  # a damaged image fails in Pillow in many ways
        raise InputError(
            f"'{named}' cannot be read as an image ({error}); replace or remove it."
        ) from error


def _pillow() -> Any:
    """Pillow's module of images; None where it is not installed."""
    try:
        from PIL import Image
    except ImportError:
        return None
    return Image


# An image as a PNG: bytes for a file, text for a page.

_START = b"\x89PNG\r\n\x1a\n"
_GREY, _COLOURS = 0, 2  # kinds of pixels, as the format numbers them


def png(image: NDArray[np.uint8]) -> bytes:
    """The file of one image, (height, width) or (height, width, 1 or 3)."""
    pixels = image[:, :, 0] if image.ndim == 3 and image.shape[2] == 1 else image
    pillow = _pillow()
    if pillow is None:
        return _plain(np.ascontiguousarray(pixels))
    held = io.BytesIO()
    pillow.fromarray(np.ascontiguousarray(pixels)).save(held, format="PNG")
    return held.getvalue()


def png_uri(image: NDArray[np.uint8]) -> str:
    """The same as a data URI.

    >>> png_uri(np.zeros((2, 2), dtype=np.uint8))[:22]
    'data:image/png;base64,'
    """
    return _uri(png(image), "png")


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


# A small picture for a page that holds hundreds of them.

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
    pillow = _pillow()
    if pillow is None:
        step = -(-largest // SIDE)
        return _uri(png(image[::step, ::step]), "png")
    with pillow.open(io.BytesIO(png(image))) as opened:
        opened.thumbnail((SIDE, SIDE))
        for quality in _QUALITIES:
            held = io.BytesIO()
            opened.save(held, format="JPEG", quality=quality, optimize=True)
            if len(held.getvalue()) <= MOST_BYTES:
                break
        return _uri(held.getvalue(), "jpeg")


def _uri(encoded: bytes, kind: str) -> str:
    return f"data:image/{kind};base64," + base64.b64encode(encoded).decode("ascii")
