"""MNIST, Fashion-MNIST, KMNIST, EMNIST and QMNIST: 28 × 28 grey images in idx files."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairweight.data.dataset import DIGITS, SPLITS, Images, Pixels, Texts, Whole, joined
from fairweight.data.registry import (
    AGAIN,
    Needs,
    chosen,
    find_folder,
    need_file,
    read_bytes,
    register,
)
from fairweight.errors import InputError

# The idx format of MNIST and its relatives: big-endian arrays with a small header.

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


GARMENTS = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
KANA = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")

_DEBIAN = "/usr/share/datasets"  # where the package dataset-fashion-mnist puts its folder
_PREFIXES = {"train": "train", "test": "t10k"}
_FILES = (
    "train-images-idx3-ubyte, train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte",
)


def _needs(*folders: str) -> tuple[Needs]:
    names = [
        (f"{prefix}-{kind}", rank)
        for prefix in _PREFIXES.values()
        for kind, rank in (("images", "idx3-ubyte"), ("labels", "idx1-ubyte"))
    ]
    files = tuple(f"{name}-{rank}|{name}.{rank}" for name, rank in names)
    return (Needs(folders, files, telling=False),)


@register(
    "mnist",
    summary="handwritten digits, 60,000 + 10,000, 28 × 28 grey",
    source="LeCun, Cortes and Burges, from NIST; commonly CC BY-SA 3.0",
    layout=("in mnist/ or MNIST/raw/", *_FILES),
    needs=_needs("mnist", "MNIST/raw"),
)
def mnist(root: Path, *, splits: str | Sequence[str] = SPLITS) -> Images:
    return _read("mnist", find_folder(root, "mnist", "MNIST/raw"), DIGITS, splits)


@register(
    "fashion-mnist",
    summary="photographs of garments, 60,000 + 10,000, 28 × 28 grey",
    source="Xiao, Rasul and Vollgraf 2017, Zalando; MIT",
    layout=(
        "in fashion-mnist/ or FashionMNIST/raw/, or Debian's package dataset-fashion-mnist",
        *_FILES,
    ),
    needs=_needs("fashion-mnist", "FashionMNIST/raw"),
    packaged=_DEBIAN,
)
def fashion_mnist(root: Path, *, splits: str | Sequence[str] = SPLITS) -> Images:
    folder = find_folder(root, "fashion-mnist", "FashionMNIST/raw")
    return _read("fashion-mnist", folder, GARMENTS, splits)


@register(
    "kmnist",
    summary="cursive Japanese characters, 60,000 + 10,000, 28 × 28 grey",
    source="Clanuwat et al. 2018, CODH; CC BY-SA 4.0",
    layout=("in kmnist/ or KMNIST/raw/", *_FILES),
    needs=_needs("kmnist", "KMNIST/raw"),
)
def kmnist(root: Path, *, splits: str | Sequence[str] = SPLITS) -> Images:
    return _read("kmnist", find_folder(root, "kmnist", "KMNIST/raw"), KANA, splits)


def _read(name: str, folder: Path, classes: tuple[str, ...], splits: str | Sequence[str]) -> Images:
    parts = {}
    for split in chosen(splits, SPLITS):
        prefix = _PREFIXES[split]
        parts[split] = read_pair(
            folder,
            (f"{prefix}-images-idx3-ubyte", f"{prefix}-images.idx3-ubyte"),
            (f"{prefix}-labels-idx1-ubyte", f"{prefix}-labels.idx1-ubyte"),
            dataset=name,
            remedy="choose the splits that are there (splits=...)",
        )
    return joined(name, parts, classes)


def read_pair(
    folder: Path, images: Sequence[str], labels: Sequence[str], *, dataset: str, remedy: str = ""
) -> tuple[Pixels, Whole]:
    """Images (examples, height, width, 1) and labels of one split."""
    image_file = need_file(folder, *images, dataset=dataset, remedy=remedy)
    label_file = need_file(folder, *labels, dataset=dataset, remedy=remedy)
    pixels = read_idx(image_file, ndim=3)
    label = read_idx(label_file, ndim=1)
    if pixels.dtype != np.uint8:
        raise InputError(f"'{image_file}' holds {pixels.dtype} instead of bytes; {AGAIN}.")
    if len(pixels) != len(label):
        raise InputError(
            f"'{image_file}' has {len(pixels):,} images and '{label_file}' {len(label):,} labels; "
            "they are not of one split: download both again."
        )
    return pixels[..., None], label.astype(np.int64)


# EMNIST ByClass: 62 handwritten digits and letters, stored with rows and columns exchanged.

CHARACTERS = tuple(string.digits + string.ascii_uppercase + string.ascii_lowercase)
_EMNIST_FILES = tuple(
    f"emnist-byclass-{split}-{kind}"
    for split in SPLITS
    for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
)


@register(
    "emnist-byclass",
    summary="handwritten digits and letters, 697,932 + 116,323 in 62 unequal classes, 28 × 28 grey",
    source="Cohen et al. 2017, from NIST Special Database 19",
    layout=(
        "in emnist/, emnist/gzip/ or EMNIST/raw/",
        "emnist-byclass-train-images-idx3-ubyte, emnist-byclass-train-labels-idx1-ubyte",
        "emnist-byclass-test-images-idx3-ubyte, emnist-byclass-test-labels-idx1-ubyte",
    ),
    needs=(
        Needs(("emnist", "EMNIST/raw"), tuple(f"{file}|gzip/{file}" for file in _EMNIST_FILES)),
    ),
)
def emnist_byclass(root: Path, *, splits: str | Sequence[str] = SPLITS) -> Images:
    folder = find_folder(root, "emnist", "EMNIST/raw")
    if (folder / "gzip").is_dir():
        folder /= "gzip"
    parts = {}
    for split in chosen(splits, SPLITS):
        pixels, label = read_pair(
            folder,
            [f"emnist-byclass-{split}-images-idx3-ubyte"],
            [f"emnist-byclass-{split}-labels-idx1-ubyte"],
            dataset="emnist-byclass",
            remedy="choose the splits that are there (splits=...)",
        )
        parts[split] = np.ascontiguousarray(pixels.swapaxes(1, 2)), label  # upright again
    return joined("emnist-byclass", parts, CHARACTERS)


# QMNIST: MNIST's digits with the person who wrote each of them, and 50,000 more to test on.

_COLUMNS = 8  # class, series, writer, digit of the writer, NIST class, NIST index, two unused


@dataclass(frozen=True)
class Extended:
    """The first three columns of the extended labels."""

    label: Whole
    series: Texts  # of NIST's forms: 0 and 1 by employees, 4 by students
    writer: Texts


@register(
    "qmnist",
    summary="MNIST with writer and series of every digit, 60,000 + 60,000, 28 × 28 grey",
    source="Yadav and Bottou 2019, facebookresearch/qmnist; BSD-style",
    layout=(
        "in qmnist/ or QMNIST/raw/",
        "qmnist-train-images-idx3-ubyte, qmnist-train-labels-idx2-int",
        "qmnist-test-images-idx3-ubyte, qmnist-test-labels-idx2-int",
    ),
    groups=("writer", "series"),
    needs=(
        Needs(
            ("qmnist", "QMNIST/raw"),
            tuple(
                f"qmnist-{split}-{kind}"
                for split in SPLITS
                for kind in ("images-idx3-ubyte", "labels-idx2-int")
            ),
        ),
    ),
)
def qmnist(root: Path, *, pixels: Literal["qmnist", "mnist"] = "qmnist") -> Images:
    """Read QMNIST.

    With `pixels="mnist"` images come from MNIST's own files beside it: the training set, and the
    first 10,000 of the test set, which is all that MNIST has.
    """
    folder = find_folder(root, "qmnist", "QMNIST/raw")
    extended = {split: read_extended(folder, split) for split in SPLITS}
    if pixels == "mnist":
        images = mnist(root)
        n, test = int((images.split == "test").sum()), extended["test"]
        extended["test"] = Extended(test.label[:n], test.series[:n], test.writer[:n])
        for split, held in extended.items():
            label = images.labels[images.split == split]
            if len(label) != len(held.label) or (label != held.label).any():
                raise InputError(
                    f"The {split} labels of QMNIST are not those of MNIST beside it; one of the "
                    "two downloads is not the official one."
                )
    elif pixels == "qmnist":
        parts = {}
        for split, held in extended.items():
            path = need_file(
                folder,
                f"qmnist-{split}-images-idx3-ubyte",
                dataset="qmnist",
                remedy="take the images of MNIST (pixels='mnist')",
            )
            parts[split] = (read_idx(path, ndim=3)[..., None], held.label)
        images = joined("qmnist", parts, DIGITS)
    else:
        raise InputError(f"pixels is '{pixels}'; give 'qmnist' or 'mnist'.")
    return replace(
        images,
        name="qmnist",
        groups={
            "writer": np.concatenate([held.writer for held in extended.values()]),
            "series": np.concatenate([held.series for held in extended.values()]),
        },
    )


def read_extended(folder: Path, split: str) -> Extended:
    """Labels, series and writers of a split, in the order of its images."""
    path = need_file(folder, f"qmnist-{split}-labels-idx2-int", dataset="qmnist")
    table = read_idx(path, ndim=2)
    if table.shape[1] != _COLUMNS:
        raise InputError(f"'{path}' has {table.shape[1]} columns instead of {_COLUMNS}; {AGAIN}.")
    return Extended(table[:, 0].astype(np.int64), table[:, 1].astype(str), table[:, 2].astype(str))
