"""Tiny files in the official layout of every data set that a `paper` preset names.

A training part has at most 32 examples, the smallest batch of all presets: an epoch is one step.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.io import savemat

from fairweight.data.imbalance import SIMON_SAYS

from ...data.test_cifar_batches import record
from ...data.test_idx_sources import extended, idx

SMALL_TRAIN, SMALL_TEST = 40, 20  # 32 and 8 where a fifth is kept for validation
# Of 40 attributes those that the presets name: every one is audited by itself, for seconds.
CELEBA = (
    "Bags_Under_Eyes", "Big_Nose", "Blond_Hair", "Chubby", "Male", "Mustache", "Oval_Face",
    "Pale_Skin", "Receding_Hairline", "Smiling", "Young",
)  # fmt: skip
AWA2 = ("furry", "bipedal", "water", "domestic", "gray")  # of 85
FACES = {"0": 4, "1": 2, "2": 6}  # of CelebA: images for training, validation and test
RACES = ("East Asian", "Indian", "White")


def write_all(root: Path) -> Path:
    """Every data set below one folder."""
    for name in ("mnist", "fashion-mnist", "kmnist"):
        _idx_pairs(root / name, {"train": SMALL_TRAIN, "t10k": SMALL_TEST}, 10)
    letters = {f"emnist-byclass-{split}": SMALL_TRAIN for split in ("train", "test")}
    _idx_pairs(root / "emnist", letters, 62)
    _qmnist(root / "qmnist")
    _cifar10(root / "cifar-10-batches-bin")
    _cifar100(root / "cifar-100-binary")
    _svhn(root / "svhn")
    _celeba(root / "celeba")
    _fairface(root / "fairface")
    _imagenette(root / "imagenette2-160", ("n01440764", "n03888257"))
    _imagenette(root / "imagewoof2-160", ("n02086240", "n02115641"))
    _awa2(root / "Animals_with_Attributes2")
    _iwildcam(root / "iwildcam_v2.0")
    return root


def _pixels(labels: Sequence[int], *shape: int) -> NDArray[np.uint8]:
    """Noise on a ground whose brightness follows the label."""
    values = np.random.default_rng(0).integers(0, 100, (len(labels), *shape))
    ground = 150 * (np.array(labels) % 10) // 9
    return (values + ground.reshape(-1, *(1 for _ in shape))).astype(np.uint8)


def _labels(n: int, classes: int) -> list[int]:
    return [i % classes for i in range(n)]


def _idx_pairs(folder: Path, splits: dict[str, int], classes: int) -> None:
    folder.mkdir()
    for name, n in splits.items():
        labels = _labels(n, classes)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(idx(_pixels(labels, 28, 28)))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(idx(np.array(labels, dtype=np.uint8)))


def _qmnist(folder: Path) -> None:
    folder.mkdir()
    for split, n in (("train", SMALL_TRAIN), ("test", SMALL_TEST)):
        labels = _labels(n, 10)
        rows = [(label, 4, 2000 + i // 5) for i, label in enumerate(labels)]
        (folder / f"qmnist-{split}-images-idx3-ubyte").write_bytes(idx(_pixels(labels, 28, 28)))
        (folder / f"qmnist-{split}-labels-idx2-int").write_bytes(extended(*rows))


def _cifar10(folder: Path) -> None:
    folder.mkdir()
    parts = {f"data_batch_{i}": SMALL_TRAIN // 5 for i in range(1, 6)} | {"test_batch": SMALL_TEST}
    for name, n in parts.items():
        labels = _labels(n, 10)
        (folder / f"{name}.bin").write_bytes(
            record([[label] for label in labels], _pixels(labels, 3072))
        )


def _cifar100(folder: Path) -> None:
    """The classes that Simon Says thins out, and five others; no more, or no answer is a label."""
    folder.mkdir()
    names = [*SIMON_SAYS, *(f"class_{i}" for i in range(len(SIMON_SAYS), SMALL_TEST))]
    (folder / "fine_label_names.txt").write_text("\n".join(names) + "\n")
    (folder / "coarse_label_names.txt").write_text("one\nother\n")
    labels = _labels(SMALL_TEST, len(names))
    for part in ("train", "test"):
        rows = [[label % 2, label] for label in labels]
        (folder / f"{part}.bin").write_bytes(record(rows, _pixels(labels, 3072)))


def _svhn(folder: Path) -> None:
    folder.mkdir()
    for part, n in (("train", SMALL_TRAIN), ("test", SMALL_TEST)):
        labels = _labels(n, 10)
        pixels = np.moveaxis(_pixels(labels, 32, 32, 3), 0, -1)
        digits = np.array([label or 10 for label in labels], dtype=np.uint8)[:, None]
        savemat(folder / f"{part}_32x32.mat", {"X": pixels, "y": digits})


def _photograph(path: Path, number: int, size: tuple[int, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    height, width = size
    stream = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((width, height)).save(stream, "JPEG")
    path.write_bytes(stream.getvalue())


def _celeba(folder: Path) -> None:
    """Cropped images are 178 × 218; those of the wild have sizes of their own."""
    splits = [split for split, n in FACES.items() for _ in range(n)]
    files = [f"{i:06d}.jpg" for i in range(1, 1 + len(splits))]
    for i, file in enumerate(files):
        _photograph(folder / "img_align_celeba" / file, i, (218, 178))
        _photograph(folder / "img_celeba" / file, i, (250 + 10 * i, 300))
    values = np.random.default_rng(1).choice([-1, 1], (len(files), len(CELEBA)))
    values[1::2] = -values[::2]  # so that every part has both values of every attribute
    rows = [" ".join([file, *map(str, row)]) for file, row in zip(files, values, strict=True)]
    head = [str(len(files)), " ".join(CELEBA)]
    (folder / "list_attr_celeba.txt").write_text("\n".join([*head, *rows]) + "\n")
    lines = [f"{file} {split}" for file, split in zip(files, splits, strict=True)]
    (folder / "list_eval_partition.txt").write_text("\n".join(lines) + "\n")
    people = [f"{file} {i // 2}" for i, file in enumerate(files)]
    (folder / "identity_CelebA.txt").write_text("\n".join(people) + "\n")


def _fairface(folder: Path) -> None:
    """Twelve faces: of the two that the preset's draw holds out, one is of each gender."""
    for split, n in (("train", 8), ("val", 4)):
        lines = ["file,age,gender,race,service_test"]
        for i in range(1, 1 + n):
            path = f"{split}/{i}.jpg"
            _photograph(folder / "fairface-img-margin025-trainval" / path, i, (224, 224))
            gender = ("Female", "Male")[i % 2]
            lines.append(f"{path},{('0-2', '20-29')[i % 2]},{gender},{RACES[i % 3]},True")
        (folder / f"fairface_label_{split}.csv").write_text("\n".join(lines) + "\n")


