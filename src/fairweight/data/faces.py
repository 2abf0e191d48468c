"""Faces with age, gender and race: FairFace and UTKFace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairweight.data.codecs import Fit
from fairweight.data.dataset import ALL, Images
from fairweight.data.parquet import parquet_files, read_parquet_images
from fairweight.data.photographs import SUFFIXES, Progress, Size, photographs
from fairweight.data.registry import (
    Needs,
    chosen,
    column_names,
    entries,
    find_folder,
    need_file,
    need_folder,
    read_csv,
    register,
)
from fairweight.errors import InputError, UnknownNameError

FAIRFACE_CLASSES = {
    "age": (
        "0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70",
    ),
    "gender": ("Female", "Male"),
    "race": (
        "Black", "East Asian", "Indian", "Latino_Hispanic", "Middle Eastern", "Southeast Asian",
        "White",
    ),
}  # fmt: skip
_SPLITS = ("train", "val")
_FAIRFACE_FOLDERS = ("fairface", "FairFace")
_IMAGES = ("fairface-img-margin025-trainval", "fairface-img-margin125-trainval")


@register(
    "fairface",
    summary="faces with age, gender and race, 86,744 + 10,954, colour",
    source="Kärkkäinen and Joo 2021; CC BY 4.0",
    layout=(
        "fairface/fairface_label_train.csv, fairface_label_val.csv",
        "fairface/train/, val/; also in fairface-img-margin025-trainval/ or …125…/",
        "or fairface/*.parquet (example_id, image, age, gender, race)",
    ),
    groups=tuple(FAIRFACE_CLASSES),
    needs=(
        Needs(
            _FAIRFACE_FOLDERS,
            (
                *(f"fairface_label_{split}.csv" for split in _SPLITS),
                *("|".join(f"{place}/{split}/" for place in (".", *_IMAGES)) for split in _SPLITS),
            ),
        ),
        Needs(_FAIRFACE_FOLDERS, tuple(f"{split}*.parquet" for split in _SPLITS), telling=False),
    ),
)
def fairface(
    root: Path,
    *,
    label: str = "gender",
    groups: str | Sequence[str] | None = None,
    splits: str | Sequence[str] = _SPLITS,
    size: Size = None,
    fit: Fit = "crop",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Images:
    """Read FairFace; `label` is `age`, `gender` or `race`, and the other two are groups.

    `groups` names other columns as groups (a list, or `race,gender`); the label may be among them.
    """
    others = [column for column in FAIRFACE_CLASSES if column != label]
    groups = column_names(others if groups is None else groups)
    for name, what in ((label, "Label"), *((group, "Group column") for group in groups)):
        if name not in FAIRFACE_CLASSES:
            raise UnknownNameError(f"{what} of FairFace", name, FAIRFACE_CLASSES)
    folder = find_folder(root, *_FAIRFACE_FOLDERS)
    wanted = chosen(splits, _SPLITS)
    files = {path: split for path, split in parquet_files(folder).items() if split in wanted}
    if set(files.values()) == set(wanted):
        return read_parquet_images(
            "fairface", files, label=label, groups=groups, classes=FAIRFACE_CLASSES[label],
            size=size, fit=fit, cache=cache, progress=progress,
        )  # fmt: skip
    rows, split_of = [], []
    for split in wanted:
        path = need_file(folder, f"fairface_label_{split}.csv", dataset="fairface")
        found = read_csv(path, ("file", *FAIRFACE_CLASSES))
        for column, known in FAIRFACE_CLASSES.items():
            unknown = {row[column] for row in found} - set(known)
            if unknown:
                raise InputError(
                    f"'{path}' has the {column} '{min(unknown)}', which is none of "
                    f"{', '.join(known)}; take the official file."
                )
        rows += found
        split_of += [split] * len(found)
    images_in = next((folder / name for name in _IMAGES if (folder / name).is_dir()), folder)
    for split in wanted:
        need_folder(images_in, split, dataset="fairface")
    names = [row["file"] for row in rows]
    places = {name: i for i, name in enumerate(FAIRFACE_CLASSES[label])}
    return Images(
        name="fairface",
        images=photographs(images_in, names, size=size, fit=fit, cache=cache, progress=progress),
        labels=np.array([places[row[label]] for row in rows], dtype=np.int64),
        classes=FAIRFACE_CLASSES[label],
        groups={column: np.array([row[column] for row in rows]) for column in groups},
        example_id=np.array(names),
        split=np.array(split_of),
    )


# UTKFace: faces whose file names say age, gender and race.

# Ages in the parts that FairFace has, so that the two can be compared.
_AGES = ((2, "0-2"), (9, "3-9"), (19, "10-19"), (29, "20-29"), (39, "30-39"), (49, "40-49"),
         (59, "50-59"), (69, "60-69"), (999, "more than 70"))  # fmt: skip
UTKFACE_CLASSES = {
    "age": tuple(name for _, name in _AGES),
    "gender": ("Male", "Female"),
    "race": ("White", "Black", "Asian", "Indian", "Other"),
}
_UTKFACE_FOLDERS = ("UTKFace", "utkface")
_NAME = re.compile(r"(\d{1,3})_([01])_([0-4])_\d+\.")


@register(
    "utkface",
    summary="faces with age, gender and race in the file name, 23,708, colour",
    source="Zhang, Song and Qi 2017; non-commercial research",
    layout=("UTKFace/AGE_GENDER_RACE_DATE.jpg, as they are or as .jpg.chip.jpg",),
    groups=tuple(UTKFACE_CLASSES),
    needs=(Needs(_UTKFACE_FOLDERS, ("[0-9]*_[01]_[0-4]_*.*",)),),
)
def utkface(
    root: Path,
    *,
    label: str = "gender",
    leave_out_unnamed: bool = False,
    size: Size = None,
    fit: Fit = "crop",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Images:
    """Read UTKFace; `label` is `age`, `gender` or `race`, and the other two are groups.

    A few official files lack the race in their names: they are an error unless they are left out.
    """
    if label not in UTKFACE_CLASSES:
        raise UnknownNameError("Label of UTKFace", label, UTKFACE_CLASSES)
    folder = find_folder(root, *_UTKFACE_FOLDERS)
    names = [path.name for path in entries(folder) if path.suffix.lower() in SUFFIXES]
    unnamed = [name for name in names if not _NAME.match(name)]
    if unnamed and not leave_out_unnamed:
        raise InputError(
            f"{len(unnamed)} files of '{folder}' are not named AGE_GENDER_RACE_DATE, such as "
            f"'{unnamed[0]}'; leave them out (leave_out_unnamed=True) or rename them."
        )
    kept = [(name, match) for name in names if (match := _NAME.match(name))]
    facts = {
        "age": [next(i for i, (most, _) in enumerate(_AGES) if int(m[1]) <= most) for _, m in kept],
        "gender": [int(m[2]) for _, m in kept],
        "race": [int(m[3]) for _, m in kept],
    }
    files = [name for name, _ in kept]
    return Images(
        name="utkface",
        images=photographs(folder, files, size=size, fit=fit, cache=cache, progress=progress),
        labels=np.array(facts[label], dtype=np.int64),
        classes=UTKFACE_CLASSES[label],
        groups={
            column: np.array(UTKFACE_CLASSES[column])[facts[column]]
            for column in UTKFACE_CLASSES
            if column != label
        },
        example_id=np.array(files),
        split=np.full(len(files), ALL),
    )
