"""Folders of encoded images, decoded to one size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from fairweight.data.cache import Progress, filled
from fairweight.data.dataset import Pixels
from fairweight.data.decode import FITS, Fit, Target, decode_all, shape_of
from fairweight.errors import InputError, UnknownNameError

__all__ = ["SUFFIXES", "Progress", "Size", "photographs", "target_of"]

Size: TypeAlias = int | tuple[int, int] | None  # a square, (height, width), or that of the images

SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".webp"})


def photographs(
    base: Path,
    names: Sequence[str],
    *,
    size: Size,
    fit: Fit = "crop",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Pixels:
    """RGB pixels (files, height, width, 3) of files below `base`.

    They are decoded once; changing a file, or the list of files, makes them anew.
    """
    if not names:
        raise InputError(f"'{base}' has no images; unpack the official download there.")
    target = target_of(size, fit, shape_of(base / names[0], named=str(base / names[0])))
    target = Target(target.height, target.width, 3, target.fit)

    def rows(start: int, stop: int) -> Pixels:
        return decode_all(((base / n, str(base / n)) for n in names[start:stop]), target)

    return filled(
        [target.fit, [_facts(base, name) for name in names]],
        (len(names), *target.shape),
        rows,
        folder=cache,
        progress=progress,
    )


def target_of(size: Size, fit: Fit, first: tuple[int, int, int]) -> Target:
    """What images become: of the size that was asked for, else all of the size of the first."""
    if fit not in FITS:
        raise UnknownNameError("Fit", fit, FITS)
    high, wide, channels = first
    if size is None:
        return Target(high, wide, channels, "exact")
    height, width = (size, size) if isinstance(size, int) else size
    if height < 1 or width < 1:
        raise InputError(f"size is {size}; give whole numbers from 1.")
    return Target(height, width, channels, fit)


def _facts(base: Path, name: str) -> list[str | int]:
    try:
        held = (base / name).stat()
    except OSError:
        raise InputError(
            f"'{base / name}' does not exist although the data set lists it; unpack the official "
            "download again."
        ) from None
    return [name, held.st_size, held.st_mtime_ns]
