"""Folders of encoded images, decoded to one size and cached on disk."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from fairweight.base import locks
from fairweight.base.files import cache_folder, writing
from fairweight.data.codecs import FITS, Fit, Target, decode_all, shape_of
from fairweight.data.dataset import Pixels
from fairweight.errors import InputError, UnknownNameError

# Decoded images, cached on disk: made once, memory-mapped from then on.
#
# An array is written block by block into a file of another name, and gets its own name when it is
# whole. The length of that other file says how far it is, so a run that was killed goes on there.

VERSION = 1  # raise it when the same facts would give other pixels
_BLOCK_BYTES = 1 << 25  # what is decoded before it is written

Progress: TypeAlias = Callable[[int, int], None]  # rows done, rows in all


def filled(
    facts: Any,
    shape: tuple[int, ...],
    rows: Callable[[int, int], Pixels],
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Pixels:
    """The decoded array for these settings, from the cache or made now; memory-mapped.

    Changes to it stay in memory: the file is never written again.

    Parameters
    ----------
    facts
        Everything that the pixels depend on, as JSON can write it: the name of the file.
    rows
        Gives the rows from `start` to `stop` of the array.
    """
    described = json.dumps([VERSION, list(shape), facts], sort_keys=True)
    key = hashlib.sha256(described.encode()).hexdigest()[:32]
    finished = (folder or cache_folder("images")) / f"{key}.npy"
    held = _opened(finished, shape)
    if held is not None:
        return held
    unfinished = finished.with_suffix(".partial")
    with writing(finished):
        finished.parent.mkdir(parents=True, exist_ok=True)
        # The file is for this process only; the system frees it even when the process is killed.
        with open(os.open(unfinished, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
            locks.hold(file.fileno())
            # Another process may have made it while this one waited.
            if _opened(finished, shape) is None:
                _fill(file, shape, rows, progress)
                os.replace(unfinished, finished)
            else:
                unfinished.unlink(missing_ok=True)
    return _mapped(finished)


def _opened(path: Path, shape: tuple[int, ...]) -> Pixels | None:
    """The finished array; None where there is none, or one that was damaged since."""
    try:
        held = _mapped(path)
    except (OSError, ValueError, EOFError):
        return None
    return held if held.shape == shape and held.dtype == np.uint8 else None


def _mapped(path: Path) -> Pixels:
    # Copy on write: torch warns about arrays that cannot be written.
    held: Pixels = np.load(path, mmap_mode="c")
    return held


def _fill(
    file: IO[bytes],
    shape: tuple[int, ...],
    rows: Callable[[int, int], Pixels],
    progress: Progress | None,
) -> None:
    """Write the rows that follow the last complete one."""
    # Written, not memory-mapped: a full disk is then an error and not the end of the process.
    stream = io.BytesIO()
    described = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, described)
    header = stream.getvalue()
    row, start = math.prod(shape[1:]), 0
    file.seek(0)
    if file.read(len(header)) == header:
        start = (file.seek(0, os.SEEK_END) - len(header)) // row if row else 0
        file.truncate(len(header) + start * row)
        file.seek(0, os.SEEK_END)
    else:
        file.truncate(0)
        file.seek(0)
        file.write(header)
    block = max(1, min(1024, _BLOCK_BYTES // max(1, row)))
    while start < shape[0]:
        stop = min(start + block, shape[0])
        file.write(np.ascontiguousarray(rows(start, stop)).tobytes())
        file.flush()
        start = stop
        if progress is not None:
            progress(start, shape[0])
    os.fsync(file.fileno())


__all__ = ["SUFFIXES", "Progress", "Size", "photographs", "target_of"]

Size: TypeAlias = int | tuple[int, int] | None  # a square, (height, width), or that of the images

SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".webp"})


def photographs(
    base: Path,
    names: Sequence[str],
    *,
    size: Size,
    fit: Fit = "crop",
    greyscale: bool = False,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Pixels:
    """Pixels (files, height, width, 3) of files below `base`, RGB; with `greyscale` of 1 channel.

    They are decoded once; changing a file, or the list of files, makes them anew.
    """
    if not names:
        raise InputError(f"'{base}' has no images; unpack the official download there.")
    target = target_of(size, fit, shape_of(base / names[0], named=str(base / names[0])))
    target = Target(target.height, target.width, 1 if greyscale else 3, target.fit)

    def rows(start: int, stop: int) -> Pixels:
        return decode_all(((base / n, str(base / n)) for n in names[start:stop]), target)

    facts: list[list[str | int]] = []
    for name in names:
        try:
            held = (base / name).stat()
        except OSError:
            raise InputError(
                f"'{base / name}' does not exist although the data set lists it; unpack the "
                "official download again."
            ) from None
        facts.append([name, held.st_size, held.st_mtime_ns])
    return filled(
        [target.fit, facts],
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
