"""Which rows of the results a table fills, and of which kind they are."""

from __future__ import annotations

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
    nobody = np.full(len(levels), None, dtype=object)
    if kind == "overall":
        return Slots("overall", kind, nobody, nobody)
    if kind == "class":
        return Slots("class", kind, np.full(len(classes), None, dtype=object), classes)
    if kind == "group*class":
        return Slots(
            "group*class", kind, np.repeat(levels, len(classes)), np.tile(classes, len(levels))
        )
    return Slots("group", kind, levels, nobody)


def join_slots(slots: list[Slots], kind: str) -> Slots:
    def joined(parts: list[Names]) -> Names:
        return np.concatenate(parts) if parts else np.zeros(0, dtype=object)

    return Slots(
        slots[0].by, kind, joined([s.group for s in slots]), joined([s.cls for s in slots])
    )
