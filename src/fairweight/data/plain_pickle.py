"""Pickles of plain data, read without running what they say.

A pickle may name any function and have it called. Here only the three names that a numpy array
needs are known, and each stands for an inert record: nothing of numpy, and nothing of anybody
else, is called while reading.
"""

from __future__ import annotations

import math
import pickle
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from fairweight.data.dataset import Pixels
from fairweight.data.official_files import AGAIN, read_bytes
from fairweight.errors import InputError


def read_plain_pickle(path: Path) -> dict[str, Any]:
    """A dictionary of text, numbers, lists and arrays of bytes (uint8)."""
    try:
        held = _Reader(BytesIO(read_bytes(path)), encoding="bytes").load()
        if not isinstance(held, dict):
            raise pickle.UnpicklingError("it holds no dictionary")
        return {_text(key): _plain(value) for key, value in held.items()}
    except InputError:
        raise
    except Exception as error:  # what a damaged pickle makes of the reader has no bounds
        raise InputError(
            f"'{path}' cannot be read as a batch of plain arrays ({error}); {AGAIN}."
        ) from error


class _Name:
    """Stands for a class or a data type: what it was called with, and what it was told then."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Array(_Name):
    def pixels(self) -> Pixels:
        _, shape, kind, by_columns, content = self.state
        if not isinstance(kind, _Name) or _text(kind.arguments[0]) != "u1":
            raise pickle.UnpicklingError("an array does not hold bytes")
        if by_columns or math.prod(shape) != len(content):
            raise pickle.UnpicklingError("an array has not the size that it announces")
        return np.frombuffer(bytes(content), np.uint8).reshape(shape)


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return _Array
        if module == "numpy" and name in ("ndarray", "dtype"):
            return _Name
        if (module, name) == ("_codecs", "encode"):  # how Python 3 writes bytes for Python 2
            return _latin_1
        raise pickle.UnpicklingError(f"it asks for '{module}.{name}', which is refused")


def _latin_1(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"it asks for the encoding '{encoding}', which is refused")
    return text.encode("latin-1")


def _plain(value: Any) -> Any:
    if isinstance(value, _Array):
        return value.pixels()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, str | int | float | None):
        return value
    raise pickle.UnpicklingError(f"it holds a {type(value).__name__}")


def _text(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
