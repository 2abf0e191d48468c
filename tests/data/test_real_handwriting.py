"""Golden facts of MNIST, KMNIST and QMNIST, where the real files are present."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairweight.data import Images, load
from fairweight.data.dataset import group_split, split_by_seed
from fairweight.data.mnist import Extended, read_extended


def need(folder: Path) -> Path:
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}: these files are not here")
    return folder


@pytest.fixture(scope="module")
def extended(shared_data: Path) -> dict[str, Extended]:
    folder = need(shared_data / "qmnist")
    return {split: read_extended(folder, split) for split in ("train", "test")}


@pytest.fixture(scope="module")
def qmnist(shared_data: Path) -> Images:
    need(shared_data / "qmnist")
    need(shared_data / "mnist")
    return load("qmnist", shared_data, pixels="mnist")


def test_g17_writers_and_series_of_the_test_set(extended: dict[str, Extended]) -> None:
    writers, digits = np.unique(extended["test"].writer, return_counts=True)
    assert (len(writers), digits.min(), digits.max()) == (535, 34, 134)
    series, sizes = np.unique(extended["test"].series, return_counts=True)
    assert dict(zip(series.tolist(), sizes.tolist(), strict=True)) == {
        "0": 18449, "1": 11956, "4": 29595,
    }  # fmt: skip
    assert not set(writers) & set(extended["train"].writer)


def test_g18_writer_469_has_107_digits(extended: dict[str, Extended]) -> None:
    n = int((extended["test"].writer == "469").sum())
    assert n == 107
    assert round(100 * 51 / n, 1) == 47.7


def test_g19_class_counts_of_the_training_set(extended: dict[str, Extended]) -> None:
    counts = np.bincount(extended["train"].label)
    assert counts.tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    imbalance = counts / counts.sum() - 1 / 10
    assert (imbalance.argmax(), imbalance.argmin()) == (1, 5)
    assert imbalance[[1, 5]].round(4).tolist() == [0.0124, -0.0097]


def test_qmnist_rows_are_those_of_mnist(qmnist: Images) -> None:
    assert qmnist.images.shape == (70_000, 28, 28, 1)
    assert len(set(qmnist.groups["writer"][qmnist.split == "train"])) == 539
    assert len(set(qmnist.groups["writer"][qmnist.split == "test"])) == 297
    # The mean pixel of MNIST's training images, as everybody normalises them: .1307.
    assert round(float(qmnist.images[:60_000].mean()) / 255, 4) == 0.1307


def test_no_writer_is_on_both_sides(qmnist: Images) -> None:
    train = qmnist.of_split("train")
    parts = group_split(train, "writer", {"train": 0.8, "val": 0.2}, random_state=0)
    writers = {name: set(parts.of_split(name).groups["writer"]) for name in ("train", "val")}
    assert not writers["train"] & writers["val"]
    assert len(parts.rows_of("train")) / 60_000 == pytest.approx(0.8, abs=0.002)  # half a writer


def test_the_split_of_prune_responsibly(qmnist: Images) -> None:
    parts = split_by_seed(qmnist, {"train": 0.8, "val": 0.2}, random_state=3, within="train")
    names, sizes = np.unique(parts.split, return_counts=True)
    assert dict(zip(names.tolist(), sizes.tolist(), strict=True)) == {
        "test": 10_000, "train": 48_000, "val": 12_000,
    }  # fmt: skip


def test_kmnist_test_images(shared_data: Path) -> None:
    need(shared_data / "kmnist")
    held = load("kmnist", shared_data, splits="test")
    assert np.bincount(held.labels).tolist() == [1000] * 10
