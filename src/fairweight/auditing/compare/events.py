"""Which examples count in which rows of a rate, and on which of them its event happens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.slots import Slots, groupings_of, kept_slots, slots_of
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.metrics.registry import Event

MOST_ENTRIES = 100_000_000  # rows × cells of a false-positive table that is still worth building
AT_ONCE = 8_000_000  # entries × members that are held in memory


@dataclass(frozen=True)
class EventRows:
    """Entries (a cell that counts in a row) of some rows, with the event per entry and member."""

    slots: Slots
    cells: NDArray[np.intp]
    row: NDArray[np.int64]
    happens: NDArray[np.bool_]  # (entries, members)
    partition: bool  # the rows share out the examples

    @property
    def n_rows(self) -> int:
        return len(self.slots)


def event_rows(c: Comparison, event: Event, kind: str) -> Iterator[EventRows]:
    """All rows of a kind, in parts that fit into memory; nothing where the event has none."""
    for grouping in groupings_of(c, kind):
        if kind in ("class", "group*class"):
            yield from _by_class(c, grouping, event, kind)
        else:
            yield from _by_level(c, grouping, event, kind)


def flag_rows(c: Comparison, flags: NDArray[np.bool_], kind: str) -> Iterator[EventRows]:
    """Rows of a flag per cell and member (such as: the prediction is uncertain)."""
    cells = np.arange(c.cube.n_cells)
    for grouping in groupings_of(c, kind):
        slots = slots_of(c, grouping, kind)
        yield EventRows(slots, cells, grouping.code.astype(np.int64), flags, True)


def too_many_entries(c: Comparison) -> bool:
    """Whether rates that count every example in every class's row are left out."""
    return c.cube.n_cells * len(c.classes) > MOST_ENTRIES


def _by_level(c: Comparison, grouping: Grouping, event: Event, kind: str) -> Iterator[EventRows]:
    cube = c.cube
    cells = np.arange(cube.n_cells)
    of_everyone = event.given == "all" and event.happens in ("correct", "wrong", "abstained")
    if not of_everyone:
        if c.positive is None:
            return
        if event.given == "label":
            cells = np.flatnonzero(cube.label == c.positive)
        elif event.given == "not_label":
            cells = np.flatnonzero(cube.label != c.positive)
    row = grouping.code[cells].astype(np.int64)
    target = np.full(len(cells), -2 if c.positive is None else c.positive)
    yield EventRows(
        slots_of(c, grouping, kind), cells, row, _happens(c, event, cells, target), True
    )


def _by_class(c: Comparison, grouping: Grouping, event: Event, kind: str) -> Iterator[EventRows]:
    cube, n_classes = c.cube, len(c.classes)
    cells = np.arange(cube.n_cells)
    level = grouping.code.astype(np.int64)
    slots = slots_of(c, grouping, kind)
    if event.happens in ("correct", "wrong"):
        row = level * n_classes + cube.label
        yield EventRows(slots, cells, row, _happens(c, event, cells, cube.label), True)
        return
    if event.happens == "abstained" or too_many_entries(c):
        return
    of_class = np.tile(np.arange(n_classes), len(grouping.levels))
    together = max(1, AT_ONCE // max(1, cube.n_cells * len(cube.members)))
    for start in range(0, n_classes, together):
        chosen = np.arange(start, min(start + together, n_classes))
        every_cell = np.repeat(cells, len(chosen))
        every_class = np.tile(chosen, cube.n_cells)
        if event.given == "not_label":
            keep = cube.label[every_cell] != every_class
            every_cell, every_class = every_cell[keep], every_class[keep]
        row = level[every_cell] * len(chosen) + (every_class - start)
        here = (of_class >= start) & (of_class < start + len(chosen))
        happens = _happens(c, event, every_cell, every_class)
        yield EventRows(kept_slots(slots, here), every_cell, row, happens, False)


def _happens(
    c: Comparison, event: Event, cells: NDArray[np.intp], target: NDArray[np.integer]
) -> NDArray[np.bool_]:
    """Whether the event happens, per entry and member; `target` is the class of the row."""
    everyone = len(cells) == c.cube.n_cells and bool((cells == np.arange(len(cells))).all())
    prediction = c.cube.prediction if everyone else c.cube.prediction[cells]
    if event.happens == "abstained":
        return prediction < 0
    if event.happens == "predicted":
        return np.asarray(prediction == target[:, None])
    right = prediction == c.cube.label[cells][:, None]
    return np.asarray(~right if event.happens == "wrong" else right)
