"""CelebA: faces with 40 attributes, cropped to the face or as found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairweight.data.codecs import Fit
from fairweight.data.dataset import Images, Texts, Whole
from fairweight.data.parquet import ParquetTable, parquet_files, read_parquet_images
from fairweight.data.photographs import Progress, Size, photographs
from fairweight.data.registry import (
    AGAIN,
    Needs,
    column_names,
    find_file,
    find_folder,
    need_file,
    need_folder,
    read_lines,
    register,
    whole_number,
)
from fairweight.errors import InputError, UnknownNameError

IDENTITIES = ("Male", "Young", "Chubby", "Pale_Skin")
_FOLDERS = ("celeba", "CelebA")
_SPLITS = ("train", "val", "test")  # 0, 1, 2 of the official partition
_LAST_TRAIN, _LAST_VAL = 162_770, 182_637  # the official partition goes by the number of the file


@register(
    "celeba",
    summary="faces with 40 attributes, 162,770 + 19,867 + 19,962, colour; cropped or uncropped",
    source="Liu et al. 2015; non-commercial research, not to be redistributed",
    layout=(
        "celeba/img_align_celeba/ (cropped), celeba/img_celeba/ (uncropped)",
        "celeba/list_attr_celeba.txt, list_eval_partition.txt, identity_CelebA.txt (optional); "
        "also in Img/, Anno/, Eval/",
        "or celeba/*.parquet (example_id, image, 40 attributes)",
    ),
    groups=(*IDENTITIES, "identity"),
    needs=(
        Needs(
            _FOLDERS,
            (
                "img_align_celeba/|Img/img_align_celeba/",
                "list_attr_celeba.txt|Anno/list_attr_celeba.txt",
                "list_eval_partition.txt|Eval/list_eval_partition.txt",
            ),
        ),
        Needs(_FOLDERS, ("*.parquet",), telling=False),
    ),
)
def celeba(
    root: Path,
    *,
    label: str | Sequence[str] | None = None,
    groups: str | Sequence[str] = IDENTITIES,
    cropped: bool = True,
    size: Size = None,
    fit: Fit = "crop",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Images:
    """Read CelebA.

    Parameters
    ----------
    label
        One attribute (classes `no` and `yes`), or several as tasks; all 40 by default.
    groups
        Attributes that are group columns, `yes` or `no`.
    size
        By default that of the files, which uncropped ones do not have in common.
    """
    groups = column_names(groups)
    folder = find_folder(root, *_FOLDERS)
    listed = ("list_attr_celeba.txt", "Anno/list_attr_celeba.txt")
    photos: dict[str, Any] = {"size": size, "fit": fit, "cache": cache, "progress": progress}
    if find_file(folder, *listed) is None:
        # Tables of attributes only stand beside those with images.
        tables = {p: s for p, s in parquet_files(folder).items() if "attributes" not in p.name}
        if tables:
            return _from_parquet(tables, label, groups, **photos)
    # A count, the names of the attributes, and a line of 1 and -1 for every file.
    path = need_file(folder, *listed, dataset="celeba")
    lines = read_lines(path)
    if len(lines) < 3 or len(lines) != 2 + whole_number(lines[0], path):
        raise InputError(f"'{path}' has {len(lines)} lines, not what its first one says; {AGAIN}.")
    attributes = tuple(lines[1].split())
    rows = [line.split() for line in lines[2:]]
    for row in rows:
        if len(row) != 1 + len(attributes) or not set(row[1:]) <= {"1", "-1"}:
            raise InputError(f"'{path}': the line of '{row[0]}' is damaged; {AGAIN}.")
    files = [row[0] for row in rows]
    values = np.array([[value == "1" for value in row[1:]] for row in rows], dtype=np.int64)
    name = "img_align_celeba" if cropped else "img_celeba"
    base = need_folder(folder, name, f"Img/{name}", dataset="celeba")
    labels, classes = _labelled(values, attributes, label)
    columns = {name: _yes_no(values[:, _place(name, attributes)]) for name in groups}
    people = find_file(folder, "identity_CelebA.txt", "Anno/identity_CelebA.txt")
    if people is not None:
        columns["identity"] = _per_file(people, files)
    pixels = photographs(base, files, **photos)
    partition = need_file(
        folder, "list_eval_partition.txt", "Eval/list_eval_partition.txt", dataset="celeba"
    )
    numbers = _per_file(partition, files)
    if not set(numbers.tolist()) <= {"0", "1", "2"}:
        raise InputError(f"'{partition}' has splits other than 0, 1 and 2; {AGAIN}.")
    return Images(
        name="celeba",
        images=pixels,
        labels=labels,
        classes=classes,
        groups=columns,
        example_id=np.array(files),
        split=np.array(_SPLITS)[numbers.astype(np.int64)],
    )


def _labelled(
    values: Whole, names: tuple[str, ...], label: str | Sequence[str] | None
) -> tuple[Whole, tuple[str, ...]]:
    if isinstance(label, str):
        return values[:, _place(label, names)], ("no", "yes")
    tasks = names if label is None else tuple(label)
    return values[:, [_place(task, names) for task in tasks]], tasks


def _place(attribute: str, names: tuple[str, ...]) -> int:
    if attribute not in names:
        raise UnknownNameError("Attribute of CelebA", attribute, names)
    return names.index(attribute)


def _yes_no(values: Whole) -> Texts:
    return np.array(["no", "yes"])[values]


def _per_file(path: Path, files: list[str]) -> Texts:
    """The second word of every file's line."""
    pairs = [line.split() for line in read_lines(path)]
    held = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
    missing = [file for file in files if file not in held]
    if missing:
        raise InputError(
            f"'{path}' says nothing of {len(missing):,} images, such as '{missing[0]}'; {AGAIN}."
        )
    return np.array([held[file] for file in files])


def _from_parquet(
    files: dict[Path, str], label: str | Sequence[str] | None, groups: Sequence[str], **photos: Any
) -> Images:
    held = ParquetTable(next(iter(files))).columns
    columns = [column for column in held if column not in ("example_id", "image")]
    for wanted in groups:
        _place(wanted, tuple(columns))
    images = read_parquet_images("celeba", files, label=columns, groups=groups, **photos)
    labels, classes = _labelled(images.labels, images.classes, label)
    numbers = [whole_number(Path(file).stem, next(iter(files))) for file in images.example_id]
    split = ["train" if n <= _LAST_TRAIN else "val" if n <= _LAST_VAL else "test" for n in numbers]
    return replace(
        images,
        labels=labels,
        classes=classes,
        groups={name: _yes_no(images.labels[:, images.classes.index(name)]) for name in groups},
        split=np.array(split),
    )
