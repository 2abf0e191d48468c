"""UTKFace: faces whose file names say age, gender and race."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from fairweight.data.dataset import ALL, Images
from fairweight.data.decode import Fit
from fairweight.data.needs import Needs
from fairweight.data.official_files import entries, find_folder
from fairweight.data.photographs import SUFFIXES, Progress, Size, photographs
from fairweight.data.registry import register
from fairweight.errors import InputError, UnknownNameError

# Ages in the parts that FairFace has, so that the two can be compared.
_AGES = ((2, "0-2"), (9, "3-9"), (19, "10-19"), (29, "20-29"), (39, "30-39"), (49, "40-49"),
         (59, "50-59"), (69, "60-69"), (999, "more than 70"))  # fmt: skip
CLASSES = {
    "age": tuple(name for _, name in _AGES),
    "gender": ("Male", "Female"),
    "race": ("White", "Black", "Asian", "Indian", "Other"),
}
_FOLDERS = ("UTKFace", "utkface")
_NAME = re.compile(r"(\d{1,3})_([01])_([0-4])_\d+\.")


@register(
    "utkface",
    summary="faces with age, gender and race in the file name, 23,708, colour",
    source="Zhang, Song and Qi 2017; non-commercial research",
    layout=("UTKFace/AGE_GENDER_RACE_DATE.jpg, as they are or as .jpg.chip.jpg",),
    groups=tuple(CLASSES),
    needs=(Needs(_FOLDERS, ("[0-9]*_[01]_[0-4]_*.*",)),),
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
    if label not in CLASSES:
        raise UnknownNameError("Label of UTKFace", label, CLASSES)
    folder = find_folder(root, *_FOLDERS)
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
        classes=CLASSES[label],
        groups={
            column: np.array(CLASSES[column])[facts[column]]
            for column in CLASSES
            if column != label
        },
        example_id=np.array(files),
        split=np.full(len(files), ALL),
    )
