"""Answers that are replaced step by step: what every step does to accuracy and to groups.

Overrides (more and more examples by a budget) and cascades (by a threshold) are the same: each
example has a first step from which on its answer is another's. So all steps are counted at once,
as sums over steps, and one draw of examples serves all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fairweight.auditing.counts.counts import Counts
from fairweight.auditing.counts.cube import GroupColumn
from fairweight.auditing.intervals.bootstrap import Replicates, resampler
from fairweight.auditing.metrics.amplification import (
    Sides,
    bias_amplification,
    sides_of,
    worst_case,
)
from fairweight.auditing.metrics.harm import WORST_GROUP_SHIFT
from fairweight.auditing.prediction_matrix import Answer, Answers
from fairweight.base.streams import stream
from fairweight.base.types import Floats
from fairweight.tables.names import grouping_name

# Through which columns a curve looks at the examples, and which side of each is watched.


@dataclass(frozen=True)
class CurveLevels:
    """Everybody (without a name), or the levels of a column."""

    name: str | None
    code: NDArray[np.int64]  # (n,)
    levels: tuple[str | None, ...]
    judged: NDArray[np.bool_]  # (levels,) known and large enough
    sides: Sides | None  # of bias amplification; None where no identity is estimable


def columns_of(answers: Answers, min_group: int) -> tuple[CurveLevels, ...]:
    """Everybody, then every single column among the groupings."""
    nobody = np.zeros(answers.n_examples, dtype=np.int64)
    found = [CurveLevels(None, nobody, ("",), np.ones(1, dtype=np.bool_), None)]
    for column in answers.columns:
        if grouping_name([column.name]) not in answers.groupings:
            continue
        size = np.bincount(column.code, minlength=len(column.values))
        known = np.array([value is not None for value in column.values])
        found.append(
            CurveLevels(
                column.name,
                column.code.astype(np.int64),
                column.values,
                known & (size >= min_group),
                _sides(answers, column),
            )
        )
    return tuple(found)


def _sides(answers: Answers, column: GroupColumn) -> Sides | None:
    """Each level against the rest; the missing level takes no part."""
    if answers.positive is None:
        return None
    label = np.zeros((len(column.values), answers.n_label_classes))
    np.add.at(label, (column.code, answers.label), 1.0)
    known = np.array([value is not None for value in column.values])
    if known.sum() < 2:
        return None
    train = None
    table = answers.train
    if table is not None and column.name in table and not table.empty:
        train = np.zeros_like(label)
        level = {name: i for i, name in enumerate(column.values)}
        place = {name: i for i, name in enumerate(answers.classes[: answers.n_label_classes])}
        for value, cls, n in zip(table[column.name], table["label"], table["n"], strict=True):
            if value in level and cls in place:  # what the test data lack cannot be asked about
                train[level[value], place[cls]] += float(n)
    kept = sides_of(
        _labels(label[known], answers), None if train is None else _labels(train[known], answers)
    )
    if not kept.estimable.any():
        return None
    if known.all():
        return kept
    toward, estimable = np.zeros((2, len(known)), dtype=np.bool_)
    toward[known], estimable[known] = kept.toward, kept.estimable
    reasons = iter(kept.reason)
    return Sides(
        toward,
        estimable,
        tuple(next(reasons) if is_known else "missing" for is_known in known),
        kept.from_training,
    )


def _labels(label: Floats, answers: Answers) -> Counts:
    """Counts of labels alone, which sides are chosen by."""
    zero = np.zeros_like(label)
    classes = answers.classes[: answers.n_label_classes]
    return Counts(label, zero, zero, zero[:, 0], classes, answers.positive)


BATCH = 25
EVERYBODY = "everybody"
MOST_LEVELS = 64  # that columns may have together to be counted at once


@dataclass(frozen=True)
class Curve:
    """Values at every step: of the data in the first row, of draws of examples in the others."""

    accuracy: Floats  # (1 + draws, steps)
    amplification: dict[str, Floats]  # column → worst case over its levels, (1 + draws, steps)
    shifts: dict[str, Floats]  # column → against the reference, (1 + draws, steps, judged levels)


def draws_of_units(answers: Answers, n_boot: int, random_state: int) -> NDArray[Any]:
    """How often each unit is drawn, (units, 1 + draws); once each in the first column.

    Units are clusters, else examples. Draws depend on the number of units alone, so that tasks of
    the same examples share them.
    """
    units = answers.n_examples if answers.cluster is None else int(answers.cluster.max()) + 1
    draw = resampler(np.ones(units, dtype=np.int64))
    rng = stream(random_state, "replacing")
    exact = np.float32 if answers.weight is None and answers.n_examples < 2**24 else np.float64
    made = np.ones((units, 1 + n_boot), dtype=exact)
    for start in range(1, 1 + n_boot, BATCH):
        stop = min(start + BATCH, 1 + n_boot)
        made[:, start:stop] = draw(rng, stop - start).T
    return made


def stepwise(
    answers: Answers,
    columns: Sequence[CurveLevels],
    own: Answer,
    reference: Answer,
    others: Sequence[Answer],
    step: NDArray[np.integer[Any]],
    n_steps: int,
    drawn: NDArray[Any],
) -> list[tuple[Curve, Curve]]:
    """For each of `others`: the curve in the order given, and that of a random order.

    The random one is in expectation: at every step as large a share of all examples is replaced.

    Parameters
    ----------
    columns
        Of `columns_of`: everybody first.
    own, reference, others
        (n,) answers of the compressed model, of the dense one, and of what replaces the first.
    step
        (n,) the first step at which an example's answer is replaced; `n_steps`: at none.
    drawn
        Of `draws_of_units`.
    """
    kinds = _kinds(answers, own, reference, others)
    replaced = np.bincount(step, minlength=n_steps + 1)[:n_steps]
    shares = np.cumsum(replaced) / answers.n_examples
    tallies = _tallies(answers, columns, kinds, [step], n_steps, drawn)
    return [
        (
            _curve(answers, columns, [_sums(t, kinds, k, n_steps, None) for t in tallies]),
            _curve(answers, columns, [_sums(t, kinds, k, n_steps, shares) for t in tallies]),
        )
        for k in range(len(others))
    ]


def in_orders(
    answers: Answers,
    columns: Sequence[CurveLevels],
    own: Answer,
    reference: Answer,
    others: Sequence[Answer],
    steps: NDArray[np.int64],
    n_steps: int,
) -> list[Curve]:
    """For each of `others`, the data in several orders (orders, n): a row of the curve each."""
    kinds = _kinds(answers, own, reference, others)
    tallies = _tallies(answers, columns, kinds, list(steps), n_steps, None)
    return [
        _curve(answers, columns, [_sums(t, kinds, k, n_steps, None) for t in tallies])
        for k in range(len(others))
    ]


@dataclass(frozen=True)
class _Kinds:
    """Examples that count alike: the kind of each, and what is true of a kind, (kinds,)."""

    of: NDArray[np.int64]  # (n,)
    label_positive: Floats
    reference_right: Floats
    right: Floats  # (1 + others, kinds): the own answer first
    positive: Floats  # (1 + others, kinds)


@dataclass(frozen=True)
class _Sums:
    """Numbers of examples in the levels of a column."""

    n: Floats  # (levels, draws)
    reference_right: Floats  # (levels, draws)
    label_positive: Floats  # (levels, draws)
    right: Floats  # (levels, steps, draws)
    positive: Floats  # (levels, steps, draws)


def _kinds(answers: Answers, own: Answer, reference: Answer, others: Sequence[Answer]) -> _Kinds:
    """Group examples by what is true of their answers."""
    label, positive = answers.label, answers.positive
    given = [own, *others]
    facts = [reference == label, *(answer == label for answer in given)]
    if positive is not None:
        facts += [answer == positive for answer in (label, *given)]
    code = np.zeros(len(label), dtype=np.int64)
    for place, fact in enumerate(facts):
        code |= fact.astype(np.int64) << place
    used = np.flatnonzero(np.bincount(code))
    place_of = np.zeros(int(used[-1]) + 1, dtype=np.int64)
    place_of[used] = np.arange(len(used))
    of = place_of[code]
    held = np.array([used >> place & 1 for place in range(2 * len(given) + 2)], dtype=np.float64)
    k = 1 + len(given)
    return _Kinds(of, held[k], held[0], held[1:k], held[k + 1 :])


def _tallies(
    answers: Answers,
    columns: Sequence[CurveLevels],
    kinds: _Kinds,
    steps: Sequence[NDArray[np.integer[Any]]],
    n_steps: int,
    drawn: NDArray[Any] | None,
) -> list[Floats]:
    """For each column, numbers of examples (levels, steps + 1, kinds, draws).

    The draws of several orders stand side by side; without draws each order is one.
    """
    # Columns are counted together where together they have few levels.
    blocks: list[list[CurveLevels]] = [[]]
    together = 1
    for column in columns:
        if together * len(column.levels) > MOST_LEVELS and blocks[-1]:
            blocks.append([])
            together = 1
        blocks[-1].append(column)
        together *= len(column.levels)
    n = answers.n_examples
    unit = np.arange(n) if answers.cluster is None else answers.cluster
    found: list[Floats] = []
    for block in blocks:
        levels = tuple(len(column.levels) for column in block)
        shape = (*levels, n_steps + 1, kinds.right.shape[1])
        cells = int(np.prod(shape))
        where = np.zeros(len(kinds.of), dtype=np.int64)
        for column in block:
            where = where * len(column.levels) + column.code
        counted = []
        for step in steps:
            cell = (where * (n_steps + 1) + step) * shape[-1] + kinds.of
            if drawn is None:
                number = np.bincount(cell, answers.weight, minlength=cells)[:, None]
            else:
                weight = answers.weight
                weight = np.ones(n, dtype=drawn.dtype) if weight is None else weight
                number = csr_array((weight, (cell, unit)), shape=(cells, len(drawn))) @ drawn
            counted.append(np.asarray(number, dtype=np.float64))
        table = np.concatenate(counted, axis=1).reshape(*shape, -1)
        found += [
            table.sum(axis=tuple(other for other in range(len(block)) if other != place))
            for place in range(len(block))
        ]
    return found


def _sums(tally: Floats, kinds: _Kinds, number: int, n_steps: int, shares: Floats | None) -> _Sums:
    """Sums with the answers of one of the others, in order or (with shares) at random."""
    everyone = tally.sum(axis=1)  # (levels, kinds, draws)
    replaced = []
    for facts in (kinds.right, kinds.positive):
        start, gain = (facts[0] @ everyone)[:, None], facts[1 + number] - facts[0]
        if shares is not None:
            moved = shares[:, None] * (gain @ everyone)[:, None]
        else:
            moved = np.cumsum(gain @ tally[:, :n_steps], axis=1)
        replaced.append(np.asarray(start + moved))
    return _Sums(
        everyone.sum(axis=1),
        kinds.reference_right @ everyone,
        kinds.label_positive @ everyone,
        *replaced,
    )


def _curve(answers: Answers, columns: Sequence[CurveLevels], sums: Sequence[_Sums]) -> Curve:
    """Accuracy, amplification and shifts at every step from the sums of all columns."""
    whole = sums[0]
    amplification, shifts = {}, {}
    start = 1 if len(columns) > 1 else 0  # without columns, everybody is the one group
    for column, own in zip(columns[start:], sums[start:], strict=True):
        name = column.name or EVERYBODY
        with np.errstate(invalid="ignore", divide="ignore"):  # a level that a draw leaves out
            change = (own.right - own.reference_right[:, None]) / own.n[:, None]
        shifts[name] = change[column.judged].transpose(2, 1, 0)
        if column.sides is not None:
            assert answers.positive is not None
            predicted = np.zeros((*own.positive.shape[::-1], 2))  # (draws, steps, levels, classes)
            label, none = np.zeros_like(predicted), np.zeros_like(predicted)
            predicted[..., answers.positive] = own.positive.transpose(2, 1, 0)
            label[..., answers.positive] = own.label_positive.T[:, None]
            counts = Counts(
                label, predicted, none, none[..., 0], answers.classes[:2], answers.positive
            )
            amplified = bias_amplification(counts, column.sides)
            amplification[name] = np.asarray(worst_case(amplified, column.sides))
    return Curve((whole.right / whole.n[:, None])[0].T, amplification, shifts)


# Rows of a curve: value, change and interval at every step, for each metric and column.

UNSTABLE = 0.05  # undefined draws beyond which a number is not told


@dataclass(frozen=True)
class MetricCurve:
    """A metric at every step: of the data, and of draws, (1 + draws, steps)."""

    metric: str
    group: str | None  # the column
    values: Floats


@dataclass(frozen=True)
class Series(MetricCurve):
    """The same with its limits at every step, (steps,)."""

    low: Floats
    high: Floats


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean over members (or tasks) draw by draw.

    Of bias amplification over those in which it can be estimated, see `n_having`: attributes that
    lean to neither side of a column have none.
    """
    first = curves[0]
    amplified = [curve.amplification for curve in curves]
    return Curve(
        np.mean([c.accuracy for c in curves], axis=0),
        {
            name: np.mean([held[name] for held in amplified if name in held], axis=0)
            for name in dict.fromkeys(name for held in amplified for name in held)
        },
        {
            name: np.mean([c.shifts[name] for c in curves], axis=0)
            for name in first.shifts
            if all(c.shifts.get(name, first.shifts[name][:0]).shape == first.shifts[name].shape
                   for c in curves)
        },
    )  # fmt: skip


