"""The count cube: how many examples share groups, label and the predictions of every member.

Sparse and additive. A cell is (task, groups, label, one prediction per member[, weight][, unit]
[, scores]) with the number of examples in it; there are never more cells than rows. Of outcomes
that are numbers a cell has sums in place of predictions. Cells stand in one canonical order, so the
same data give the same cube, and the same random draws, whatever file, chunk or row order they came
from.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.outcome_sums import OutcomeSums, terms_of
from fairweight.base.types import Floats
from fairweight.errors import InputError
from fairweight.tables.canonical import class_order
from fairweight.tables.spec import Better, OutcomeRole

if TYPE_CHECKING:
    from fairweight.tables.joins import LeftOutExamples


# Names of units (clusters, or examples with several tasks), and the order they stand in.

HEX = 24  # characters of a digest


def digest(name: str, key: str = "") -> str:
    """A name that tells units apart without telling who they are.

    >>> digest("Ann") == digest("Ann"), digest("Ann") == digest("Bob"), len(digest("Ann"))
    (True, False, 24)
    """
    secret = hashlib.blake2b(key.encode(), digest_size=32).digest()
    return hashlib.blake2b(name.encode(), digest_size=HEX // 2, key=secret).hexdigest()


def unit_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names in the order of their digests.

    A cube on disk holds digests, a cube in memory names; both must draw the same units first, so
    that an audit of either gives the same numbers.
    """
    is_digest = re.compile(f"[0-9a-f]{{{HEX}}}").fullmatch
    return tuple(sorted(set(names), key=lambda name: name if is_digest(name) else digest(name)))


Codes = NDArray[np.int32]


@dataclass(frozen=True)
class CubeMember:
    """One model: a variant and which member of its population."""

    variant: str
    seed: str = "0"


@dataclass(frozen=True)
class GroupColumn:
    """One metadata column: a code per cell into its values; None is the missing value."""

    name: str
    values: tuple[str | None, ...]
    code: Codes

    @staticmethod
    def of(name: str, values: Sequence[str | None], code: NDArray[np.integer]) -> GroupColumn:
        """From distinct values and a code per row: values in their order, the missing one last."""
        levels: tuple[str | None, ...] = class_order(v for v in values if v is not None)
        levels += (None,) if None in values else ()
        at = {value: i for i, value in enumerate(levels)}
        return GroupColumn(name, levels, np.array([at[v] for v in values], dtype=np.int32)[code])


@dataclass(frozen=True)
class Scores:
    """Probabilities of the members on each cell; NaN where there is none."""

    score: Floats | None  # (cells, members): of the positive class (binary) or the predicted one
    vector: Floats | None  # (cells, members, classes in the order of `vector_classes`)
    rank: Floats | None  # (cells, members): place of the true label, 1 = top
    vector_classes: tuple[str, ...] = ()
    bins: int | None = None  # scores were rounded to this many bins; None: exact


@dataclass(frozen=True)
class OutcomeCells:
    """Outcomes in the place of labels and predictions: what they are, and those of every cell.

    Outcomes that are 0 or 1 are predictions, and the better of the two is every label: there are
    no numbers. Else predictions are all the same, and cells either tell numerators and denominators
    apart, or hold sums over their examples (`summed`).
    """

    role: OutcomeRole
    numerator: Floats | None = None  # (cells, members), of one example
    denominator: Floats | None = None  # (cells, members); None: 1
    sums: OutcomeSums | None = None

    def select(self, keep: NDArray[np.bool_] | NDArray[np.intp]) -> OutcomeCells:
        """The cells where `keep` is true, or at its positions."""
        return OutcomeCells(
            self.role,
            None if self.numerator is None else self.numerator[keep],
            None if self.denominator is None else self.denominator[keep],
            None if self.sums is None else self.sums.select(keep),
        )

    def of_members(self, members: Sequence[int]) -> OutcomeCells:
        """The models at these places."""
        chosen = list(members)
        return OutcomeCells(
            self.role,
            None if self.numerator is None else self.numerator[:, chosen],
            None if self.denominator is None else self.denominator[:, chosen],
            None if self.sums is None else self.sums.of_members(chosen),
        )


