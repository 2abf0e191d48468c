"""What single examples add to a value: its variance, and how many of them a change rests on.

Percentile limits cover too little where few predictions changed: the next changed prediction is
not among those that are drawn again. So every row has the number of its changed predictions, k, and
below `FEWEST` it has no limits. k = (Σu²)² / Σu⁴ over examples (clusters: over clusters), u being
what an example adds to the change: k equal changes count k, and where a few of them outweigh the
others, only these count. A mean over classes also counts in units of its rarest class, k = Σu² /
the square of what a usual change adds there: ten changed negatives say nothing about eight
positives. An excess counts in units of the smaller of a group and all others likewise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.counts.counts import ratio, sums
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.metrics.registry import Event
from fairweight.base.types import Floats

FEWEST = 10  # changes below which there are no limits
FEWEST_WRONG = 3  # wrong predictions below which one side's value has none
FEWEST_OF_CLUSTERS = 0.2  # share of the clusters that sums over them must count as
ROUNDING = 1e-12

Part: TypeAlias = Literal["change", "excess", "baseline", "compressed"]
PARTS: tuple[Part, ...] = ("change", "excess", "baseline", "compressed")


@dataclass(frozen=True)
class Changed:
    """How many examples each row rests on: its change, its excess, and the value of either side."""

    table: Floats  # (PARTS, 3: examples that changed, Σu², Σu⁴; rows), NaN where nothing is asked
    least: Floats  # (2: change, either side; rows): how many they must count as

    def examples(self) -> Floats:
        """Examples on which anything changed that enters the row."""
        counted: Floats = self.table[0, 0]
        return counted

    def number(self, part: Part) -> Floats:
        """What these changes count as; NaN where it does not matter.

        >>> table = np.array([[[4, 4], [4, 103], [4, 10_003]]])  # u = 1, 1, 1, 1; u = 10, 1, 1, 1
        >>> Changed(table, np.full((2, 2), FEWEST)).number("change").round(2).tolist()
        [4.0, 1.06]
        """
        _, square, fourth = self.table[PARTS.index(part)]
        found = np.where(square > 0, ratio(square**2, fourth), square)
        # Equal changes count what they are, whatever rounding says.
        whole = np.round(found)
        return np.where(np.abs(found - whole) < 1e-6 * np.maximum(whole, 1), whole, found)

    def enough(self, part: Part) -> NDArray[np.bool_]:
        """Whether there may be limits of this part."""
        few: NDArray[np.bool_] = self.number(part) < self.least[int(part in PARTS[2:])]
        return ~few

    def reasons(self) -> NDArray[np.object_]:
        """Why a row's change has no limits; None where it may have some."""
        examples, number = self.examples(), self.number("change")
        found = np.full(len(examples), None, dtype=object)
        for i in np.flatnonzero(~self.enough("change")):
            k = int(examples[i])
            few = f"too few changed predictions ({k})"
            found[i] = few if k < FEWEST else f"{k} changed predictions count as {int(number[i])}"
        return found

    def rows(self, keep: NDArray[np.bool_]) -> Changed:
        """Some of the rows."""
        return Changed(self.table[:, :, keep], self.least[:, keep])

    def of_the_change_alone(self) -> Changed:
        """The same where a side's value does not rest on what it gets wrong."""
        table = self.table.copy()
        table[[PARTS.index("baseline"), PARTS.index("compressed")]] = np.nan
        return Changed(table, self.least)

    @staticmethod
    def beside(parts: Sequence[Changed]) -> Changed:
        """The rows of several tables as one."""
        return Changed(
            np.concatenate([p.table for p in parts], axis=2),
            np.concatenate([p.least for p in parts], axis=1),
        )

    @staticmethod
    def added(
        parts: Sequence[Changed],
        at: Sequence[NDArray[np.intp]],
        uses: Sequence[NDArray[np.bool_]],
        n_rows: int,
    ) -> Changed:
        """Of a mean over tasks: row `at[i]` of it holds row i of a task where `uses[i]`."""
        total, least = np.zeros((len(PARTS), 3, n_rows)), np.zeros((2, n_rows))
        for part, where, use in zip(parts, at, uses, strict=True):
            total[:, :, where[use]] += part.table[:, :, use]
            least[:, where[use]] = np.maximum(least[:, where[use]], part.least[:, use])
        return Changed(total, least)