def n_having(curves: Sequence[Curve], metric: str, group: str | None) -> int:
    """Over how many of these curves their mean of a metric is."""
    if metric != "bias_amplification":
        return len(curves)
    return sum(group in curve.amplification for curve in curves)


def measured(curve: Curve) -> Iterator[MetricCurve]:
    """Accuracy, and bias amplification and worst-group shift by column."""
    yield MetricCurve("accuracy", None, curve.accuracy)
    for name, values in curve.amplification.items():
        yield MetricCurve("bias_amplification", name, values)
    for name, values in curve.shifts.items():
        if values.shape[-1]:
            yield MetricCurve(WORST_GROUP_SHIFT, name, values.min(axis=-1))


def series(curve: Curve, alpha: float) -> Iterator[Series]:
    """The same with limits; of the worst group, the least of all groups' simultaneous limits."""
    found = list(measured(curve))
    ends = limits_of_each([m.values for m in found if m.metric != WORST_GROUP_SHIFT], alpha)
    shifts = [values for values in curve.shifts.values() if values.shape[-1]]
    if shifts:  # column by column, each group's limits being those of as many as the column has
        groups = np.array([values.shape[-1] for values in shifts])
        together = np.concatenate(shifts, axis=-1)
        level = alpha / np.repeat(groups, groups)
        low, high = Replicates(together[1:]).simultaneous(together[0], level)
        starts = np.cumsum(groups)[:-1]
        lows, highs = (np.split(end, starts, axis=-1) for end in (low, high))
        ends += [(a.min(axis=-1), b.min(axis=-1)) for a, b in zip(lows, highs, strict=True)]
    for own, (low, high) in zip(found, ends, strict=True):
        yield Series(own.metric, own.group, own.values, low, high)


def limits_of_each(values: Sequence[Floats], alpha: float) -> list[tuple[Floats, Floats]]:
    """Limits of several metrics at every step, all sorted at once."""
    low, high = limits(np.stack(values, axis=1), alpha)
    return list(zip(low, high, strict=True))


def limits(values: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Percentile limits of every step; NaN where the draws say too little."""
    draws = Replicates(values[1:])
    low, high = draws.percentile(alpha)
    untold = draws.undefined > UNSTABLE
    return np.where(untold, np.nan, low), np.where(untold, np.nan, high)
