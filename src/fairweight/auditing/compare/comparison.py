"""What is compared: one variant against the baseline, on one task, with the options that hold."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairweight.auditing.columns import DIVISORS
from fairweight.auditing.compare.retraining import retraining
from fairweight.auditing.counts.counts import Counts, sums
from fairweight.auditing.counts.cube import Cube, compact, summed, with_own_classes
from fairweight.auditing.counts.groupings import Grouping, groupings, whole
from fairweight.auditing.metrics.registry import Event
from fairweight.auditing.pairing import Pairing, Parents, pair_members
from fairweight.base.streams import stream
from fairweight.base.types import Floats
from fairweight.specs.audit import MARGIN, AuditOptions, Members
from fairweight.tables.names import level_name

if TYPE_CHECKING:
    from fairweight.auditing.compare.retraining import Retraining
    from fairweight.auditing.compare.simultaneous import FamilyDraws, Signs


# Paired counts of two models: on the same examples, where do their answers differ?


@dataclass(frozen=True)
class Pairs:
    """Counts of examples per slice and class, shape (S, C) unless said otherwise.

    `lost`: the baseline is right and the compressed model wrong, by label; `gained` the reverse.
    `fp_lost`: the baseline alone wrongly predicts the class; `fp_gained`: the compressed one alone.
    """

    label: Floats
    correct: tuple[Floats, Floats]  # baseline, compressed
    predicted: tuple[Floats, Floats]
    lost: Floats
    gained: Floats
    fp_lost: Floats
    fp_gained: Floats
    abstained: tuple[Floats, Floats]  # (S,)
    abstained_lost: Floats  # (S,): the baseline alone abstains
    abstained_gained: Floats  # (S,)

    @property
    def n(self) -> Floats:
        total: Floats = self.label.sum(axis=-1)
        return total


def pairs(cube: Cube, grouping: Grouping, baseline: int, compressed: int) -> Pairs:
    """Paired counts of two members in the slices of a grouping (unweighted examples)."""
    n_slices, n_classes = len(grouping.levels), len(cube.label_classes)
    slice_start = grouping.code.astype(np.int64) * n_classes
    label = cube.label
    first, second = cube.prediction[:, baseline], cube.prediction[:, compressed]

    def by_class(code: NDArray[np.int32], where: NDArray[np.bool_] | None = None) -> Floats:
        known = (code >= 0) & (code < n_classes)
        keep = known if where is None else known & where
        counted = sums((slice_start + code)[keep], cube.count[keep], n_slices * n_classes)
        return counted.reshape(n_slices, n_classes)

    def by_slice(where: NDArray[np.bool_]) -> Floats:
        return sums(grouping.code[where], cube.count[where], n_slices)

    right = (first == label, second == label)
    silent = (first < 0, second < 0)
    return Pairs(
        label=by_class(label),
        correct=(by_class(label, right[0]), by_class(label, right[1])),
        predicted=(by_class(first), by_class(second)),
        lost=by_class(label, right[0] & ~right[1]),
        gained=by_class(label, ~right[0] & right[1]),
        fp_lost=by_class(first, ~right[0] & (first != second)),
        fp_gained=by_class(second, ~right[1] & (first != second)),
        abstained=(by_slice(silent[0]), by_slice(silent[1])),
        abstained_lost=by_slice(silent[0] & ~silent[1]),
        abstained_gained=by_slice(~silent[0] & silent[1]),
    )


MIN_CLUSTERS = 20
TWO_CLUSTERS = "two cluster columns"  # why something is not estimable
MANY_CELLS = 5_000  # groups × classes above which rows by group are not bootstrapped
Options: TypeAlias = AuditOptions


@dataclass(frozen=True)
class Comparison:
    variant: str
    task: str | None
    cube: Cube  # baseline members first, then the variant's; one task
    n_baseline: int  # how many members are the baseline's
    positive: int | None
    whole: Grouping
    groupings: tuple[Grouping, ...]  # single columns and intersections
    options: Options
    stream: str | None = None  # comparisons with one stream share their random numbers
    parents: Parents = field(default_factory=dict)  # (variant, seed) → what it was derived from
    signs: Signs | None = None  # random signs of the whole audit
    divisors: tuple[int, ...] = DIVISORS  # the gate's levels at which limits are computed
    once: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def margin(self) -> float:
        """The loss that matters; NaN where an outcome has none."""
        if self.options.margin is not None:
            return self.options.margin
        outcome = self.cube.outcome
        return MARGIN if outcome is None or outcome.role.binary else math.nan

    @property
    def n_compressed(self) -> int:
        return len(self.cube.members) - self.n_baseline

    @property
    def one_pair(self) -> bool:
        return self.n_baseline == 1 and self.n_compressed == 1

    @cached_property
    def pairing(self) -> Pairing:
        """Which members belong together."""
        members, k = self.cube.members, self.n_baseline
        return pair_members(members[:k], members[k:], self.parents)

    @property
    def has_method(self) -> bool:
        """Whether there are members enough to speak of the method, not only of these models."""
        return not self.one_pair and self.no_method is None

    @property
    def no_method(self) -> str | None:
        """Why nothing is said about the method; None where something is."""
        return TWO_CLUSTERS if self.crossed else self.pairing.reason

    @property
    def crossed(self) -> bool:
        """Whether clusters of two columns bind examples: neither lies within the other."""
        return self.cube.second_unit is not None

    @cached_property
    def bindings(self) -> tuple[Comparison, ...]:
        """The same with one way of binding examples each: the first column, the second, both.

        Without a second column it is the comparison itself.
        """
        first, second = self.cube.unit, self.cube.second_unit
        if first is None or second is None:
            return (self,)
        size = len(self.cube.second_unit_names)
        pairs, both = np.unique(first * size + second, return_inverse=True)
        bare = replace(self.cube, second_unit=None, second_unit_names=())
        named = (
            (first, self.cube.unit_names),
            (second, self.cube.second_unit_names),
            (both.reshape(-1), tuple(map(str, range(len(pairs))))),
        )
        return tuple(
            replace(self, cube=replace(bare, unit=unit, unit_names=names)) for unit, names in named
        )

    @property
    def one_scope(self) -> bool:
        """Whether only these models are spoken of: one pair, or runs of one pair again."""
        return self.one_pair or self.options.members == Members.REPEATED

    @cached_property
    def unit_weights(self) -> tuple[Floats, Floats]:
        """How much each member of either side counts where units are averaged."""
        k = self.n_baseline
        return self.pairing.first.mean(axis=0)[:k], self.pairing.second.mean(axis=0)[k:]

    @property
    def all_alike(self) -> bool:
        """Whether averaging units counts every member alike."""
        return all(np.allclose(w, 1 / len(w)) for w in self.unit_weights)

    @cached_property
    def retraining(self) -> Retraining:
        """Draws of members for the context from retraining."""
        return retraining(self.pairing, self.n_baseline, self.n_compressed, self.rng("retraining"))

    def draws(self, kind: str) -> FamilyDraws | None:
        """Random signs of the family of classes, groups or intersections; None without them."""
        if self.signs is None or self.options.correction != "holm":
            return None
        return self.signs.families.get((self.variant, self.task, kind))

    @property
    def draws_some(self) -> bool:
        """Whether groups × classes are so many that rows by group are not bootstrapped."""
        cells = sum(len(g.levels) for g in self.groupings) * len(self.classes)
        return self.options.drawn_limits == "some" and cells > MANY_CELLS

    @property
    def closed_form(self) -> bool:
        """Whether examples are single yes-or-no trials: Wilson, Tango and McNemar apply."""
        return self.one_pair and self.one_each

    @property
    def one_each(self) -> bool:
        """Whether what is sampled are single examples of weight 1."""
        return self.cube.weight is None and self.cube.unit is None

    @property
    def clustered(self) -> bool:
        return self.cube.unit is not None

    @property
    def classes(self) -> tuple[str, ...]:
        return self.cube.label_classes

    @cached_property
    def pairs(self) -> dict[str, Pairs]:
        """Paired counts by the grouping's name, of the first members of both sides."""
        return {
            g.name: pairs(self.cube, g, 0, self.n_baseline) for g in (self.whole, *self.groupings)
        }

    @property
    def n_clusters(self) -> float:
        """Number of clusters; NaN without clusters. Of two columns that with fewer of them."""
        units = self.cube.unit, self.cube.second_unit
        if units[0] is None or not self.cube.unit_is_cluster:
            return np.nan
        return float(min(len(np.unique(unit)) for unit in units if unit is not None))

    def clusters_by_level(self, grouping: Grouping) -> NDArray[np.float64]:
        """Number of clusters in every level of a grouping; NaN without clusters.

        Of two cluster columns the smaller number.
        """
        units, size = (self.cube.unit, self.cube.second_unit), len(grouping.levels)
        if units[0] is None or not self.cube.unit_is_cluster:
            return np.full(size, np.nan)
        levels = [np.unique(u * size + grouping.code) % size for u in units if u is not None]
        numbers = [np.bincount(level, minlength=size) for level in levels]
        fewest: Floats = np.min(numbers, axis=0).astype(np.float64)
        return fewest

    def rng(self, purpose: str) -> np.random.Generator:
        """Random numbers of their own for each variant, task and purpose.

        They depend on names, not on order, so a variant's numbers are the same whichever other
        variants are audited beside it.
        """
        which = f"task {self.task or ''}" if self.stream is None else self.stream
        return stream(self.options.random_state, self.variant, which, purpose)

    def usable(self, grouping: Grouping) -> NDArray[np.bool_]:
        """Levels that enter gaps and families: large enough, and not the missing one."""
        n = sums(grouping.code, self.cube.count, len(grouping.levels))
        enough: NDArray[np.bool_] = (n >= self.options.min_group) & ~grouping.missing
        if self.cube.unit_is_cluster and self.cube.unit is not None:
            enough &= self.clusters_by_level(grouping) >= MIN_CLUSTERS
        return enough


