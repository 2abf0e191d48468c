"""SVHN, format 2, in MATLAB files made here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from fairweight.data import load
from fairweight.errors import InputError


def write(path: Path, labels: list[int]) -> None:
    pixels = np.zeros((32, 32, 3, len(labels)), dtype=np.uint8)
    pixels[1, 2, 0] = np.arange(len(labels))  # row 1, column 2, red
    savemat(path, {"X": pixels, "y": np.array(labels, dtype=np.uint8)[:, None]})


def test_ten_is_the_digit_zero(tmp_path: Path) -> None:
    (tmp_path / "svhn").mkdir()
    write(tmp_path / "svhn/train_32x32.mat", [1, 10, 9])
    write(tmp_path / "svhn/test_32x32.mat", [10])
    held = load("svhn", tmp_path)
    assert held.labels.tolist() == [1, 0, 9, 0]
    assert held.images.shape == (4, 32, 32, 3)
    assert held.images[:3, 1, 2, 0].tolist() == [0, 1, 2]
    assert held.split.tolist() == ["train", "train", "train", "test"]
    with pytest.raises(InputError, match=r"needs the file 'extra_32x32.mat'"):
        load("svhn", tmp_path, splits=["train", "extra"])


def test_damaged_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "train_32x32.mat"
    write(path, [1, 2])
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(InputError, match=r"train_32x32.mat' cannot be read as a MATLAB file"):
        load("svhn", tmp_path, splits="train")
    savemat(path, {"X": np.zeros((32, 32, 3, 2)), "y": np.ones((2, 1))})
    with pytest.raises(InputError, match="instead of bytes"):
        load("svhn", tmp_path, splits="train")
    savemat(path, {"digitStruct": np.ones(3)})
    with pytest.raises(InputError, match="no arrays X and y; take the files of format 2"):
        load("svhn", tmp_path, splits="train")