def _sums(
    c: Comparison,
    cells: NDArray[np.intp],
    row: NDArray[np.int64],
    n_rows: int,
    amounts: Floats,
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Amounts (entries, columns) summed over each cluster's examples; how many units are alike."""
    copies = c.cube.count[cells].astype(float)
    if c.cube.unit is None:
        return row, amounts, copies
    key, place = np.unique(c.cube.unit[cells] * n_rows + row, return_inverse=True)
    summed = coo_array(
        (copies, (place.reshape(-1), np.arange(len(copies)))), shape=(len(key), len(copies))
    ).tocsr()
    return key % n_rows, np.asarray(summed @ amounts), np.ones(len(key))


@dataclass(frozen=True)
class Influence:
    """Every unit's part in the values of a row, per member: they sum to 0 over the row.

    An entry is an example (or what a cluster's examples add up to) in a row; its value is what the
    member's value moves by when it counts once more, to first order.
    """

    row: NDArray[np.int64]
    value: Floats  # (entries, members)
    copies: Floats
    n_rows: int
    clustered: bool = False

    @staticmethod
    def of(c: Comparison, row: NDArray[np.int64], n_rows: int, gaps: Iterable[Floats]) -> Influence:
        """From every member's gaps, (cells,): an example's own value less that of its row."""
        weight = np.ones(c.cube.n_cells) if c.cube.weight is None else c.cube.weight
        size = sums(row, weight * c.cube.count, n_rows)
        share = ratio(weight, size[row])
        value = np.stack([np.where(np.abs(gap) < ROUNDING, 0.0, gap) * share for gap in gaps]).T
        row, value, copies = _sums(c, np.arange(c.cube.n_cells), row, n_rows, value)
        return Influence(row, value, copies, n_rows, c.cube.unit_is_cluster)

    @staticmethod
    def beside(parts: Sequence[Influence]) -> Influence:
        """The rows of several tables as one."""
        starts = np.cumsum([0, *(p.n_rows for p in parts)])
        return Influence(
            np.concatenate([p.row + start for p, start in zip(parts, starts, strict=False)]),
            np.concatenate([p.value for p in parts]),
            np.concatenate([p.copies for p in parts]),
            int(starts[-1]),
            parts[0].clustered,
        )

    def squares(self, weights: Floats) -> tuple[Floats, Floats]:
        """Σ over units of (Σ over members of weight × value)², and of its square, (rows,) each."""
        square = (self.value @ weights) ** 2
        return (
            sums(self.row, self.copies * square, self.n_rows),
            sums(self.row, self.copies * square**2, self.n_rows),
        )

    @property
    def units(self) -> Floats:
        return sums(self.row, self.copies, self.n_rows)

    def variance(self, weights: Floats) -> Floats:
        """Of the members' values weighted so: G / (G − 1) Σ over G units; NaN below two."""
        units = self.units
        return ratio(units, units - 1) * self.squares(weights)[0]

    def changed(self, first: Floats, second: Floats, examples: Floats) -> Changed:
        """How many units the change and either side's mean over members rest on."""
        nobody = np.zeros_like
        sides: dict[Part, Floats] = {
            "change": np.concatenate([-first, second]),
            "baseline": np.concatenate([first, nobody(second)]),
            "compressed": np.concatenate([nobody(first), second]),
        }
        table = np.full((len(PARTS), 3, self.n_rows), np.nan)
        for part, weights in sides.items():
            table[PARTS.index(part)] = examples, *self.squares(weights)
        least = np.full((2, self.n_rows), float(FEWEST))
        if self.clustered:  # sums over clusters are nearly normal: G of them count as G / 3
            least = np.minimum(least, self.units * FEWEST_OF_CLUSTERS)
        return Changed(table, least)


# -- predictions that changed ------------------------------------------------------------------


@dataclass(frozen=True)
class _Entries:
    """Examples (cells) that may enter a row, the class they enter with, and what changed there."""

    cells: NDArray[np.intp]
    target: NDArray[np.int64]
    amounts: Floats  # (entries, 3): how far the two sides differ, how often either is wrong


def changed_predictions(
    c: Comparison,
    event: Event | None,
    chosen: Sequence[Grouping],
    *,
    by_class: bool = False,
    mean: bool = False,
) -> Changed:
    """How many predictions changed that enter a metric, in the levels of some groupings.

    Parameters
    ----------
    event
        What the metric counts; None: every prediction enters it.
    by_class
        The rows are the classes, not the levels.
    mean
        The metric is a mean over classes; else an event of a class is that of the positive one.

    Notes
    -----
    An example counts by how far the shares of members that make the prediction differ between the
    two sides: 1 for two models that differ. Each example's part is weighted, and divided by the
    size of its row (and class), so that rows of several tasks can be added up.
    """
    of_class = _of_a_class(event)
    positive = of_class and not by_class and not mean and c.positive is not None
    strata = len(c.classes) if of_class and mean else 1
    tables = []
    for grouping in chosen:  # several metrics ask for the same
        asked = "changed predictions", event, grouping.name, by_class, positive, strata
        if asked not in c.once:
            if ("entries", event) not in c.once:
                c.once["entries", event] = _new_entries(c, event)
            found: _Entries = c.once["entries", event]
            if positive:
                keep = found.target == c.positive
                found = _Entries(found.cells[keep], found.target[keep], found.amounts[keep])
            level = found.target if by_class else grouping.code[found.cells].astype(np.int64)
            stratum = found.target if strata > 1 else np.zeros(len(level), dtype=np.int64)
            weight = _stratum_sizes(c, event, grouping, strata, by_class=by_class)
            c.once[asked] = _counted(c, found, level, stratum, weight)
        tables.append(c.once[asked])
    table = np.concatenate(tables, axis=2)
    return Changed(table, np.full((2, table.shape[2]), [[FEWEST], [FEWEST_WRONG]], dtype=float))


def _new_entries(c: Comparison, event: Event | None) -> _Entries:
    cube, k = c.cube, c.n_baseline
    cells, label = np.arange(cube.n_cells), cube.label.astype(np.int64)
    side = np.concatenate([np.full(k, -1.0 / k), np.full(c.n_compressed, 1.0 / c.n_compressed)])
    wrong = cube.prediction != cube.label[:, None]

    def of_members(happens: NDArray[np.bool_]) -> Floats:
        either = np.abs(happens @ side), happens[:, :k].mean(axis=1), happens[:, k:].mean(axis=1)
        return np.stack(either, axis=1)

    if event is not None and event.happens in ("correct", "wrong", "abstained"):
        happens = cube.prediction < 0 if event.happens == "abstained" else wrong
        return _Entries(cells, label, of_members(happens))
    # Every (cell, prediction) that some member makes; an abstention is one prediction more.
    classes = len(cube.classes) + 1
    made = cells[:, None] * classes + cube.prediction % classes
    key, place = np.unique(made, return_inverse=True)
    place = place.reshape(-1)

    def summed(weights: Floats) -> Floats:
        return sums(place, np.broadcast_to(weights, made.shape).reshape(-1), len(key))

    cell, target = key // classes, key % classes
    moved = np.abs(summed(side))
    if event is None:
        changed = sums(cell, moved, cube.n_cells) / 2
        return _Entries(cells, label, np.column_stack([changed, of_members(wrong)[:, 1:]]))
    false = np.abs(side) * wrong
    amounts = np.stack([moved, summed(false * (side < 0)), summed(false * (side > 0))], axis=1)
    keep = target < len(c.classes)
    if event.given == "not_label":
        keep &= target != label[cell]
    return _Entries(cell[keep], target[keep], amounts[keep])


def _stratum_sizes(
    c: Comparison, event: Event | None, grouping: Grouping, strata: int, *, by_class: bool
) -> Floats:
    """Weight of the examples that a row is a share of, (levels, strata)."""
    cube, n_classes = c.cube, len(c.classes)
    levels, code = len(grouping.levels), grouping.code.astype(np.int64)
    amount = cube.amount
    everyone = sums(code, amount, levels)[:, None]
    if event is not None and event.happens == "predicted" and event.given == "all":
        size = np.zeros((levels, n_classes))
        for prediction in cube.prediction.T:
            known = (prediction >= 0) & (prediction < n_classes)
            key = code[known] * n_classes + prediction[known]
            size += sums(key, amount[known], levels * n_classes).reshape(levels, n_classes)
        size /= len(cube.members)
    elif event is None or event.given == "all":
        size = np.repeat(everyone, n_classes, axis=1)
    else:
        label = sums(code * n_classes + cube.label, amount, levels * n_classes)
        own = label.reshape(levels, n_classes)
        size = everyone - own if event.given == "not_label" else own
    if by_class:
        total: Floats = size.sum(axis=0)[:, None]
        return total
    if strata > 1:
        return size
    if c.positive is None or not _of_a_class(event):
        return everyone
    return size[:, [c.positive]]


def _of_a_class(event: Event | None) -> bool:
    """Whether an event is that of one class, not of every example."""
    return event is not None and (event.given != "all" or event.happens == "predicted")


def _counted(
    c: Comparison,
    found: _Entries,
    level: NDArray[np.int64],
    stratum: NDArray[np.int64],
    weight: Floats,
) -> Floats:
    """The table of `Changed` of one partition into levels; `weight` is (levels, strata)."""
    levels, strata = weight.shape
    amounts = np.where(found.amounts < ROUNDING, 0.0, found.amounts)
    # An example that leaves one class for another is one change.
    _, first = np.unique(
        np.where(amounts[:, 0] > 0, found.cells * levels + level, -1), return_index=True
    )
    first = first[amounts[first, 0] > 0]
    examples = sums(level[first], c.cube.count[found.cells[first]], levels)
    if c.cube.weight is not None:
        amounts = amounts * c.cube.weight[found.cells][:, None]
    row, amounts, copies = _sums(c, found.cells, level * strata + stratum, levels * strata, amounts)
    table = np.full((len(PARTS), 3, levels), np.nan)
    parts: tuple[Part, ...] = ("change", "baseline", "compressed")
    for column, part in enumerate(parts):
        square, fourth = (
            sums(row, copies * amounts[:, column] ** power, levels * strata).reshape(levels, strata)
            for power in (2, 4)
        )
        usual = ratio(fourth.sum(), square.sum())  # the square of a change as large as they are
        own = _powers(square, fourth, weight)
        largest = usual * ratio(np.ones_like(weight), weight) ** 2
        if strata == 1:
            table[PARTS.index(part)] = examples, *own
        else:
            table[PARTS.index(part)] = examples, *_limited(own, largest)
        if part == "change" and levels > 1:
            others = weight.sum(axis=0) - weight
            rest = _powers(square.sum(axis=0) - square, fourth.sum(axis=0) - fourth, others)
            both = np.concatenate(
                [largest, usual * ratio(np.ones_like(others), others) ** 2], axis=1
            )
            together = own[0] + rest[0], own[1] + rest[1]
            table[PARTS.index("excess")] = examples, *_limited(together, both)
    return table


def _powers(square: Floats, fourth: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Σu² and Σu⁴ over strata, from sums of squares and fourth powers before division."""
    return (
        np.nansum(ratio(np.maximum(square, 0), weight**2), axis=1),
        np.nansum(ratio(np.maximum(fourth, 0), weight**4), axis=1),
    )


def _limited(powers: tuple[Floats, Floats], largest: Floats) -> tuple[Floats, Floats]:
    """The same, such that they count no more than Σu² in units of the largest usual u²."""
    most = np.nanmax(np.where(np.isnan(largest), 0.0, largest), axis=1)
    return powers[0], np.maximum(powers[1], powers[0] * most)
