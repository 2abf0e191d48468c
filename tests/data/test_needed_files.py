"""A folder is searched by names alone, and says of each data set whether it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairweight.data import dataset, datasets
from fairweight.data.registry import Needs, found

IDX = ("images-idx3-ubyte", "labels-idx1-ubyte")
MNIST = [f"{part}-{kind}" for part in ("train", "t10k") for kind in IDX]
CIFAR10 = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
# The official downloads, in each of the places and forms that the readers know.
OFFICIAL = [
    ("mnist", [f"mnist/{file}.gz" for file in MNIST]),
    ("mnist", [f"MNIST/raw/{file.replace('-idx', '.idx')}" for file in MNIST]),
    ("fashion-mnist", [f"FashionMNIST/raw/{file}" for file in MNIST]),
    ("kmnist", [f"kmnist/{file}" for file in MNIST]),
    (
        "emnist-byclass",
        [f"emnist/gzip/emnist-byclass-{s}-{kind}.gz" for s in ("train", "test") for kind in IDX],
    ),
    (
        "qmnist",
        [
            f"qmnist/qmnist-{split}-{kind}"
            for split in ("train", "test")
            for kind in ("images-idx3-ubyte", "labels-idx2-int.gz")
        ],
    ),
    ("cifar10", [f"cifar-10-batches-bin/{file}.bin" for file in CIFAR10]),
    ("cifar10", [f"cifar10/cifar-10-batches-py/{file}" for file in CIFAR10]),
    ("cifar10", ["cifar10/train-10k.parquet"]),
    ("cifar10", CIFAR10),
    (
        "cifar100",
        [
            f"cifar-100-binary/{file}"
            for file in ("train.bin", "test.bin", "fine_label_names.txt", "coarse_label_names.txt")
        ],
    ),
    ("cifar100", [f"cifar-100-python/{file}" for file in ("train", "test", "meta")]),
    ("svhn", ["SVHN/train_32x32.mat", "SVHN/test_32x32.mat"]),
    (
        "celeba",
        [
            "celeba/Img/img_align_celeba/",
            "celeba/Anno/list_attr_celeba.txt",
            "celeba/Eval/list_eval_partition.txt",
        ],
    ),
    ("celeba", ["celeba/first-10k.parquet"]),
    (
        "fairface",
        [
            f"fairface/{file}"
            for split in ("train", "val")
            for file in (
                f"fairface_label_{split}.csv",
                f"fairface-img-margin025-trainval/{split}/",
            )
        ],
    ),
    ("fairface", ["FairFace/train-64px.parquet", "FairFace/val-64px.parquet"]),
    ("utkface", ["UTKFace/26_0_3_20170117.jpg.chip.jpg"]),
    ("imagenette", [f"imagenette2-160/{s}/" for s in ("train", "val")]),
    ("imagewoof", [f"imagewoof/imagewoof2/{s}/" for s in ("train", "val")]),
    (
        "awa2",
        [
            f"Animals_with_Attributes2/{file}"
            for file in (
                "JPEGImages/",
                "classes.txt",
                "predicates.txt",
                "predicate-matrix-binary.txt",
            )
        ],
    ),
    ("iwildcam", ["iwildcam_v2.0/metadata.csv", "iwildcam_v2.0/train/"]),
    ("parquet", ["train.parquet"]),
]


def write(root: Path, files: list[str]) -> None:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        if file.endswith("/"):
            (root / file).mkdir()
        else:
            (root / file).touch()


@pytest.mark.parametrize(("name", "files"), OFFICIAL)
def test_official_downloads_are_found_and_taken_for_nothing_else(
    name: str, files: list[str], tmp_path: Path
) -> None:
    root = tmp_path / "data"
    write(root, files)
    assert dataset(name).found_in(root) == ("yes", ())
    for other in datasets():
        if other.layout and other.name != name:
            assert other.found_in(root)[0] in ("no", "unknown"), other.name
    if len(files) > 1:  # one file alone is either there or not
        (root / files[0]).rename(tmp_path / "elsewhere")
        answer, missing = dataset(name).found_in(root)
        assert answer in ("in part", "no")
        assert missing


def test_every_data_set_is_among_them() -> None:
    silent = {"digits", "folders"}  # no files; any folder of images
    assert {name for name, _ in OFFICIAL} == {entry.name for entry in datasets()} - silent
    assert dataset("digits").found_in(Path("nowhere")) == ("yes", ())
    assert dataset("folders").found_in(Path("nowhere")) == ("unknown", ())


def test_files_that_several_data_sets_share_tell_none_of_them(tmp_path: Path) -> None:
    write(tmp_path, MNIST)
    for name in ("mnist", "fashion-mnist", "kmnist"):
        assert dataset(name).found_in(tmp_path)[0] == "unknown"


def test_the_best_of_several_forms_counts(tmp_path: Path) -> None:
    write(tmp_path, ["set/a.txt", "set/c.txt"])
    whole, half, none = (
        Needs(("set",), files) for files in (("a.txt", "c.txt"), ("a.txt", "b.txt"), ("d.txt",))
    )
    assert found([none, half, whole], tmp_path) == ("yes", ())
    assert found([none, half], tmp_path) == ("in part", ("b.txt",))
    assert found([none], tmp_path) == ("no", ("d.txt",))
    assert found([], tmp_path) == ("unknown", ())


def test_a_folder_is_no_file_and_a_file_no_folder(tmp_path: Path) -> None:
    write(tmp_path, ["a/file", "b"])
    assert found([Needs((), ("a/", "b"))], tmp_path) == ("yes", ())
    assert found([Needs((), ("b/", "a"))], tmp_path) == ("no", ("b/", "a"))
