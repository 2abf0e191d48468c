"""Splits by a seed: of single examples, or of whole groups (writers) that must stay together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fairweight.data.dataset import MISSING, Images, Whole
from fairweight.data.seeding import generator
from fairweight.errors import InputError, UnknownNameError


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

    Small cells, such as 30 of 10,000 examples, then have their share in each part.
    """
    if images.multi_label:
        raise InputError(
            f"Data set '{images.name}' has several labels, so its cells cannot be divided alike; "
            "read one label (its option label)."
        )
    cells = [images.labels.astype(str)]
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
    """Put each row into the split in whose part of [0, 1] its middle lies."""
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
