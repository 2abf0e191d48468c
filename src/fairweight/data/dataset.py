"""What every data set becomes: images, labels, groups, ids and splits, as aligned arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.base.streams import generator
from fairweight.errors import InputError, UnknownNameError

Pixels: TypeAlias = NDArray[np.uint8]
Whole: TypeAlias = NDArray[np.int64]
Texts: TypeAlias = NDArray[np.str_]

ALL = "all"  # the split of a source that has none
MISSING = ""  # the value of a group that the source does not give


@dataclass(frozen=True, eq=False)
class Images:
    """A data set of images.

    name          as in the registry
    images        uint8, (examples, height, width, channels); may be memory-mapped
    labels        int64: (examples,) places in `classes`, or (examples, tasks) of 0 and 1
    classes       names of the classes; names of the tasks where labels have two axes
    groups        columns of text, one value per example; `""` is a missing value
    example_id    text, unique, the same in every run
    split         `train`, `val`, `test` as the source says; `all` where it has no split
    """

    name: str
    images: Pixels
    labels: Whole
    classes: tuple[str, ...]
    groups: Mapping[str, Texts]
    example_id: Texts
    split: Texts

    def __post_init__(self) -> None:
        named = f"Data set '{self.name}'"
        if self.images.dtype != np.uint8 or self.images.ndim != 4:
            raise InputError(
                f"{named}: images are {self.images.dtype} of shape {self.images.shape}; they must "
                "be uint8 of shape (examples, height, width, channels)."
            )
        columns = {"labels": self.labels, "example_id": self.example_id, "split": self.split}
        for column, values in (columns | dict(self.groups)).items():
            if len(values) != len(self.images):
                raise InputError(
                    f"{named}: '{column}' has {len(values)} values for {len(self.images)} images; "
                    "give one per image."
                )
        if self.labels.ndim == 2:
            fit = self.labels.shape[1] == len(self.classes)
            fit = fit and bool(np.isin(self.labels, (0, 1)).all())
            wanted = f"0 or 1 in {len(self.classes)} columns, one per task"
        else:
            fit = self.labels.ndim == 1
            fit = fit and bool(((self.labels >= 0) & (self.labels < len(self.classes))).all())
            wanted = f"from 0 to {len(self.classes) - 1}, places in the list of classes"
        if not fit:
            raise InputError(f"{named}: labels must be {wanted}.")
        if len(set(self.example_id.tolist())) != len(self.example_id):
            raise InputError(f"{named}: values of example_id repeat; give every image its own.")

    def __len__(self) -> int:
        return len(self.images)

    @property
    def multi_label(self) -> bool:
        """Whether every example has a label for each of several tasks."""
        return self.labels.ndim == 2

    def rows_of(self, split: str) -> Whole:
        """Row numbers of a split.

        Larger than memory: keep these, and index `images` batch by batch.
        """
        rows = np.flatnonzero(self.split == split)
        if not len(rows):
            raise UnknownNameError("Split", split, sorted({str(s) for s in self.split}))
        return rows

    def of_split(self, name: str) -> Images:
        """The examples of one split."""
        return self.select(self.rows_of(name))

    def select(self, rows: NDArray[Any]) -> Images:
        """Some of the examples, by a mask or by row numbers.

        Neighbouring rows share memory with this data set; others are copied.
        """
        rows = np.asarray(rows)
        if rows.dtype == bool:
            if rows.shape != (len(self),):
                raise InputError(
                    f"The mask has shape {rows.shape} for {len(self)} examples; "
                    "give one value per example."
                )
            rows = np.flatnonzero(rows)
        # Rows one after another as a slice, which costs no memory.
        place: Any = rows if len(rows) else slice(0, 0)
        if len(rows) and rows[0] >= 0 and bool((np.diff(rows) == 1).all()):
            place = slice(int(rows[0]), int(rows[-1]) + 1)
        return replace(
            self,
            images=self.images[place],
            labels=self.labels[place],
            groups={column: values[place] for column, values in self.groups.items()},
            example_id=self.example_id[place],
            split=self.split[place],
        )


# Data sets that come as one array per split.

SPLITS = ("train", "test")
DIGITS = tuple("0123456789")


def joined(
    name: str, parts: Mapping[str, tuple[Pixels, Whole]], classes: tuple[str, ...]
) -> Images:
    """Splits one after another; ids are the split and the place in its file."""
    sizes = {split: len(label) for split, (_, label) in parts.items()}
    return Images(
        name=name,
        images=np.concatenate([pixels for pixels, _ in parts.values()]),
        labels=np.concatenate([label for _, label in parts.values()]),
        classes=classes,
        groups={},
        example_id=np.array([f"{split}-{i}" for split, n in sizes.items() for i in range(n)]),
        split=np.repeat(list(sizes), list(sizes.values())),
    )


# Splits by a seed: of single examples, or of whole groups (writers) that must stay together.


def split_by_seed(
    images: Images, shares: Mapping[str, float], random_state: int, *, within: str | None = None
) -> Images:
    """The same examples with another split; no image is copied.

    Parameters
    ----------
    shares
        What share of the examples each split gets, such as `{"train": 0.8, "val": 0.2}`.
    within
        Divide this split only (Prune Responsibly: `train`), the others stay; by default all.
    """
    rows = images.rows_of(within) if within is not None else np.arange(len(images))
    # By id, so that the order of the files on disk has no say.
    rows = rows[np.argsort(images.example_id[rows], kind="stable")]
    drawn = rows[generator(random_state, "split").permutation(len(rows))]
    middles = (np.arange(len(drawn)) + 0.5) / max(len(drawn), 1)
    return _assigned(images, drawn, middles, shares, parts=len(drawn), what="examples")


def stratified_split(
    images: Images, columns: Sequence[str], shares: Mapping[str, float], random_state: int
) -> Images:
    """The same examples with another split that divides every cell of label × columns alike.

    Small cells, such as 30 of 10,000 examples, then have their share in each part. Of several
    attributes those count that are among the columns.
    """
    cells = [] if images.multi_label else [images.labels.astype(str)]
    for column in columns:
        if column not in images.groups:
            raise UnknownNameError("Group column", column, images.groups)
        cells.append(np.asarray(images.groups[column]).astype(str))
    names = np.array([" & ".join(cell) for cell in zip(*cells, strict=True)])
    order = np.argsort(images.example_id, kind="stable")
    middles = np.empty(len(images))
    for name in np.unique(names):
        rows = order[names[order] == name]
        draw = generator(random_state, "split", str(name))
        drawn = rows[draw.permutation(len(rows))]
        # A random start: with a fixed one the odd example of every cell would go to one part.
        middles[drawn] = (np.arange(len(drawn)) + draw.random()) / len(drawn)
    rows = np.arange(len(images))
    return _assigned(images, rows, middles, shares, parts=len(images), what="examples")


def group_split(
    images: Images, column: str, shares: Mapping[str, float], random_state: int
) -> Images:
    """The same examples with another split in which every group is in one part only.

    Groups are drawn in a random order and dealt out until each split has its share of the
    examples, as nearly as whole groups allow.
    """
    if column not in images.groups:
        raise UnknownNameError("Group column", column, images.groups)
    names, member, sizes = np.unique(images.groups[column], return_inverse=True, return_counts=True)
    if MISSING in names:
        raise InputError(
            f"Column '{column}' has {sizes[0]} missing values, whose group is unknown; remove "
            "those examples first (select)."
        )
    order = generator(random_state, "split", column).permutation(len(names))
    ends = np.cumsum(sizes[order])
    middle = np.empty(len(names))
    middle[order] = (ends - sizes[order] / 2) / max(len(images), 1)
    rows = np.arange(len(images))
    return _assigned(images, rows, middle[member], shares, parts=len(names), what=f"{column}s")


def _assigned(
    images: Images,
    rows: Whole,
    middles: NDArray[np.float64],
    shares: Mapping[str, float],
    *,
    parts: int,
    what: str,
) -> Images:
    """Put each row into the split whose share of [0, 1] contains the row's midpoint."""
    if not shares or min(shares.values()) <= 0 or not math.isclose(sum(shares.values()), 1.0):
        raise InputError(
            f"shares is {dict(shares)}; give every split a share above 0, which add up to 1."
        )
    ends = np.cumsum(list(shares.values()))
    place = np.searchsorted(ends[:-1], middles, side="right")
    empty = [name for i, name in enumerate(shares) if not (place == i).any()]
    if empty:
        raise InputError(
            f"The split '{empty[0]}' would be empty: {parts} {what} are too few for "
            f"{dict(shares)}; give larger shares or fewer splits."
        )
    names = np.array(list(shares))
    split = images.split.astype(np.promote_types(images.split.dtype, names.dtype))
    split[rows] = names[place]
    return replace(images, split=split)
