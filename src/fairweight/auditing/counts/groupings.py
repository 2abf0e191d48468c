"""Groupings: which level of a column (or of an intersection of columns) each cell belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.cube import Codes, Cube
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical
from fairweight.tables.names import AND, grouping_columns, grouping_name, split_grouping
from fairweight.tables.names import MISSING as MISSING
from fairweight.tables.names import level_name as level_name


@dataclass(frozen=True)
class Grouping:
    """A partition of the cells; `levels` are named as the results show them."""

    name: str  # "sex", "sex*age"; "" for the whole (tables/names.py)
    levels: tuple[str, ...]  # "sex=Female", "sex=Female & age=old"; ("",) for the whole
    code: Codes  # (cells,)
    missing: NDArray[np.bool_]  # (levels,): the level stands for missing values
    columns: tuple[str, ...]  # the columns it is made of, () for the whole

    @property
    def single(self) -> bool:
        return len(self.columns) == 1


def whole(cube: Cube) -> Grouping:
    """Everyone, as a grouping with one level."""
    return Grouping("", ("",), np.zeros(cube.n_cells, np.int32), np.zeros(1, bool), ())


def grouping(cube: Cube, name: str) -> Grouping:
    """The grouping by one column, or by an intersection such as `sex*age`, by its name.

    Only combinations that occur become levels, so ten thousand values of two columns cost what
    they hold, not their product.
    """
    known = [column.name for column in cube.columns]
    parts = split_grouping(name)
    for part in parts:
        if part not in known:
            raise UnknownNameError("Group column", part, known)
    columns = [cube.column(part) for part in parts]
    folded = np.zeros(cube.n_cells, dtype=np.int64)
    for column in columns:
        folded = folded * len(column.values) + column.code
    present, code = np.unique(folded, return_inverse=True)
    texts: list[list[str]] = []
    missing = np.zeros(len(present), dtype=bool)
    rest = present.copy()
    for column in reversed(columns):
        rest, at = np.divmod(rest, len(column.values))
        texts.insert(0, [level_name(column.name, column.values[i]) for i in at])
        missing |= np.array([column.values[i] is None for i in at], dtype=bool)
    levels = tuple(AND.join(found) for found in zip(*texts, strict=True))
    return Grouping(grouping_name(parts), levels, code.reshape(-1).astype(np.int32), missing, parts)


def chosen_groupings(cube: Cube, asked: str | Sequence[str]) -> tuple[str, ...]:
    """The names of the groupings that a user asks of a cube."""
    known = [column.name for column in cube.columns]
    given = [asked] if isinstance(asked, str) else asked
    return tuple(
        grouping_name(grouping_columns(str(text), known, "--groups (groups=)")) for text in given
    )


def groupings(cube: Cube, names: Iterable[str]) -> tuple[Grouping, ...]:
    return tuple(grouping(cube, name) for name in dict.fromkeys(names))


def joint_slices(groupings: Sequence[Grouping]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The finest slices that all groupings make together.

    Returns the slice of every cell, and the level of every slice in each grouping, (slices, G).
    """
    joint = np.zeros(len(groupings[0].code), dtype=np.int64)
    first = np.zeros(1, dtype=np.intp)
    for one in groupings:
        key = joint * len(one.levels) + one.code
        _, first, joint = np.unique(key, return_index=True, return_inverse=True)
        joint = joint.reshape(-1).astype(np.int64)
    return joint, np.stack([one.code[first].astype(np.int64) for one in groupings], axis=1)


# Which of two classes is the positive one.

POSITIVE_NAMES = frozenset({"1", "true", "yes"})


def resolve_positive(classes: Sequence[str], positive: object = None) -> int | None:
    """Index of the positive class among canonical class names; None where there is none.

    Asked for by name it must exist. Otherwise it is the one of two classes that is called 1, true
    or yes; other binary labels have no positive class until one is named.

    >>> resolve_positive(("0", "1")), resolve_positive(("No", "Yes")), resolve_positive(("a", "b"))
    (1, 1, None)
    >>> resolve_positive(("cat", "dog"), "dog")
    1
    >>> resolve_positive(("cat", "dog", "emu")) is None
    True
    """
    if positive is not None:
        # A boolean is asked for as `true`, or as `1` where the labels are 0 and 1.
        texts = (canonical(positive), canonical(positive, truth_as_number=True))
        found = [text for text in texts if text in classes]
        if not found:
            raise UnknownNameError(
                "Positive class", str(positive), classes, remedy="Name one of the labels."
            )
        if len(classes) > 2:
            raise InputError(
                f"positive={positive!r} needs binary labels, but there are {len(classes)} classes; "
                "leave it out, or make the labels binary."
            )
        return list(classes).index(str(found[0])) if len(classes) == 2 else None
    if len(classes) != 2:
        return None
    matches = [i for i, name in enumerate(classes) if name.casefold() in POSITIVE_NAMES]
    return matches[0] if len(matches) == 1 else None