def comparison(
    cube: Cube,
    *,
    baseline: str,
    variant: str,
    task: str | None,
    grouping_names: tuple[str, ...],
    positive: int | None,
    options: Options,
    keep_scores: bool = False,
    keep_units: bool = False,
    stream: str | None = None,
    parents: Parents | None = None,
    signs: Signs | None = None,
    divisors: tuple[int, ...] = DIVISORS,
) -> Comparison:
    """Project the cube on the members of two variants, and merge the cells that become equal.

    Within one task an example is one row again, so only clusters still bind rows together; with
    `keep_units` examples stay units, so that several tasks can be drawn together.
    """
    members = cube.member_indices(baseline) + cube.member_indices(variant)
    loose = task is not None and not cube.unit_is_cluster and not keep_units
    projected = cube.of_task(task)
    scores = projected.scores if keep_scores else None
    if scores is not None:
        scores = replace(
            scores,
            score=None if scores.score is None else scores.score[:, members],
            vector=None if scores.vector is None else scores.vector[:, members],
            rank=None if scores.rank is None else scores.rank[:, members],
        )
    outcome = None if projected.outcome is None else projected.outcome.of_members(members)
    if loose and outcome is not None and outcome.sums is not None and projected.unit is not None:
        outcome = replace(outcome, sums=outcome.sums.of_single_examples())
    projected = replace(
        projected,
        outcome=outcome,
        members=tuple(cube.members[m] for m in members),
        prediction=projected.prediction[:, members],
        scores=scores,
        unit=None if loose else projected.unit,
        unit_names=() if loose else projected.unit_names,
    )
    projected = with_own_classes(projected)
    # Of one pair sums are enough; populations keep their numbers.
    if outcome is not None and outcome.numerator is not None:
        projected = summed(projected, baseline)
    projected = compact(projected)
    return Comparison(
        variant=variant,
        task=task,
        cube=projected,
        n_baseline=len(cube.member_indices(baseline)),
        positive=positive,
        whole=whole(projected),
        groupings=groupings(projected, grouping_names),
        options=options,
        stream=stream,
        parents=parents or {},
        signs=signs,
        divisors=divisors,
    )