@dataclass(frozen=True)
class Cube:
    members: tuple[CubeMember, ...]
    label_classes: tuple[str, ...]
    other_classes: tuple[str, ...]  # predicted, but no example has them as its label
    columns: tuple[GroupColumn, ...]
    tasks: tuple[str, ...]  # () where there is a single task
    label: Codes  # (cells,) into label_classes
    prediction: Codes  # (cells, members) into label_classes + other_classes; -1 is an abstention
    count: NDArray[np.int64]  # (cells,)
    n_examples: int
    task: Codes | None = None
    weight: Floats | None = None  # of each single example in the cell; beside sums their mean
    unit: NDArray[np.int64] | None = None  # cluster, or example where there are tasks
    unit_names: tuple[str, ...] = ()
    unit_is_cluster: bool = False
    scores: Scores | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)
    left_out: tuple[
        LeftOutExamples, ...
    ] = ()  # examples that are not in the cells, so that none can hide
    outcome: OutcomeCells | None = None  # None: classes
    labelled: bool = True  # else the label of every example is a constant that means nothing
    second_unit: NDArray[np.int64] | None = None  # of examples that clusters bind in two ways
    second_unit_names: tuple[str, ...] = ()

    @property
    def n_cells(self) -> int:
        return len(self.label)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.label_classes + self.other_classes

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes: neither the better outcome, nor a constant."""
        return self.outcome is None and self.labelled

    @property
    def amount(self) -> NDArray[Any]:
        """What all examples of a cell weigh together; their number where there are no weights."""
        return self.count if self.weight is None else self.count * self.weight

    def member_indices(self, variant: str) -> list[int]:
        return [i for i, member in enumerate(self.members) if member.variant == variant]

    def of_task(self, task: str | None) -> Cube:
        """The cells of one task, with the classes that are labels in it."""
        if task is None or self.task is None:
            return self
        keep = self.task == self.tasks.index(task)
        return with_own_classes(
            replace(
                select(self, keep),
                tasks=(),
                task=None,
            )
        )

    def column(self, name: str) -> GroupColumn:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


def select(cube: Cube, keep: NDArray[np.bool_] | NDArray[np.intp]) -> Cube:
    """The cells where `keep` is true, or at its positions; dictionaries stay as they are."""
    scores = cube.scores
    if scores is not None:
        scores = replace(
            scores,
            score=None if scores.score is None else scores.score[keep],
            vector=None if scores.vector is None else scores.vector[keep],
            rank=None if scores.rank is None else scores.rank[keep],
        )
    return replace(
        cube,
        outcome=None if cube.outcome is None else cube.outcome.select(keep),
        columns=tuple(replace(c, code=c.code[keep]) for c in cube.columns),
        label=cube.label[keep],
        prediction=cube.prediction[keep],
        count=cube.count[keep],
        task=None if cube.task is None else cube.task[keep],
        weight=None if cube.weight is None else cube.weight[keep],
        unit=None if cube.unit is None else cube.unit[keep],
        second_unit=None if cube.second_unit is None else cube.second_unit[keep],
        scores=scores,
    )


def with_own_classes(cube: Cube) -> Cube:
    """Rename codes so that exactly the classes that occur have a place, labels first."""
    used_labels = np.zeros(len(cube.classes), dtype=bool)
    used_labels[np.unique(cube.label)] = True
    used = used_labels.copy()
    seen = np.unique(cube.prediction)
    used[seen[seen >= 0]] = True
    names = np.array(cube.classes, dtype=object)
    labels = class_order(names[used_labels])
    others = class_order(names[used & ~used_labels])
    place = {name: i for i, name in enumerate(labels + others)}
    code = np.array([place.get(name, -1) for name in cube.classes] + [-1], dtype=np.int32)
    return replace(
        cube,
        label_classes=labels,
        other_classes=others,
        label=code[cube.label],
        prediction=code[cube.prediction],  # -1 looks up the last entry, which is -1
    )


def compact(cube: Cube) -> Cube:
    """Merge equal cells and put them into the canonical order.

    Keys are folded column by column into one integer, made dense again before it could overflow,
    so the cost is a few sorts of integers and no more memory than one column. Columns after the
    one that tells all cells apart (scores of many members) change neither cells nor order.
    """
    first, place = _different(cube)
    if len(first) == cube.n_cells:
        return select(cube, first)
    count = np.zeros(len(first), dtype=np.int64)
    np.add.at(count, place, cube.count)
    merged = replace(select(cube, first), count=count)
    if cube.outcome is None or cube.outcome.sums is None:
        return merged
    held = replace(cube.outcome, sums=cube.outcome.sums.merged(place, first))
    return replace(merged, outcome=held, weight=_mean_weight(cube, place, count))


def _mean_weight(
    cube: Cube, place: NDArray[np.integer[Any]], count: NDArray[np.int64]
) -> Floats | None:
    if cube.weight is None:
        return None
    return np.bincount(place, weights=cube.amount, minlength=len(count)) / np.maximum(count, 1)


def _different(cube: Cube) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first of all cells that are alike, in the canonical order, and which each cell is."""
    folded = np.zeros(cube.n_cells, dtype=np.int64)
    size = 1
    for key in _keys(cube):
        width = int(key.max()) + 1 if len(key) else 1
        if size > (2**62) // max(width, 1):
            # Codes 0..k-1 in the same order, so that the next key has room beside them.
            values, dense = np.unique(folded, return_inverse=True)
            folded, size = dense.reshape(-1).astype(np.int64), len(values)
            if size == cube.n_cells:
                break
        folded = folded * width + key
        size *= width
    _, first, place = np.unique(folded, return_index=True, return_inverse=True)
    return first, place.reshape(-1)


