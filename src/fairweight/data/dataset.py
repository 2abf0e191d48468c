"""What every data set becomes: images, labels, groups, ids and splits, as aligned arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

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
        told = f"Data set '{self.name}'"
        if self.images.dtype != np.uint8 or self.images.ndim != 4:
            raise InputError(
                f"{told}: images are {self.images.dtype} of shape {self.images.shape}; they must "
                "be uint8 of shape (examples, height, width, channels)."
            )
        columns = {"labels": self.labels, "example_id": self.example_id, "split": self.split}
        for column, values in (columns | dict(self.groups)).items():
            if len(values) != len(self.images):
                raise InputError(
                    f"{told}: '{column}' has {len(values)} values for {len(self.images)} images; "
                    "give one per image."
                )
        self._check_labels(told)
        if len(set(self.example_id.tolist())) != len(self.example_id):
            raise InputError(f"{told}: values of example_id repeat; give every image its own.")

    def _check_labels(self, told: str) -> None:
        if self.labels.ndim == 2:
            fit = self.labels.shape[1] == len(self.classes)
            fit = fit and bool(np.isin(self.labels, (0, 1)).all())
            wanted = f"0 or 1 in {len(self.classes)} columns, one per task"
        else:
            fit = self.labels.ndim == 1
            fit = fit and bool(((self.labels >= 0) & (self.labels < len(self.classes))).all())
            wanted = f"from 0 to {len(self.classes) - 1}, places in the list of classes"
        if not fit:
            raise InputError(f"{told}: labels must be {wanted}.")

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
        place = _as_slice(rows)
        return replace(
            self,
            images=self.images[place],
            labels=self.labels[place],
            groups={column: values[place] for column, values in self.groups.items()},
            example_id=self.example_id[place],
            split=self.split[place],
        )


def _as_slice(rows: NDArray[Any]) -> Any:
    """Rows one after another as a slice, which costs no memory; else the rows as they are."""
    if not len(rows):
        return slice(0, 0)
    first, last = int(rows[0]), int(rows[-1])
    run = first >= 0 and last - first + 1 == len(rows) and bool((np.diff(rows) == 1).all())
    return slice(first, last + 1) if run else rows
