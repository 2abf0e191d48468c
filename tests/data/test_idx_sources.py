"""idx files as officially laid out: MNIST and its relatives, EMNIST, QMNIST."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fairweight.data import load
from fairweight.data.mnist import read_idx
from fairweight.errors import InputError


def idx(values: NDArray[np.integer]) -> bytes:
    """Two zero bytes, the type (8: bytes, 12: int32), axes, lengths, values; all big-endian."""
    kind, stored = (0x08, ">u1") if values.dtype == np.uint8 else (0x0C, ">i4")
    lengths = np.array(values.shape, dtype=">u4").tobytes()
    return bytes([0, 0, kind, values.ndim]) + lengths + values.astype(stored).tobytes()


def packed(content: bytes) -> bytes:
    # Without the time: processes that run tests together must agree on what they are.
    return gzip.compress(content, mtime=0)


def images(n: int) -> NDArray[np.uint8]:
    """Images of 2 × 3 with the values 0, 1, 2 …"""
    return np.arange(6 * n, dtype=np.uint8).reshape(n, 2, 3)


def labels(*values: int) -> NDArray[np.uint8]:
    return np.array(values, dtype=np.uint8)


def mnist_in(folder: Path) -> Path:
    """Three training images (in plain files) and two test images (compressed)."""
    folder.mkdir(parents=True)
    (folder / "train-images-idx3-ubyte").write_bytes(idx(images(3)))
    (folder / "train-labels-idx1-ubyte").write_bytes(idx(labels(7, 0, 9)))
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(packed(idx(images(2))))
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(packed(idx(labels(1, 2))))
    return folder


def test_idx_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "x"
    # type 0x0C (int32), 2 axes, lengths 1 and 2, values 1 and -2
    path.write_bytes(bytes.fromhex("00000c02 00000001 00000002 00000001 fffffffe"))
    assert read_idx(path, ndim=2).tolist() == [[1, -2]]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "not an idx file"),
        (b"<html>not found</html>", "not an idx file"),
        (idx(labels(1, 2)), "1 axes instead of 3"),
        (idx(images(2))[:-1], "27 bytes instead of the 28"),  # 16 of the header and 2 * 6
        (idx(images(2)) + b"x", "29 bytes instead of the 28"),
        (packed(idx(images(2)))[:-9], "truncated or damaged"),
        (packed(idx(images(2)))[:12] + b"zzzzzzzzzzzzzzzz", "truncated or damaged"),
    ],
    ids=["empty", "page", "labels", "short", "long", "cut-gzip", "damaged-gzip"],
)
def test_damaged_files_are_named(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "images"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"images' .*{told}.*download it again"):
        read_idx(path, ndim=3)


@pytest.mark.parametrize(
    ("name", "folder", "seventh"),
    [
        ("mnist", "mnist", "7"),
        ("mnist", "MNIST/raw", "7"),
        ("fashion-mnist", "fashion-mnist", "Sneaker"),
        ("kmnist", "kmnist", "ya"),
    ],
)
def test_mnist_and_relatives(tmp_path: Path, name: str, folder: str, seventh: str) -> None:
    mnist_in(tmp_path / folder)
    held = load(name, tmp_path)
    assert held.images.shape == (5, 2, 3, 1)
    assert held.images[1, :, :, 0].tolist() == [[6, 7, 8], [9, 10, 11]]
    assert held.labels.tolist() == [7, 0, 9, 1, 2]
    assert held.split.tolist() == ["train"] * 3 + ["test"] * 2
    assert held.example_id.tolist() == ["train-0", "train-1", "train-2", "test-0", "test-1"]
    assert held.classes[7] == seventh
    assert load(name, tmp_path / folder).labels.tolist() == held.labels.tolist()


def test_splits_that_are_missing_must_be_left_out_by_name(tmp_path: Path) -> None:
    folder = mnist_in(tmp_path / "mnist")
    (folder / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(InputError, match=r"'train-labels-idx1-ubyte'.*choose the splits"):
        load("mnist", tmp_path)
    assert load("mnist", tmp_path, splits="test").labels.tolist() == [1, 2]
    with pytest.raises(InputError, match="Split 'val' does not exist"):
        load("mnist", tmp_path, splits=["val"])
    with pytest.raises(InputError, match="at most once"):
        load("mnist", tmp_path, splits=[])


def test_images_and_labels_must_belong_together(tmp_path: Path) -> None:
    folder = mnist_in(tmp_path / "mnist")
    (folder / "train-labels-idx1-ubyte").write_bytes(idx(labels(7, 0)))
    with pytest.raises(InputError, match=r"3 images and .* 2 labels"):
        load("mnist", tmp_path)


def test_emnist_is_turned_upright(tmp_path: Path) -> None:
    folder = tmp_path / "emnist" / "gzip"
    folder.mkdir(parents=True)
    for split in ("train", "test"):
        name = f"emnist-byclass-{split}"
        (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(packed(idx(images(3))))
        (folder / f"{name}-labels-idx1-ubyte.gz").write_bytes(packed(idx(labels(9, 10, 61))))
    held = load("emnist-byclass", tmp_path)
    assert held.images.shape == (6, 3, 2, 1)
    assert held.images[0, :, :, 0].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert [held.classes[i] for i in held.labels[:3]] == ["9", "A", "z"]
    assert len(held.classes) == 62


def extended(*rows: tuple[int, int, int]) -> bytes:
    """Class, series and writer, followed by five columns that are not used."""
    return idx(np.array([[*row, 0, 30, 0, 0, 0] for row in rows], dtype=np.int32))


def qmnist_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    train = extended((7, 0, 12), (0, 4, 2154), (9, 0, 12))
    test = extended((1, 1, 300), (2, 4, 2200), (3, 4, 2200))
    (folder / "qmnist-train-labels-idx2-int").write_bytes(train)
    (folder / "qmnist-test-labels-idx2-int.gz").write_bytes(packed(test))
    return folder


def test_qmnist_knows_writers(tmp_path: Path) -> None:
    folder = qmnist_in(tmp_path / "qmnist")
    for split in ("train", "test"):
        (folder / f"qmnist-{split}-images-idx3-ubyte").write_bytes(idx(images(3)))
    held = load("qmnist", tmp_path)
    assert held.labels.tolist() == [7, 0, 9, 1, 2, 3]
    assert held.groups["writer"].tolist() == ["12", "2154", "12", "300", "2200", "2200"]
    assert held.groups["series"].tolist() == ["0", "4", "0", "1", "4", "4"]
    assert held.example_id.tolist() == [f"{s}-{i}" for s in ("train", "test") for i in range(3)]


def test_qmnist_with_the_images_of_mnist_has_its_first_test_rows(tmp_path: Path) -> None:
    qmnist_in(tmp_path / "qmnist")
    mnist_in(tmp_path / "mnist")
    with pytest.raises(InputError, match=r"qmnist-train-images.*pixels='mnist'"):
        load("qmnist", tmp_path)
    held = load("qmnist", tmp_path, pixels="mnist")
    assert held.name == "qmnist"
    assert held.groups["writer"].tolist() == ["12", "2154", "12", "300", "2200"]
    with pytest.raises(InputError, match="pixels is 'emnist'"):
        load("qmnist", tmp_path, pixels="emnist")
    wrong = extended((7, 0, 1), (0, 0, 1), (8, 0, 1))
    (tmp_path / "qmnist/qmnist-train-labels-idx2-int").write_bytes(wrong)
    with pytest.raises(InputError, match="train labels of QMNIST are not those of MNIST"):
        load("qmnist", tmp_path, pixels="mnist")
