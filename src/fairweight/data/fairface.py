"""FairFace: faces with age, gender and race as raters saw them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairweight.data.dataset import Images
from fairweight.data.decode import Fit
from fairweight.data.needs import Needs
from fairweight.data.official_files import chosen, find_folder, need_file, need_folder, read_csv
from fairweight.data.parquet import parquet_files, read_parquet_images
from fairweight.data.photographs import Progress, Size, photographs
from fairweight.data.registry import register
from fairweight.errors import InputError, UnknownNameError

CLASSES = {
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
_FOLDERS = ("fairface", "FairFace")
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
    groups=tuple(CLASSES),
    needs=(
        Needs(
            _FOLDERS,
            (
                *(f"fairface_label_{split}.csv" for split in _SPLITS),
                *("|".join(f"{place}/{split}/" for place in (".", *_IMAGES)) for split in _SPLITS),
            ),
        ),
        Needs(_FOLDERS, tuple(f"{split}*.parquet" for split in _SPLITS), telling=False),
    ),
)
def fairface(
    root: Path,
    *,
    label: str = "gender",
    splits: str | Sequence[str] = _SPLITS,
    size: Size = None,
    fit: Fit = "crop",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Images:
    """Read FairFace; `label` is `age`, `gender` or `race`, and the other two are groups."""
    if label not in CLASSES:
        raise UnknownNameError("Label of FairFace", label, CLASSES)
    groups = [column for column in CLASSES if column != label]
    folder = find_folder(root, *_FOLDERS)
    wanted = chosen(splits, _SPLITS)
    files = {path: split for path, split in parquet_files(folder).items() if split in wanted}
    if set(files.values()) == set(wanted):
        return read_parquet_images(
            "fairface", files, label=label, groups=groups, classes=CLASSES[label],
            size=size, fit=fit, cache=cache, progress=progress,
        )  # fmt: skip
    rows, split_of = [], []
    for split in wanted:
        path = need_file(folder, f"fairface_label_{split}.csv", dataset="fairface")
        found = read_csv(path, ("file", *CLASSES))
        for column, known in CLASSES.items():
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
    places = {name: i for i, name in enumerate(CLASSES[label])}
    return Images(
        name="fairface",
        images=photographs(images_in, names, size=size, fit=fit, cache=cache, progress=progress),
        labels=np.array([places[row[label]] for row in rows], dtype=np.int64),
        classes=CLASSES[label],
        groups={column: np.array([row[column] for row in rows]) for column in groups},
        example_id=np.array(names),
        split=np.array(split_of),
    )
