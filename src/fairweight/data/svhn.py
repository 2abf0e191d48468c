"""SVHN, format 2: house numbers cut to single digits, in MATLAB files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairweight.data.dataset import DIGITS, Images, joined
from fairweight.data.registry import AGAIN, Needs, chosen, find_folder, need_file, register
from fairweight.errors import InputError

_SPLITS = ("train", "test", "extra")


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
    for split in chosen(splits, _SPLITS):
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