def _imagenette(folder: Path, classes: Sequence[str]) -> None:
    for split, n in (("train", 3), ("val", 3)):
        for place, name in enumerate(classes):
            for i in range(n):
                _photograph(folder / split / name / f"{name}_{i}.JPEG", 10 * place + i, (160, 213))


def _awa2(folder: Path) -> None:
    for animal, i in product(("ox", "seal"), range(5)):
        _photograph(folder / "JPEGImages" / animal / f"{animal}_1000{i}.jpg", i, (240, 320))
    (folder / "classes.txt").write_text("      1\tox\n      2\tseal\n")
    lines = [f"{i:7d}\t{name}" for i, name in enumerate(AWA2, start=1)]
    (folder / "predicates.txt").write_text("\n".join(lines) + "\n")
    rows = [" ".join(str((i + animal) % 2) for i in range(len(AWA2))) for animal in range(2)]
    (folder / "predicate-matrix-binary.txt").write_text("\n".join(rows) + "\n")


def _iwildcam(folder: Path) -> None:
    lines = [",split,location_remapped,sequence_remapped,y,datetime,filename"]
    splits = ["train"] * 4 + ["val"] * 2 + ["test"] * 6
    for i, split in enumerate(splits):
        _photograph(folder / "train" / f"{i}.jpg", i, (240, 320))
        lines.append(f"{i},{split},{i // 4},{i // 2},{i % 3},2013-06-05 05:44:19.000,{i}.jpg")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n")
