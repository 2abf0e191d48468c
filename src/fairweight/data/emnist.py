"""EMNIST ByClass: 62 handwritten digits and letters, stored with rows and columns exchanged."""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairweight.data.dataset import Images
from fairweight.data.in_splits import SPLITS, joined
from fairweight.data.mnist import read_pair
from fairweight.data.needs import Needs
from fairweight.data.official_files import chosen, find_folder
from fairweight.data.registry import register

CHARACTERS = tuple(string.digits + string.ascii_uppercase + string.ascii_lowercase)
_FILES = tuple(
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
    needs=(Needs(("emnist", "EMNIST/raw"), tuple(f"{file}|gzip/{file}" for file in _FILES)),),
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
