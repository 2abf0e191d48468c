"""iWildCam as WILDS publishes it: animals before camera traps, with the place of the camera."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairweight.data.dataset import Images
from fairweight.data.decode import Fit
from fairweight.data.needs import Needs
from fairweight.data.official_files import (
    find_file,
    find_folder,
    need_file,
    need_folder,
    read_csv,
    whole_number,
)
from fairweight.data.photographs import Progress, Size, photographs
from fairweight.data.registry import register
from fairweight.errors import InputError

_FOLDERS = ("iwildcam_v2.0", "iwildcam")
_COLUMNS = ("split", "filename", "y", "location_remapped", "sequence_remapped")
SPLITS = ("train", "val", "test", "id_val", "id_test")


@register(
    "iwildcam",
    summary="camera traps: 203,029 photographs of 182 classes from 323 places, colour",
    source="Beery, Cole and Gjoka 2020, in WILDS 2.0 (Koh et al. 2021); CDLA-Permissive-1.0",
    layout=(
        "iwildcam_v2.0/metadata.csv, categories.csv (optional: names of classes)",
        "iwildcam_v2.0/train/ (the images of all splits)",
    ),
    groups=("location", "sequence"),
    needs=(Needs(_FOLDERS, ("metadata.csv", "train/"), telling=False),),
)
def iwildcam(
    root: Path,
    *,
    size: Size = 128,
    fit: Fit = "stretch",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Images:
    """Read iWildCam.

    `val` and `test` are of cameras that `train` has not seen, `id_val` and `id_test` of the same
    cameras. Photographs of one sequence belong together: use it as the cluster.
    """
    folder = find_folder(root, *_FOLDERS)
    path = need_file(folder, "metadata.csv", dataset="iwildcam")
    rows = read_csv(path, _COLUMNS)
    unknown = {row["split"] for row in rows} - set(SPLITS)
    if unknown or not rows:
        told = f"the split '{min(unknown)}'" if unknown else "no rows"
        raise InputError(f"'{path}' has {told}; take the file of WILDS 2.0.")
    labels = np.array([whole_number(row["y"], path) for row in rows], dtype=np.int64)
    names = [row["filename"] for row in rows]
    base = need_folder(folder, "train", dataset="iwildcam")
    return Images(
        name="iwildcam",
        images=photographs(base, names, size=size, fit=fit, cache=cache, progress=progress),
        labels=labels,
        classes=_classes(folder, int(labels.max()) + 1),
        groups={
            "location": np.array([row["location_remapped"] for row in rows]),
            "sequence": np.array([row["sequence_remapped"] for row in rows]),
        },
        example_id=np.array(names),
        split=np.array([row["split"] for row in rows]),
    )


def _classes(folder: Path, n: int) -> tuple[str, ...]:
    """Names of the classes 0 to n − 1; their numbers where no file names them."""
    path = find_file(folder, "categories.csv")
    rows = read_csv(path, ("y", "name")) if path is not None else []
    named = {row["y"]: row["name"] for row in rows}  # also of classes that no image has
    return tuple(named.get(str(i), str(i)) for i in range(n))
