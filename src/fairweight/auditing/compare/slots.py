"""Which rows of the results a table fills, and of which kind they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.counts.groupings import Grouping

Names: TypeAlias = NDArray[np.object_]


@dataclass(frozen=True)
class Slots:
    """Which rows of the results a table fills: names of their group and class."""

    by: str
    kind: str  # overall, class, group, intersection, group*class: rows of one kind are a family
    group: Names
    cls: Names
    outside: NDArray[np.bool_]  # never in a family: the level stands for missing values
    clusters: NDArray[np.float64]  # clusters behind each row, NaN without clusters

    def __len__(self) -> int:
        return len(self.group)


def groupings_of(c: Comparison, kind: str) -> list[Grouping]:
    if kind in ("overall", "class"):
        return [c.whole]
    if kind == "group":
        return [g for g in c.groupings if g.single]
    if kind == "intersection":
        return [g for g in c.groupings if not g.single]
    return list(c.groupings)


def slots_of(c: Comparison, grouping: Grouping, kind: str) -> Slots:
    classes = np.array(c.classes, dtype=object)
    levels = np.array(grouping.levels, dtype=object)
    if kind == "class":
        return plain_slots(c, "class", kind, len(classes), cls=classes)
    if kind == "overall":
        return plain_slots(c, "overall", kind, len(levels))
    clusters = c.clusters_by_level(grouping)
    if kind == "group*class":
        size = len(classes)
        return Slots(
            kind,
            kind,
            np.repeat(levels, size),
            np.tile(classes, len(levels)),
            np.repeat(grouping.missing, size),
            np.repeat(clusters, size),
        )
    nobody = np.full(len(levels), None, dtype=object)
    return Slots("group", kind, levels, nobody, grouping.missing, clusters)


def plain_slots(
    c: Comparison,
    by: str,
    kind: str,
    size: int,
    *,
    group: Names | None = None,
    cls: Names | None = None,
) -> Slots:
    """Slots that all may belong to a family; names that are not given are empty."""
    empty = np.full(size, None, dtype=object)
    return Slots(
        by,
        kind,
        empty if group is None else group,
        empty if cls is None else cls,
        np.zeros(size, dtype=bool),
        np.full(size, c.n_clusters),
    )


def kept_slots(slots: Slots, keep: NDArray[np.bool_]) -> Slots:
    """The slots where `keep` is true."""
    return Slots(
        slots.by,
        slots.kind,
        slots.group[keep],
        slots.cls[keep],
        slots.outside[keep],
        slots.clusters[keep],
    )


def join_slots(slots: Sequence[Slots], kind: str) -> Slots:
    return Slots(
        slots[0].by,
        kind,
        np.concatenate([s.group for s in slots]),
        np.concatenate([s.cls for s in slots]),
        np.concatenate([s.outside for s in slots]),
        np.concatenate([s.clusters for s in slots]),
    )
