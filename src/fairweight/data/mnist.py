"""MNIST, Fashion-MNIST and KMNIST: 28 × 28 grey images in four idx files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairweight.data.dataset import Images, Pixels, Whole
from fairweight.data.idx import read_idx
from fairweight.data.in_splits import DIGITS, SPLITS, joined
from fairweight.data.needs import Needs
from fairweight.data.official_files import AGAIN, chosen, find_folder, need_file
from fairweight.data.registry import register
from fairweight.errors import InputError

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
