"""QMNIST: MNIST's digits with the person who wrote each of them, and 50,000 more to test on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from fairweight.data.dataset import Images, Pixels, Texts, Whole
from fairweight.data.idx import read_idx
from fairweight.data.in_splits import DIGITS, SPLITS, joined
from fairweight.data.mnist import mnist
from fairweight.data.needs import Needs
from fairweight.data.official_files import AGAIN, find_folder, need_file
from fairweight.data.registry import register
from fairweight.errors import InputError

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
        extended["test"] = _first(extended["test"], int((images.split == "test").sum()))
        _check_same(images, extended)
    elif pixels == "qmnist":
        parts = {split: (_pixels(folder, split), held.label) for split, held in extended.items()}
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


def _pixels(folder: Path, split: str) -> Pixels:
    path = need_file(
        folder,
        f"qmnist-{split}-images-idx3-ubyte",
        dataset="qmnist",
        remedy="take the images of MNIST (pixels='mnist')",
    )
    pixels: Pixels = read_idx(path, ndim=3)[..., None]
    return pixels


def _first(extended: Extended, n: int) -> Extended:
    return Extended(extended.label[:n], extended.series[:n], extended.writer[:n])


def _check_same(images: Images, extended: dict[str, Extended]) -> None:
    for split, held in extended.items():
        label = images.labels[images.split == split]
        if len(label) != len(held.label) or (label != held.label).any():
            raise InputError(
                f"The {split} labels of QMNIST are not those of MNIST beside it; one of the two "
                "downloads is not the official one."
            )
