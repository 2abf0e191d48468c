"""Photographs of 32 × 32 pixels: CIFAR-10 and CIFAR-100 in their batches, SVHN in MATLAB files."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from fairweight.data.dataset import DIGITS, Images, Pixels, Whole, joined
from fairweight.data.parquet import parquet_files, read_parquet_images
from fairweight.data.photographs import Progress
from fairweight.data.registry import (
    AGAIN,
    Needs,
    chosen,
    find_file,
    find_folder,
    need_file,
    read_bytes,
    read_lines,
    register,
)
from fairweight.errors import InputError

# Pickles of plain data, read without running what they say.
#
# A pickle may name any function and have it called. Here only the three names that a numpy array
# needs are known, and each stands for an inert record: nothing of numpy, and nothing of anybody
# else, is called while reading.


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
    """A stand-in for a pickled class: keeps its arguments and state, and runs nothing."""

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


CIFAR10 = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
_PIXELS = 3 * 32 * 32
_SOURCE = "Krizhevsky 2009"
_BATCHES_10 = tuple(f"data_batch_{i}" for i in range(1, 6))
_BINARY_10 = ("cifar-10-batches-bin", "cifar10/cifar-10-batches-bin", "cifar10")
_PYTHON_10 = ("cifar-10-batches-py", "cifar10/cifar-10-batches-py", "cifar10")
_BINARY_100 = ("cifar-100-binary", "cifar100/cifar-100-binary", "cifar100")
_PYTHON_100 = ("cifar-100-python", "cifar100/cifar-100-python", "cifar100")
_NAMES_100 = ("fine_label_names.txt", "coarse_label_names.txt")


@dataclass(frozen=True)
class _Batch:
    pixels: Pixels  # (examples, 3 * 32 * 32): planes of red, green, blue
    label: Whole
    superclass: Whole | None = None


@register(
    "cifar10",
    summary="photographs of 10 kinds of things, 50,000 + 10,000, 32 × 32 colour",
    source=_SOURCE,
    layout=(
        "cifar-10-batches-bin/data_batch_1.bin … 5, test_batch.bin",
        "or cifar-10-batches-py/data_batch_1 … 5, test_batch",
        "or cifar10/*.parquet (example_id, image, label)",
    ),
    needs=(
        Needs(_BINARY_10, (*(f"{name}.bin" for name in _BATCHES_10), "test_batch.bin")),
        Needs(_PYTHON_10, (*_BATCHES_10, "test_batch")),
        Needs(("cifar10",), ("*.parquet",), telling=False),
    ),
)
def cifar10(root: Path, *, cache: Path | None = None, progress: Progress | None = None) -> Images:
    binary, python = find_folder(root, *_BINARY_10), find_folder(root, *_PYTHON_10)
    if find_file(binary, "test_batch.bin", "data_batch_1.bin"):
        train = [_binary(_need(binary, f"{name}.bin", 10), coarse=False) for name in _BATCHES_10]
        test = _binary(_need(binary, "test_batch.bin", 10), coarse=False)
    elif find_file(python, "test_batch", "data_batch_1"):
        train = [_python(_need(python, name, 10), "labels") for name in _BATCHES_10]
        test = _python(_need(python, "test_batch", 10), "labels")
    else:
        files = parquet_files(find_folder(root, "cifar10"))
        if not files:
            _need(binary, "data_batch_1.bin", 10)
        return read_parquet_images(
            "cifar10", files, label="label", classes=CIFAR10, cache=cache, progress=progress
        )
    whole = _Batch(
        np.concatenate([batch.pixels for batch in train]),
        np.concatenate([batch.label for batch in train]),
    )
    return _whole("cifar10", {"train": whole, "test": test}, CIFAR10, ())


@register(
    "cifar100",
    summary="photographs of 100 kinds of things, 50,000 + 10,000, 32 × 32 colour",
    source=_SOURCE,
    layout=(
        "cifar-100-binary/train.bin, test.bin, fine_label_names.txt, coarse_label_names.txt",
        "or cifar-100-python/train, test, meta",
    ),
    groups=("superclass",),
    needs=(
        Needs(_BINARY_100, ("train.bin", "test.bin", *_NAMES_100)),
        Needs(_PYTHON_100, ("train", "test", "meta")),
    ),
)
def cifar100(root: Path) -> Images:
    binary, python = find_folder(root, *_BINARY_100), find_folder(root, *_PYTHON_100)
    if find_file(binary, "train.bin", "test.bin") or not find_file(python, "train", "test"):
        parts = {
            split: _binary(_need(binary, f"{split}.bin", 100), coarse=True)
            for split in ("train", "test")
        }
        fine, coarse = (read_lines(_need(binary, name, 100)) for name in _NAMES_100)
    else:
        parts = {
            split: _python(_need(python, split, 100), "fine_labels", "coarse_labels")
            for split in ("train", "test")
        }
        meta = read_plain_pickle(_need(python, "meta", 100))
        fine, coarse = meta.get("fine_label_names", []), meta.get("coarse_label_names", [])
    return _whole("cifar100", parts, tuple(fine), tuple(coarse))


def _need(folder: Path, name: str, classes: int) -> Path:
    return need_file(folder, name, dataset=f"cifar{classes}")


def _binary(path: Path, *, coarse: bool) -> _Batch:
    """Records of one label (CIFAR-100: superclass, class) and the planes of an image."""
    content = np.frombuffer(read_bytes(path), np.uint8)
    head = 2 if coarse else 1
    if not len(content) or len(content) % (head + _PIXELS):
        raise InputError(
            f"'{path}' has {len(content):,} bytes, which is no number of records of "
            f"{head + _PIXELS:,} bytes; {AGAIN}."
        )
    records = content.reshape(-1, head + _PIXELS)
    label = records[:, head - 1].astype(np.int64)
    superclass = records[:, 0].astype(np.int64) if coarse else None
    return _Batch(records[:, head:], label, superclass)


def _python(path: Path, label: str, superclass: str | None = None) -> _Batch:
    held = read_plain_pickle(path)
    for key in ("data", label, *([superclass] if superclass else [])):
        if key not in held:
            raise InputError(f"'{path}' has no entry '{key}'; {AGAIN}.")
    pixels, labels = held["data"], _numbers(held[label], path)
    if getattr(pixels, "shape", None) != (len(labels), _PIXELS):
        raise InputError(f"'{path}' does not hold one image per label; {AGAIN}.")
    above = _numbers(held[superclass], path) if superclass else None
    return _Batch(pixels, labels, above)


def _numbers(given: object, path: Path) -> Whole:
    if not isinstance(given, list) or not all(isinstance(x, int) and 0 <= x < 256 for x in given):
        raise InputError(f"'{path}' has labels that are no small numbers; {AGAIN}.")
    return np.array(given, dtype=np.int64)


def _whole(
    name: str, parts: Mapping[str, _Batch], classes: tuple[str, ...], coarse: tuple[str, ...]
) -> Images:
    upright = {
        split: np.ascontiguousarray(batch.pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        for split, batch in parts.items()
    }
    images = joined(name, {split: (upright[split], parts[split].label) for split in parts}, classes)
    if not coarse:
        return images
    above = np.concatenate([b.superclass for b in parts.values() if b.superclass is not None])
    if above.max() >= len(coarse):
        raise InputError(
            f"Data set '{name}' names {len(coarse)} superclasses, but its labels go up to "
            f"{above.max()}; {AGAIN}."
        )
    return replace(images, groups={"superclass": np.array(coarse)[above]})


# SVHN, format 2: house numbers cut to single digits, in MATLAB files.

_SVHN_SPLITS = ("train", "test", "extra")


@register(
    "svhn",
    summary="digits of house numbers, 73,257 + 26,032 (+ 531,131 extra), 32 × 32 colour",
    source="Netzer et al. 2011, format 2; non-commercial use",
    layout=("in svhn/ or SVHN/", "train_32x32.mat, test_32x32.mat, extra_32x32.mat"),
    needs=(Needs(("svhn", "SVHN"), ("train_32x32.mat", "test_32x32.mat")),),
)
def svhn(root: Path, *, splits: str | Sequence[str] = ("train", "test")) -> Images:
    from scipy.io import loadmat  # with scipy

    folder = find_folder(root, "svhn", "SVHN")
    parts = {}
    for split in chosen(splits, _SVHN_SPLITS):
        path = need_file(folder, f"{split}_32x32.mat", dataset="svhn")
        try:
            held = loadmat(path, variable_names=("X", "y"))
        except Exception as error:  # scipy raises whatever its parser meets in a damaged file
            raise InputError(
                f"'{path}' cannot be read as a MATLAB file ({error}); {AGAIN}."
            ) from error
        if "X" not in held or "y" not in held:
            raise InputError(f"'{path}' has no arrays X and y; take the files of format 2.")
        pixels, label = held["X"], held["y"].ravel().astype(np.int64)
        if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[3] != len(label):
            raise InputError(
                f"'{path}' holds images of shape {pixels.shape} ({pixels.dtype}) for {len(label)} "
                f"labels, instead of bytes of shape (32, 32, 3, {len(label)}); {AGAIN}."
            )
        label[label == 10] = 0  # MATLAB counts from 1: the digit 0 has the label 10
        parts[split] = (np.ascontiguousarray(np.moveaxis(pixels, 3, 0)), label)
    return joined("svhn", parts, DIGITS)