# Which rows of the results a table fills, and of which kind they are.

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
    """The rows of a kind that a grouping has: made once, so that every metric shares the names."""
    asked = "slots", grouping.name, kind
    if asked not in c.once:
        c.once[asked] = _new_slots(c, grouping, kind)
    made: Slots = c.once[asked]
    return made


def _new_slots(c: Comparison, grouping: Grouping, kind: str) -> Slots:
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


def all_slots(c: Comparison, kind: str) -> Slots:
    """The rows of a kind, of all groupings that have them."""
    return join_slots([slots_of(c, g, kind) for g in groupings_of(c, kind)], kind)


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
    if keep.all():
        return slots
    return Slots(
        slots.by,
        slots.kind,
        slots.group[keep],
        slots.cls[keep],
        slots.outside[keep],
        slots.clusters[keep],
    )


def join_slots(slots: Sequence[Slots], kind: str) -> Slots:
    if len(slots) == 1 and slots[0].kind == kind:
        return slots[0]
    return Slots(
        slots[0].by,
        kind,
        np.concatenate([s.group for s in slots]),
        np.concatenate([s.cls for s in slots]),
        np.concatenate([s.outside for s in slots]),
        np.concatenate([s.clusters for s in slots]),
    )


# What the training data say about labels and groups: signs, rarer values, shares.


