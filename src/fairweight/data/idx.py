"""The idx format of MNIST and its relatives: big-endian arrays with a small header."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.data.official_files import AGAIN, read_bytes
from fairweight.errors import InputError

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: Path, *, ndim: int) -> NDArray[Any]:
    """The array of an idx file, compressed with gzip or not.

    The header is two zero bytes, the type, the number of axes, and the length of each axis.
    """
    content = read_bytes(path)
    header = 4 + 4 * ndim
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise InputError(f"'{path}' is not an idx file (its first bytes are others); {AGAIN}.")
    if content[3] != ndim or len(content) < header:
        raise InputError(
            f"'{path}' holds an array of {content[3]} axes instead of {ndim}; it may be another "
            f"file under this name: {AGAIN}."
        )
    dtype = np.dtype(_TYPES[content[2]])
    shape = tuple(np.frombuffer(content, ">u4", count=ndim, offset=4).tolist())
    expected = header + math.prod(shape) * dtype.itemsize
    if len(content) != expected:
        raise InputError(
            f"'{path}' has {len(content):,} bytes instead of the {expected:,} that its header "
            f"announces: {AGAIN}."
        )
    return (
        np.frombuffer(content, dtype, offset=header).reshape(shape).astype(dtype.newbyteorder("="))
    )
