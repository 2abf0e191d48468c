"""Animals with Attributes 2: 50 animals, and 85 attributes that each animal has or has not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from fairweight.data.class_folders import read_tree
from fairweight.data.dataset import Images, Texts, Whole
from fairweight.data.decode import Fit
from fairweight.data.needs import Needs
from fairweight.data.official_files import (
    AGAIN,
    find_folder,
    need_file,
    need_folder,
    read_lines,
    whole_number,
)
from fairweight.data.photographs import Progress, Size
from fairweight.data.registry import register
from fairweight.errors import InputError

IDENTITIES = ("water", "domestic", "bipedal", "furry")
_FOLDERS = ("Animals_with_Attributes2", "AwA2/Animals_with_Attributes2", "awa2")
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
    needs=(Needs(_FOLDERS, ("JPEGImages/", "classes.txt", "predicates.txt", _MATRIX)),),
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
    folder = find_folder(root, *_FOLDERS)
    tree = need_folder(folder, "JPEGImages", dataset="awa2")
    attributes = _names(need_file(folder, "predicates.txt", dataset="awa2"))
    matrix = _matrix(folder, attributes)
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


def _matrix(folder: Path, attributes: tuple[str, ...]) -> dict[str, Whole]:
    """What each animal has."""
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
    return {animal: np.array(row) for animal, row in zip(animals, rows, strict=True)}
