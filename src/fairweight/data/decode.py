"""One encoded image (JPEG, PNG, WebP …) to pixels of a given size."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

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
            image = _scaled(image, target)
        return np.asarray(image, dtype=np.uint8).reshape(target.shape)


def decode_all(sources: Iterable[tuple[bytes | Path, str]], target: Target) -> Pixels:
    """Pixels (images, height, width, channels) of sources and their names."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return np.stack(list(pool.map(lambda one: decode(one[0], target, named=one[1]), sources)))


def shape_of(source: bytes | Path, *, named: str) -> tuple[int, int, int]:
    """Height, width and channels (1 where the image is grey, else 3) of an encoded image."""
    with _opened(source, named) as image:
        return image.height, image.width, 1 if image.mode in ("1", "L") else 3


def _scaled(image: Image, target: Target) -> Image:
    bilinear = _pillow().Resampling.BILINEAR
    if target.fit == "stretch":
        return image.resize((target.width, target.height), bilinear)
    wide, high = image.size
    scale = max(target.height / high, target.width / wide)
    size = max(target.width, round(wide * scale)), max(target.height, round(high * scale))
    left, top = (size[0] - target.width) // 2, (size[1] - target.height) // 2
    middle = (left, top, left + target.width, top + target.height)
    return image.resize(size, bilinear).crop(middle)


@contextmanager
def _opened(source: bytes | Path, named: str) -> Iterator[Image]:
    pillow = _pillow()
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
    try:
        from PIL import Image
    except ImportError:
        raise InputError(
            "Reading images needs Pillow, which is not installed: pip install 'fairweight[lab]'."
        ) from None
    return Image