def _keys(cube: Cube) -> Iterator[NDArray[np.int64]]:
    """What tells cells apart, as codes from 0 on, column by column in the canonical order."""
    if cube.task is not None:
        yield cube.task.astype(np.int64)
    for column in cube.columns:
        yield column.code.astype(np.int64)
    yield cube.label.astype(np.int64)
    for prediction in cube.prediction.T:
        yield prediction.astype(np.int64) + 1
    for unit in (cube.unit, cube.second_unit):
        if unit is not None:
            yield unit.astype(np.int64)
    if cube.outcome is not None and cube.outcome.sums is not None:
        return  # nothing else tells cells of sums apart
    floats: list[Floats] = [] if cube.weight is None else [cube.weight]
    if cube.scores is not None:
        if cube.scores.score is not None:
            floats += list(cube.scores.score.T)
        if cube.scores.rank is not None:
            floats += list(cube.scores.rank.T)
        if cube.scores.vector is not None:
            floats += list(cube.scores.vector.reshape(cube.n_cells, -1).T)
    if cube.outcome is not None:
        held = (cube.outcome.numerator, cube.outcome.denominator)
        floats += [column for values in held if values is not None for column in values.T]
    for values in floats:
        yield np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def pair_values(
    cube: Cube, baseline: str, variant: str, *, weighted: bool = True
) -> tuple[Floats, Floats, Floats, Floats]:
    """Numerators and denominators of two models on every cell: means over their members.

    In the order num_b, num_c, den_b, den_c; of one example, times its weight.
    """
    assert cube.outcome is not None
    assert cube.outcome.numerator is not None
    weight = np.ones(cube.n_cells) if cube.weight is None or not weighted else cube.weight
    sides = [cube.member_indices(name) for name in (baseline, variant)]
    numerators = [cube.outcome.numerator[:, side].mean(axis=1) * weight for side in sides]
    sizes = cube.outcome.denominator
    denominators = [weight if sizes is None else sizes[:, side].mean(axis=1) * weight
                    for side in sides]  # fmt: skip
    return numerators[0], numerators[1], denominators[0], denominators[1]