@dataclass(frozen=True)
class TrainingCounts:
    """Counts of the training data: one row per (task, group values, label), with its `n`.

    Columns are `task`, `label`, `n` and one per group column, all canonical text.
    """

    table: pd.DataFrame

    def counts(self, c: Comparison, grouping: Grouping) -> Counts | None:
        """Label counts (L, C) in the levels of a grouping; None where the columns are absent."""
        rows = self.table
        if c.task is not None and "task" in rows:
            rows = rows[rows["task"] == c.task]
        names = grouping.columns
        if any(name not in rows for name in names) or rows.empty:
            return None
        if names:
            texts = [[level_name(name, value) for value in rows[name]] for name in names]
            level = [" & ".join(parts) for parts in zip(*texts, strict=True)]
        else:
            level = [""] * len(rows)
        levels = {name: i for i, name in enumerate(grouping.levels)}
        classes = {name: i for i, name in enumerate(c.classes)}
        label = np.zeros((len(levels), len(classes)))
        for name, cls, n in zip(level, rows["label"], rows["n"], strict=True):
            # Levels and classes that the test data do not have cannot be asked about.
            if name in levels and cls in classes:
                label[levels[name], classes[cls]] += float(n)
        zero = np.zeros_like(label)
        return Counts(label, zero, zero, zero[:, 0], c.classes, c.positive)


# Which examples count in which rows of a rate, and on which of them its event happens.

MOST_ENTRIES = 100_000_000  # rows × cells of a false-positive table that is still worth building
AT_ONCE = 8_000_000  # entries × members that are held in memory


@dataclass(frozen=True)
class Outcomes:
    """What ratios of sums are made of: entries, each a cell that counts in a row.

    A row's value is Σ weight × numerator / Σ weight × denominator over its examples. Of a
    yes-or-no event the numerator says whether it happens, and every example counts once; numbers
    (a loss, word errors per word) are floats, with a denominator where examples differ in size.
    """

    slots: Slots
    cells: NDArray[np.intp]
    row: NDArray[np.int64]
    numerator: NDArray[np.bool_] | Floats  # (entries, members), of one example of the cell
    partition: bool  # the rows share out the examples
    denominator: Floats | None = None  # (entries,); None: 1

    @property
    def n_rows(self) -> int:
        return len(self.slots)

    @property
    def is_event(self) -> bool:
        """Whether it is yes or no: Tango's limits apply."""
        return self.numerator.dtype == np.bool_ and self.denominator is None


def event_outcomes(c: Comparison, event: Event, kind: str) -> Iterator[Outcomes]:
    """All rows of a kind, in parts that fit into memory; nothing where the event has none."""
    cube, n_classes = c.cube, len(c.classes)
    everyone = np.arange(cube.n_cells)
    by_class = kind in ("class", "group*class")
    for grouping in groupings_of(c, kind):
        slots, level = slots_of(c, grouping, kind), grouping.code.astype(np.int64)
        if not by_class:
            cells = everyone
            if event.given != "all" or event.happens not in ("correct", "wrong", "abstained"):
                if c.positive is None:
                    continue
                if event.given == "label":
                    cells = np.flatnonzero(cube.label == c.positive)
                elif event.given == "not_label":
                    cells = np.flatnonzero(cube.label != c.positive)
            target = np.full(len(cells), -2 if c.positive is None else c.positive)
            yield Outcomes(slots, cells, level[cells], _happens(c, event, cells, target), True)
        elif event.happens in ("correct", "wrong"):
            row = level * n_classes + cube.label
            yield Outcomes(slots, everyone, row, _happens(c, event, everyone, cube.label), True)
        elif event.happens != "abstained" and not too_many_entries(c):
            # Every example counts in the rows of all (other) classes.
            of_class = np.tile(np.arange(n_classes), len(grouping.levels))
            together = max(1, AT_ONCE // max(1, cube.n_cells * len(cube.members)))
            for start in range(0, n_classes, together):
                chosen = np.arange(start, min(start + together, n_classes))
                every_cell = np.repeat(everyone, len(chosen))
                every_class = np.tile(chosen, cube.n_cells)
                if event.given == "not_label":
                    keep = cube.label[every_cell] != every_class
                    every_cell, every_class = every_cell[keep], every_class[keep]
                row = level[every_cell] * len(chosen) + (every_class - start)
                here = (of_class >= start) & (of_class < start + len(chosen))
                happens = _happens(c, event, every_cell, every_class)
                yield Outcomes(kept_slots(slots, here), every_cell, row, happens, False)


def cell_outcomes(
    c: Comparison,
    numerator: NDArray[np.bool_] | Floats,
    kind: str,
    denominator: Floats | None = None,
) -> Iterator[Outcomes]:
    """Rows of what is known per cell and member (such as: the prediction is uncertain)."""
    cells = np.arange(c.cube.n_cells)
    for grouping in groupings_of(c, kind):
        slots, row = slots_of(c, grouping, kind), grouping.code.astype(np.int64)
        yield Outcomes(slots, cells, row, numerator, True, denominator)


def too_many_entries(c: Comparison) -> bool:
    """Whether rates that count every example in every class's row are left out."""
    return c.cube.n_cells * len(c.classes) > MOST_ENTRIES


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
