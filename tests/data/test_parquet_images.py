"""Images in Parquet files: our own, and a part of the real ones where they are present."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairweight.data import load
from fairweight.errors import InputError

Encode = Callable[..., bytes]


@pytest.fixture
def folder(tmp_path: Path, encode: Encode) -> Path:
    """Two training rows and one test row; ages 9 and 10 as numbers, one sex is missing."""
    place = tmp_path / "mine"
    place.mkdir()
    for file, rows in (("train-part.parquet", (0, 1)), ("test.parquet", (2,))):
        table: dict[str, Any] = {
            "example_id": [f"e{i}" for i in rows],
            "image": [encode((i, 10, 20)) for i in rows],
            "label": [("10", "9", "10")[i] for i in rows],
            "sex": [("f", None, "m")[i] for i in rows],
        }
        pq.write_table(pa.table(table), place / file)
    return place


def test_labels_groups_and_splits(folder: Path) -> None:
    held = load("parquet", folder, groups="sex")
    assert held.classes == ("9", "10")  # numbers by size, not by alphabet
    assert held.labels.tolist() == [1, 0, 1]
    assert held.groups["sex"].tolist() == ["f", "", "m"]
    assert held.split.tolist() == ["train", "train", "test"]
    assert held.example_id.tolist() == ["e0", "e1", "e2"]
    assert held.images[:, 0, 0].tolist() == [[0, 10, 20], [1, 10, 20], [2, 10, 20]]
    one = load("parquet", folder / "test.parquet", size=2)
    assert one.images.shape == (1, 2, 2, 3)
    assert one.split.tolist() == ["test"]


def test_blocks_run_over_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairweight.data.photographs._BLOCK_BYTES", 2 * 4 * 4 * 3)  # two images
    seen = list[tuple[int, int]]()
    held = load("parquet", folder, progress=lambda *both: seen.append(both))
    assert held.images[:, 0, 0, 0].tolist() == [0, 1, 2]
    assert seen == [(2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"label": "lable"}, "Column of '.*train-part.parquet' 'lable' .*'label'"),
        ({"groups": ["age"]}, "'age' does not exist"),
        ({"label": "sex"}, "'sex' has 1 empty labels"),
        ({"image": "label"}, r"row 0' has no bytes of an image in the column 'label'"),
    ],
)
def test_wrong_columns_are_named(folder: Path, options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        load("parquet", folder, **options)


def test_damaged_files_are_named(folder: Path, tmp_path: Path) -> None:
    path = folder / "test.parquet"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(InputError, match=r"test.parquet' cannot be read as Parquet"):
        load("parquet", folder)
    with pytest.raises(InputError, match="has no Parquet file"):
        load("parquet", tmp_path)


def test_a_damaged_image_is_named_by_its_row(folder: Path, encode: Encode) -> None:
    table = {"example_id": ["a", "b"], "image": [encode((1, 1, 1)), b"nothing"], "label": [0, 1]}
    pq.write_table(pa.table(table), folder / "test.parquet")
    with pytest.raises(InputError, match=r"test.parquet, row 1' cannot be read as an image"):
        load("parquet", folder)


def test_an_empty_file(tmp_path: Path) -> None:
    empty = pa.table({"example_id": pa.array([], pa.string()), "label": pa.array([], pa.int64())})
    pq.write_table(empty, tmp_path / "train.parquet")
    with pytest.raises(InputError, match=r"train.parquet' has no rows"):
        load("parquet", tmp_path)


def head_of(source: Path, target: Path, n: int) -> None:
    """The first rows of a real file: decoding all of them would take too long here."""
    if not source.is_file():
        pytest.skip(f"no file {source}: this data set is not here")
    pytest.importorskip("PIL.Image")
    target.parent.mkdir(parents=True, exist_ok=True)
    duckdb.execute(f"COPY (FROM read_parquet(?) LIMIT {n}) TO '{target}'", [str(source)])


def test_real_cifar10(shared_data: Path, tmp_path: Path) -> None:
    for file in ("train-10k.parquet", "test.parquet"):
        head_of(shared_data / "cifar10" / file, tmp_path / "cifar10" / file, 100)
    held = load("cifar10", tmp_path)
    assert held.images.shape == (200, 32, 32, 3)
    assert [held.classes[i] for i in held.labels[[0, 1, 100, 101]]] == [
        "frog", "truck", "cat", "ship",
    ]  # fmt: skip
    # The first record of the official data_batch_1.bin: label 6, then 59 43 50 … of red.
    assert held.images[0, 0, :3, 0].tolist() == [59, 43, 50]


def test_real_celeba(shared_data: Path, tmp_path: Path) -> None:
    name = "first-10k-89x109.parquet"
    head_of(shared_data / "celeba" / name, tmp_path / "celeba" / name, 50)
    held = load("celeba", tmp_path)
    assert held.images.shape == (50, 109, 89, 3)
    assert held.labels.shape == (50, 40)
    assert [held.classes.index(name) for name in ("Male", "Young")] == [20, 39]
    assert set(held.split.tolist()) == {"train"}
    blond = load("celeba", tmp_path, label="Blond_Hair", size=16)
    assert blond.labels.tolist() == held.labels[:, held.classes.index("Blond_Hair")].tolist()
    male = np.array(["no", "yes"])[held.labels[:, 20]]
    assert blond.groups["Male"].tolist() == male.tolist()


def test_real_fairface(shared_data: Path, tmp_path: Path) -> None:
    for file in ("train-64px.parquet", "val-64px.parquet"):
        head_of(shared_data / "fairface" / file, tmp_path / "fairface" / file, 50)
    held = load("fairface", tmp_path)
    assert held.images.shape == (100, 64, 64, 3)
    assert [held.classes[i] for i in held.labels[:2]] == ["Male", "Female"]
    assert held.groups["race"][:2].tolist() == ["East Asian", "Indian"]
    assert len(load("fairface", tmp_path, splits="val", label="race")) == 50


def test_celeba_splits_go_by_the_number_of_the_file(tmp_path: Path, encode: Encode) -> None:
    names = ["162770.jpg", "162771.jpg", "182637.jpg", "182638.jpg"]
    table: dict[str, Any] = {"example_id": names, "image": [encode((i, 0, 0)) for i in range(4)]}
    table |= {name: [True, False, True, False] for name in ("Male", "Young")}
    (tmp_path / "celeba").mkdir()
    pq.write_table(pa.table(table), tmp_path / "celeba/some.parquet")
    held = load("celeba", tmp_path, groups=["Male"])
    assert held.split.tolist() == ["train", "val", "val", "test"]
    assert held.labels.tolist() == [[1, 1], [0, 0], [1, 1], [0, 0]]