def summed(cube: Cube, baseline: str) -> Cube:
    """The cube with sums in place of numbers: as many cells as groups (× clusters) at most.

    Cubes without numbers stay as they are. So do populations: how members vary needs the number of
    every member on every example. Examples with several tasks stay bound together.
    """
    held = cube.outcome
    names = [member.variant for member in cube.members]
    if held is None or held.numerator is None or len(set(names)) < len(names):
        return cube
    bound = cube.unit_is_cluster or cube.n_examples < cube.count.sum()
    unit = cube.unit if bound else None
    bare = replace(
        cube,
        weight=None,
        unit=unit,
        unit_names=cube.unit_names if bound else (),
        outcome=OutcomeCells(held.role),
    )
    first, place = _different(bare)
    first_model, count = names.index(baseline), cube.count.astype(np.float64)
    ones = np.ones(cube.n_cells)
    values = [
        (held.numerator[:, m], ones if held.denominator is None else held.denominator[:, m])
        for m in range(len(names))
    ]
    task = np.zeros(cube.n_cells, np.int64) if cube.task is None else cube.task
    above, below = (np.bincount(task, v * cube.amount) for v in values[first_model])
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.where(below > 0, above / below, 0.0)[task]
    differ = held.denominator is not None and bool(np.ptp(held.denominator, axis=1).any())
    shared = 3 if held.denominator is not None or cube.weight is not None else 2
    sums = OutcomeSums.of_values(
        baseline,
        values,
        first=first_model,
        higher=held.role.better == Better.HIGHER,
        terms=terms_of(4 if differ else shared, 3 if unit is None else 1),
        centre=centre,
        count=count,
        weight=cube.weight,
        place=place,
        size=len(first),
    )
    merged = sums.count.astype(np.int64)
    return replace(
        select(bare, first),
        count=merged,
        weight=_mean_weight(cube, place, merged),
        outcome=OutcomeCells(held.role, sums=sums),
    )


def of_positions(cube: Cube, name: str) -> Cube:
    """A cube whose labels are positions of answers: right or wrong, and the label as a group.

    An answer that was not given is not right.
    """
    if any(column.name == name for column in cube.columns):
        raise InputError(
            f"'{name}' is the label, whose positions become a group column of that name; leave it "
            "out of --groups (groups=)."
        )
    right = (cube.prediction == cube.label[:, None]).astype(np.int32)
    position = GroupColumn.of(name, cube.classes, cube.label)
    return compact(
        replace(
            cube,
            label_classes=("1",),
            other_classes=("0",),
            columns=(*cube.columns, position),
            label=np.zeros_like(cube.label),
            prediction=1 - right,
            scores=None,
            outcome=OutcomeCells(OutcomeRole("correct", Better.HIGHER, binary=True)),
        )
    )


def add(cubes: Sequence[Cube]) -> Cube:
    """One cube of several parts of the data; the parts must hold different examples."""
    return cubes[0] if len(cubes) == 1 else compact(side_by_side(cubes))


