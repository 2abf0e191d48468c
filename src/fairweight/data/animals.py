"""Animals: AwA2 (50 animals and which of 85 attributes each has), and iWildCam (camera traps)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from fairweight.data.codecs import Fit
from fairweight.data.dataset import Images, Texts
from fairweight.data.folders import read_tree
from fairweight.data.photographs import Progress, Size, photographs
from fairweight.data.registry import (
    AGAIN,
    Needs,
    find_file,
    find_folder,
    need_file,
    need_folder,
    read_csv,
    read_lines,
    register,
    whole_number,
)
from fairweight.errors import InputError

IDENTITIES = ("water", "domestic", "bipedal", "furry")
_AWA2_FOLDERS = ("Animals_with_Attributes2", "AwA2/Animals_with_Attributes2", "awa2")
_MATRIX = "predicate-matrix-binary.txt"


@register(
    "awa2",
    summary="37,322 photographs of 50 animals with 85 attributes, colour",
    source="Xian et al. 2018; images under their own free licences",
    layout=(
        "Animals_with_Attributes2/JPEGImages/ANIMAL/…",
        f"Animals_with_Attributes2/classes.txt, predicates.txt, {_MATRIX}",
    ),
    groups=("animal", *IDENTITIES),
    needs=(Needs(_AWA2_FOLDERS, ("JPEGImages/", "classes.txt", "predicates.txt", _MATRIX)),),
)
def awa2(
    root: Path,
    *,
    label: Literal["attributes", "animal"] = "attributes",
    size: Size = 128,
    fit: Fit = "crop",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Images:
    """Read AwA2: 85 tasks, or the animal as the class.

    The official split keeps animals apart, which no classifier of animals can use: examples come
    without a split.
    """
    if label not in ("attributes", "animal"):
        raise InputError(f"label is '{label}'; give 'attributes' or 'animal'.")
    folder = find_folder(root, *_AWA2_FOLDERS)
    tree = need_folder(folder, "JPEGImages", dataset="awa2")
    attributes = _names(need_file(folder, "predicates.txt", dataset="awa2"))
    animals = _names(need_file(folder, "classes.txt", dataset="awa2"))
    path = need_file(folder, _MATRIX, dataset="awa2")
    rows = [[whole_number(word, path) for word in line.split()] for line in read_lines(path)]
    if len(rows) != len(animals) or any(len(row) != len(attributes) for row in rows):
        raise InputError(
            f"'{path}' is not of {len(animals)} animals by {len(attributes)} attributes; {AGAIN}."
        )
    missing = [name for name in IDENTITIES if name not in attributes]
    if missing:
        raise InputError(f"'{folder / 'predicates.txt'}' has no '{missing[0]}'; {AGAIN}.")
    matrix = {animal: np.array(row) for animal, row in zip(animals, rows, strict=True)}
    images = read_tree("awa2", tree, {}, size=size, fit=fit, cache=cache, progress=progress)
    unknown = sorted(set(images.classes) - set(matrix))
    if unknown:
        raise InputError(f"'{tree}' has a folder '{unknown[0]}', which is no animal of AwA2.")
    has = np.stack([matrix[animal] for animal in images.classes])[images.labels]
    groups: dict[str, Texts] = {"animal": np.array(images.classes)[images.labels]}
    for name in IDENTITIES:
        groups[name] = np.array(["no", "yes"])[has[:, attributes.index(name)]]
    if label == "attributes":
        return replace(images, labels=has, classes=attributes, groups=groups)
    groups.pop("animal")
    return replace(images, groups=groups)


def _names(path: Path) -> tuple[str, ...]:
    """The second word of every line: `12 furry`."""
    pairs = [line.split() for line in read_lines(path)]
    if any(len(pair) != 2 for pair in pairs):
        raise InputError(f"'{path}' has lines other than a number and a name; {AGAIN}.")
    return tuple(pair[1] for pair in pairs)


# iWildCam as WILDS publishes it: animals before camera traps, with the place of the camera.

_IWILDCAM_FOLDERS = ("iwildcam_v2.0", "iwildcam")
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
    needs=(Needs(_IWILDCAM_FOLDERS, ("metadata.csv", "train/"), telling=False),),
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
    folder = find_folder(root, *_IWILDCAM_FOLDERS)
    path = need_file(folder, "metadata.csv", dataset="iwildcam")
    rows = read_csv(path, _COLUMNS)
    unknown = {row["split"] for row in rows} - set(SPLITS)
    if unknown or not rows:
        wrong = f"the split '{min(unknown)}'" if unknown else "no rows"
        raise InputError(f"'{path}' has {wrong}; take the file of WILDS 2.0.")
    labels = np.array([whole_number(row["y"], path) for row in rows], dtype=np.int64)
    names = [row["filename"] for row in rows]
    base = need_folder(folder, "train", dataset="iwildcam")
    # Classes have numbers, and names where the file is there, also of classes that no image has.
    categories = find_file(folder, "categories.csv")
    titles = read_csv(categories, ("y", "name")) if categories is not None else []
    named = {row["y"]: row["name"] for row in titles}
    return Images(
        name="iwildcam",
        images=photographs(base, names, size=size, fit=fit, cache=cache, progress=progress),
        labels=labels,
        classes=tuple(named.get(str(i), str(i)) for i in range(int(labels.max()) + 1)),
        groups={
            "location": np.array([row["location_remapped"] for row in rows]),
            "sequence": np.array([row["sequence_remapped"] for row in rows]),
        },
        example_id=np.array(names),
        split=np.array([row["split"] for row in rows]),
    )
