"""CIFAR in the official binary and Python batches; pickles are read without running them."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairweight.data import load
from fairweight.data.cifar import read_plain_pickle
from fairweight.errors import InputError


def planes(n: int, start: int = 0) -> NDArray[np.uint8]:
    """Flat images: image i has red start + i, green 100, blue 200."""
    image = np.zeros((n, 3, 32, 32), dtype=np.uint8)
    image[:, 0] = (start + np.arange(n, dtype=np.uint8))[:, None, None]
    image[:, 1], image[:, 2] = 100, 200
    return image.reshape(n, -1)


def record(labels: list[list[int]], pixels: NDArray[np.uint8]) -> bytes:
    return np.concatenate([np.array(labels, dtype=np.uint8), pixels], axis=1).tobytes()


def batch(pixels: NDArray[np.uint8], **labels: list[int]) -> bytes:
    """As the authors wrote it: protocol 2, keys and names as bytes."""
    held: dict[bytes, Any] = {b"data": pixels, b"filenames": [b"x.png"] * len(pixels)}
    return pickle.dumps(held | {k.encode(): v for k, v in labels.items()}, protocol=2)


def test_cifar10_binary(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for i in range(1, 6):
        (folder / f"data_batch_{i}.bin").write_bytes(record([[i]], planes(1, i)))
    (folder / "test_batch.bin").write_bytes(record([[0], [9]], planes(2, 50)))
    held = load("cifar10", tmp_path)
    assert held.images.shape == (7, 32, 32, 3)
    assert held.images[:, 7, 31].tolist() == [[r, 100, 200] for r in (1, 2, 3, 4, 5, 50, 51)]
    assert [held.classes[i] for i in held.labels[[0, 5, 6]]] == ["automobile", "airplane", "truck"]
    assert held.example_id[[0, 4, 5]].tolist() == ["train-0", "train-4", "test-0"]
    (folder / "data_batch_3.bin").write_bytes(b"\1" * 3000)
    with pytest.raises(InputError, match=r"data_batch_3.bin' has 3,000 bytes.*3,073.*again"):
        load("cifar10", tmp_path)
    (folder / "data_batch_3.bin").unlink()
    with pytest.raises(InputError, match=r"needs the file 'data_batch_3.bin'"):
        load("cifar10", tmp_path)


def test_rows_and_columns_are_not_exchanged(tmp_path: Path) -> None:
    pixels = np.zeros((1, 3, 32, 32), dtype=np.uint8)
    pixels[0, 1, 2, 30] = 77  # green, row 2, column 30
    folder = tmp_path / "cifar10"
    folder.mkdir()
    for name in ["test_batch"] + [f"data_batch_{i}" for i in range(1, 6)]:
        (folder / f"{name}.bin").write_bytes(record([[0]], pixels.reshape(1, -1)))
    assert np.argwhere(load("cifar10", tmp_path).images[0]).tolist() == [[2, 30, 1]]


def test_cifar10_python(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for i in range(1, 6):
        (folder / f"data_batch_{i}").write_bytes(batch(planes(1, i), labels=[i]))
    (folder / "test_batch").write_bytes(batch(planes(2, 50), labels=[0, 9]))
    held = load("cifar10", tmp_path)
    assert held.labels.tolist() == [1, 2, 3, 4, 5, 0, 9]
    assert held.images[:, 7, 31].tolist() == [[r, 100, 200] for r in (1, 2, 3, 4, 5, 50, 51)]
    (folder / "test_batch").write_bytes(batch(planes(2), labels=[0]))
    with pytest.raises(InputError, match="test_batch' does not hold one image per label"):
        load("cifar10", tmp_path)
    (folder / "test_batch").write_bytes(batch(planes(2), labels=[0, 1 << 70]))
    with pytest.raises(InputError, match="test_batch' has labels that are no small numbers"):
        load("cifar10", tmp_path)
    (folder / "test_batch").write_bytes(batch(planes(2), fine_labels=[0, 1]))
    with pytest.raises(InputError, match="test_batch' has no entry 'labels'"):
        load("cifar10", tmp_path)


@pytest.mark.parametrize("kind", ["binary", "python"])
def test_cifar100_has_superclasses(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / f"cifar-100-{kind}"
    folder.mkdir()
    if kind == "binary":
        (folder / "train.bin").write_bytes(record([[1, 2], [0, 0]], planes(2)))
        (folder / "test.bin").write_bytes(record([[1, 1]], planes(1, 9)))
        (folder / "fine_label_names.txt").write_text("apple\nbear\nbeaver\n")
        (folder / "coarse_label_names.txt").write_text("fruit\nmammals\n")
    else:
        train = batch(planes(2), fine_labels=[2, 0], coarse_labels=[1, 0])
        (folder / "train").write_bytes(train)
        (folder / "test").write_bytes(batch(planes(1, 9), fine_labels=[1], coarse_labels=[1]))
        names = {b"fine_label_names": [b"apple", b"bear", b"beaver"]}
        names[b"coarse_label_names"] = [b"fruit", b"mammals"]
        (folder / "meta").write_bytes(pickle.dumps(names, protocol=2))
    held = load("cifar100", tmp_path)
    assert [held.classes[i] for i in held.labels] == ["beaver", "apple", "bear"]
    assert held.groups["superclass"].tolist() == ["mammals", "fruit", "mammals"]
    assert held.images[:, 0, 0].tolist() == [[0, 100, 200], [1, 100, 200], [9, 100, 200]]


def test_nothing_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'cifar10' needs the file 'data_batch_1.bin'"):
        load("cifar10", tmp_path)
    with pytest.raises(InputError, match=r"'cifar100' needs the file 'train.bin'"):
        load("cifar100", tmp_path)


class Runs:
    """A pickle of this runs a command when it is read."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.witness),)


def test_a_pickle_cannot_run_anything(tmp_path: Path) -> None:
    witness, path = tmp_path / "was-run", tmp_path / "batch"
    path.write_bytes(pickle.dumps({"data": Runs(witness)}, protocol=2))
    pickle.loads(path.read_bytes())
    assert witness.is_dir()  # the ordinary reader runs it
    witness.rmdir()
    with pytest.raises(InputError, match=r"batch' cannot be read .*mkdir', which is refused"):
        read_plain_pickle(path)
    assert not witness.exists()


def test_a_batch_of_python_2(tmp_path: Path) -> None:
    """Opcodes as cPickle wrote them: strings are bytes (U), numpy still has `numpy.core`."""
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntU\x01btR"
        b"(I1\n(I1\nI2\ntcnumpy\ndtype\n(U\x02u1I0\nI1\ntR(I3\nU\x01|NNNI-1\nI-1\nI0\ntb"
        b"I00\nU\x02\x05\xfftb"
    )
    path = tmp_path / "batch"
    path.write_bytes(b"\x80\x02}(U\x04data" + array + b"U\x06labels]I4\nau.")
    held = read_plain_pickle(path)
    assert held["data"].tolist() == [[5, 255]]
    assert held["labels"] == [4]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (batch(planes(1), labels=[1])[:-100], "plain arrays"),
        (b"", "plain arrays"),
        (pickle.dumps([1, 2]), "holds no dictionary"),
        (pickle.dumps({"data": np.zeros(2)}, protocol=2), "does not hold bytes"),
        (pickle.dumps({"data": {1, 2}}, protocol=4), "holds a set"),
    ],
)
def test_other_pickles_are_refused(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "batch"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"batch' cannot be read .*{told}"):
        read_plain_pickle(path)