def side_by_side(cubes: Sequence[Cube]) -> Cube:
    """All cells of several cubes, equal ones too; dictionaries are merged by name."""
    first = cubes[0]
    sums = [c.outcome.sums for c in cubes if c.outcome is not None and c.outcome.sums is not None]
    if sums:  # cubes of numbers become sums as well
        cubes = [summed(cube, sums[0].baseline) for cube in cubes]
        first = cubes[0]
    for other in cubes[1:]:
        for what, mine, theirs in (
            ("members", first.members, other.members),
            ("group columns", [c.name for c in first.columns], [c.name for c in other.columns]),
            ("weights", first.weight is None, other.weight is None),
            ("clusters", first.unit is None, other.unit is None),
            ("second clusters", first.second_unit is None, other.second_unit is None),
            ("tasks", first.task is None, other.task is None),
            ("outcomes", _role(first), _role(other)),
        ):
            if mine != theirs:
                raise InputError(
                    f"These cubes cannot be added: their {what} differ ({mine} and {theirs}). "
                    "Count all parts with the same options."
                )
    labels = class_order(name for cube in cubes for name in cube.label_classes)
    others = class_order(
        name for cube in cubes for name in cube.other_classes if name not in set(labels)
    )
    tasks = class_order(name for cube in cubes for name in cube.tasks)
    unit_names = unit_order(name for cube in cubes for name in cube.unit_names)
    second_names = unit_order(name for cube in cubes for name in cube.second_unit_names)

    def recode(
        names: Sequence[str | None], to: dict[str | None, int], code: NDArray[np.integer]
    ) -> Codes:
        table = np.array([*(to[name] for name in names), -1], dtype=np.int32)
        recoded: Codes = table[code]
        return recoded

    columns = []
    for k, column in enumerate(first.columns):
        present = {v for cube in cubes for v in cube.columns[k].values}
        values: tuple[str | None, ...] = class_order(v for v in present if v is not None)
        if None in present:
            values += (None,)
        to = {value: i for i, value in enumerate(values)}
        code = np.concatenate([recode(c.columns[k].values, to, c.columns[k].code) for c in cubes])
        columns.append(GroupColumn(column.name, values, code))
    to_class: dict[str | None, int] = {name: i for i, name in enumerate(labels + others)}
    to_task: dict[str | None, int] = {name: i for i, name in enumerate(tasks)}
    to_unit: dict[str | None, int] = {name: i for i, name in enumerate(unit_names)}
    to_second: dict[str | None, int] = {name: i for i, name in enumerate(second_names)}
    return replace(
        first,
        label_classes=labels,
        other_classes=others,
        columns=tuple(columns),
        tasks=tasks,
        label=np.concatenate([recode(c.classes, to_class, c.label) for c in cubes]),
        prediction=np.concatenate([recode(c.classes, to_class, c.prediction) for c in cubes]),
        count=np.concatenate([c.count for c in cubes]),
        n_examples=sum(c.n_examples for c in cubes),
        task=None
        if first.task is None
        else np.concatenate([recode(c.tasks, to_task, _codes(c.task)) for c in cubes]),
        weight=None
        if first.weight is None
        else np.concatenate([c.weight for c in cubes if c.weight is not None]),
        unit=None
        if first.unit is None
        else np.concatenate([recode(c.unit_names, to_unit, _codes(c.unit)) for c in cubes]).astype(
            np.int64
        ),
        unit_names=unit_names,
        second_unit=None
        if first.second_unit is None
        else np.concatenate(
            [recode(c.second_unit_names, to_second, _codes(c.second_unit)) for c in cubes]
        ).astype(np.int64),
        second_unit_names=second_names,
        scores=None,
        outcome=_joined([c.outcome for c in cubes if c.outcome is not None]),
        notes=tuple(dict.fromkeys(note for c in cubes for note in c.notes)),
        left_out=tuple(part for c in cubes for part in c.left_out),
    )


def _role(cube: Cube) -> tuple[Any, ...] | None:
    """What must be the same of two cubes with outcomes."""
    if cube.outcome is None:
        return None
    role = cube.outcome.role
    return role.name, str(role.better), role.denominator, role.binary


def _joined(parts: Sequence[OutcomeCells]) -> OutcomeCells | None:
    if not parts:
        return None
    first = parts[0]
    shared = all(part.role.shared for part in parts)

    def stacked(name: str) -> Floats | None:
        if getattr(first, name) is None:
            return None
        return np.concatenate([getattr(part, name) for part in parts])

    sums = [part.sums for part in parts if part.sums is not None]
    return OutcomeCells(
        replace(first.role, shared=shared),
        stacked("numerator"),
        stacked("denominator"),
        OutcomeSums.joined(sums) if sums else None,
    )


def _codes(codes: NDArray[np.integer] | None) -> NDArray[np.integer]:
    assert codes is not None  # add() has checked that all cubes agree on it
    return codes
