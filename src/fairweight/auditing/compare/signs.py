"""Random signs: how far chance moves the scores of examples.

Under "every group has the shift of all", the score of an example is as likely positive as negative
once it is centred at that shift. A draw gives every example (or cluster) one random sign, the same
for all groups, columns, tasks and variants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fairweight.auditing.counts.counts import sums
from fairweight.auditing.counts.cube import Cube, pair_values
from fairweight.auditing.counts.groupings import Grouping, groupings
from fairweight.auditing.counts.outcome_sums import NORMAL_FROM, OutcomeSums
from fairweight.auditing.intervals.excess import normal_z
from fairweight.auditing.intervals.ratio import RatioSums
from fairweight.base.types import Floats

N_DRAWS = 4_000
AT_ONCE = (16, 400)  # draws made together: few enough that they stay in the processor's cache
CACHE = 800_000  # numbers


@dataclass(frozen=True)
class SignedUnits:
    """What gets a sign: cells of equal examples, or clusters (an example with all its tasks).

    An entry is a unit's part in one cell of task, groups, label and changes.
    """

    tasks: tuple[str | None, ...]
    classes: tuple[tuple[int, ...], ...]  # by task: codes of the classes, in the order of its rows
    groupings: tuple[Grouping, ...]  # codes by entry
    task: NDArray[np.intp]
    label: NDArray[np.intp]
    x: Floats  # (entries, variants); of numbers: change / amount, where there is an amount
    change: Floats  # (entries, variants): what goes with one sign
    change_total: Floats  # (entries, variants): of all examples of the entry
    count: Floats  # examples
    total: Floats  # their weight
    amount: Floats  # weight that goes with one sign
    unit: NDArray[np.int64]
    copies: NDArray[np.int64]  # (units,): signs that are summed; 0: a normal number
    number: Floats  # (units,): examples or clusters that it stands for
    variance: Floats  # (units,): of that sum
    clustered: bool

    def draws(
        self, rng: np.random.Generator, normal_rng: np.random.Generator | None = None
    ) -> Iterator[NDArray[np.float32]]:
        """Sums of signs, (units, draws), N_DRAWS in all; `normal_rng` draws the normal ones."""
        size = len(self.copies)
        together = int(np.clip(CACHE // max(size, 1), *AT_ONCE)) // 8 * 8
        single = np.flatnonzero(self.copies == 1)
        several = np.flatnonzero((self.copies > 1) & (self.copies <= 64))
        many = np.flatnonzero(self.copies > 64)
        normal = np.flatnonzero(self.copies == 0)
        mask = np.uint64(2**64 - 1) >> (64 - self.copies[several]).astype(np.uint64)
        # Small numbers are put in order before they become floats: four times fewer bytes.
        place = np.zeros(size, dtype=np.intp)
        place[np.concatenate([single, several])] = np.arange(len(single) + len(several))
        copies = self.copies.astype(np.float32)[:, None]
        for start in range(0, N_DRAWS, together):
            n = min(together, N_DRAWS - start)
            made = np.empty((size, n), dtype=np.float32)
            heads = []
            if len(single):
                raw = np.frombuffer(rng.bytes(len(single) * -(-n // 8)), dtype=np.uint8)
                heads.append(np.unpackbits(raw.reshape(len(single), -1), axis=1, count=n))
            if len(several):
                words = rng.integers(0, 2**64, size=(len(several), n), dtype=np.uint64)
                heads.append(np.bitwise_count(words & mask[:, None]))
            if heads:
                made[:] = np.concatenate(heads).take(place, axis=0)
                made *= 2
                made -= copies
            if len(many):
                number = self.copies[many][:, None]
                made[many] = 2 * rng.binomial(number, 0.5, size=(len(many), n)) - number
            if len(normal):
                spread = np.sqrt(self.variance[normal]).astype(np.float32)[:, None]
                source = rng if normal_rng is None else normal_rng
                made[normal] = spread * source.standard_normal((len(normal), n), dtype=np.float32)
            yield made


def units_of(
    cube: Cube, baseline: str, variants: Sequence[str], grouping_names: Sequence[str]
) -> SignedUnits:
    """Units and entries of a cube; examples with the same score everywhere are one entry."""
    right = cube.prediction == cube.label[:, None]
    members = {name: cube.member_indices(name) for name in (baseline, *variants)}
    n_base = len(members[baseline])
    before = right[:, members[baseline]].sum(axis=1, dtype=np.int64)
    # Whole numbers, so that equal examples are found to be equal.
    steps = np.stack(
        [
            right[:, members[v]].sum(axis=1, dtype=np.int64) * n_base - before * len(members[v])
            for v in variants
        ],
        axis=1,
    )
    scale = np.array([len(members[v]) * n_base for v in variants], dtype=np.float64)
    found = groupings(cube, grouping_names)
    task = np.zeros(cube.n_cells, np.intp) if cube.task is None else cube.task.astype(np.intp)
    weight = np.ones(cube.n_cells) if cube.weight is None else cube.weight
    keys = [task, *(g.code for g in found), cube.label, *(step - step.min() for step in steps.T)]
    as_normal = np.zeros(cube.n_cells, dtype=bool)
    if cube.unit is not None:
        keys.append(cube.unit)
    elif cube.weight is not None:
        # Of many weighted examples in one cell only the sum matters: nearly a normal number.
        cell, _ = _alike(keys)
        as_normal = (sums(cell, cube.count, int(cell.max()) + 1) > NORMAL_FROM)[cell]
        code = np.unique(weight, return_inverse=True)[1].reshape(-1)
        keys.append(np.where(as_normal, 0, code + 1))
    entry, first = _alike(keys)
    size = len(first)
    count, total = sums(entry, cube.count, size), sums(entry, cube.count * weight, size)
    if cube.unit is not None:
        unit, n_units = cube.unit[first].astype(np.int64), len(cube.unit_names)
        amount, copies, variance = total, np.ones(n_units, np.int64), np.ones(n_units)
    else:
        unit, normal = np.arange(size), as_normal[first]
        amount = np.where(normal, 1.0, weight[first])
        copies = np.where(normal, 0, count).astype(np.int64)
        variance = np.where(normal, sums(entry, cube.count * weight**2, size), count)
    names: tuple[str | None, ...] = cube.tasks or (None,)
    place = {name: i for i, name in enumerate(cube.label_classes)}
    return SignedUnits(
        tasks=names,
        classes=tuple(tuple(place[c] for c in cube.of_task(t).label_classes) for t in names),
        groupings=tuple(replace(g, code=g.code[first]) for g in found),
        task=task[first],
        label=cube.label[first].astype(np.intp),
        x=steps[first] / scale,
        change=amount[:, None] * (steps[first] / scale),
        change_total=total[:, None] * (steps[first] / scale),
        count=count,
        total=total,
        amount=amount,
        unit=unit,
        copies=copies,
        number=np.ones(n_units) if cube.unit is not None else count,
        variance=variance,
        clustered=cube.unit_is_cluster,
    )


def units_of_numbers(
    cube: Cube, baseline: str, variant: str, grouping_names: Sequence[str]
) -> SignedUnits:
    """Units and entries of one variant's outcomes that are numbers.

    With R the ratios of a task, e = (num_c − R_c den_c) / mean den_c − (num_b − R_b den_b) / mean
    den_b and w the mean of both denominators, each over its mean, the change that goes with a sign
    is e + (R_c − R_b) w, and its weight w: centred at the shift of all it is e. A cell of more than
    1,000 examples, and every cell of a cube without rows, gets two normal numbers with the
    variances and the covariance of both sums.
    """
    assert cube.outcome is not None
    found = groupings(cube, grouping_names)
    names: tuple[str | None, ...] = cube.tasks or (None,)
    task = np.zeros(cube.n_cells, np.intp) if cube.task is None else cube.task.astype(np.intp)
    count, held = cube.count.astype(np.float64), cube.outcome.sums
    if held is None:
        change, weight = _scores(pair_values(cube, baseline, variant), task, count, len(names))
        moved, amount = change * count, weight * count
        squares = change**2 * count, change * weight * count, weight**2 * count
    else:
        moved, amount, squares = _summed_scores(
            held, cube.member_indices(variant)[0], task, count, len(names)
        )
        change, weight = moved / count, amount / count  # of cells whose examples are alike
    codes: list[NDArray[Any]] = [task, *(g.code for g in found)]
    if cube.unit is not None:
        entry, first = _alike([*codes, cube.unit])
        number = len(first)
        unit, n_units = cube.unit[first].astype(np.int64), len(cube.unit_names)
        moved, amount = (sums(entry, v, number) for v in (moved, amount))
        entries = moved, moved, amount, amount, sums(entry, count, number)
        copies, variance = np.ones(n_units, np.int64), np.ones(n_units)
        number_of = variance
    else:
        cell, _ = _alike(codes)
        many = (sums(cell, count, int(cell.max()) + 1) > NORMAL_FROM)[cell]
        if held is not None:
            many = np.ones(cube.n_cells, bool) if held.alike is None else ~held.alike
        alone, large = np.flatnonzero(~many), np.unique(cell[many])
        where = np.searchsorted(large, cell[many])
        several = len(large)

        def summed(values: Floats) -> Floats:
            return sums(where, values[many], several)

        xx, xw, ww = (summed(values) for values in squares)
        with np.errstate(invalid="ignore", divide="ignore"):
            root = np.sqrt(np.maximum(xx, 0.0))
            shared = np.where(root > 0, xw / root, 0.0)
        rest, zero = np.sqrt(np.maximum(ww - shared**2, 0.0)), np.zeros(several)
        start = np.flatnonzero(many)[np.unique(where, return_index=True)[1]]
        first = np.concatenate([alone, start, start])
        entries = (
            np.concatenate([change[alone], root, zero]),
            np.concatenate([moved[alone], summed(moved), zero]),
            np.concatenate([weight[alone], shared, rest]),
            np.concatenate([amount[alone], summed(amount), zero]),
            np.concatenate([count[alone], summed(count), zero]),
        )
        unit = np.arange(len(first))
        normal = np.arange(len(first)) >= len(alone)
        number_of = entries[4]
        copies = np.where(normal, 0, number_of).astype(np.int64)
        variance = np.where(normal, 1.0, number_of)
    moved, moved_total, amount, total, number_in = entries
    return SignedUnits(
        tasks=names,
        classes=tuple(() for _ in names),
        groupings=tuple(replace(g, code=g.code[first]) for g in found),
        task=task[first],
        label=np.zeros(len(first), np.intp),
        x=np.zeros((len(first), 1)),
        change=moved[:, None],
        change_total=moved_total[:, None],
        count=number_in,
        total=total,
        amount=amount,
        unit=unit,
        copies=copies,
        number=number_of,
        variance=variance,
        clustered=cube.unit_is_cluster,
    )


def _scores(
    values: tuple[Floats, ...], task: NDArray[np.intp], count: Floats, size: int
) -> tuple[Floats, Floats]:
    """The change that goes with the sign of one example of each cell, and its weight."""
    num_b, num_c, den_b, den_c = values

    def of_task(of_cells: Floats) -> Floats:
        return sums(task, of_cells * count, size)

    with np.errstate(invalid="ignore", divide="ignore"):
        n, total_b, total_c = of_task(np.ones(len(task))), of_task(den_b), of_task(den_c)
        ratio_b, ratio_c = of_task(num_b) / total_b, of_task(num_c) / total_c
        score = n[task] * (
            (num_c - ratio_c[task] * den_c) / total_c[task]
            - (num_b - ratio_b[task] * den_b) / total_b[task]
        )
        weight = n[task] * (den_b / total_b[task] + den_c / total_c[task]) / 2
        change = score + (ratio_c - ratio_b)[task] * weight
    return np.nan_to_num(change), np.nan_to_num(weight)


def _summed_scores(
    held: OutcomeSums, model: int, task: NDArray[np.intp], count: Floats, size: int
) -> tuple[Floats, Floats, tuple[Floats, Floats, Floats]]:
    """Sums over each cell's examples: change, weight, change², change × weight and weight².

    Both are linear in the variables that the sums are of.
    """
    total, n = held.totals(model), sums(task, count, size)
    base, grown = (sums(task, total[i], size) for i in (2, 3))
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = sums(task, total[0] + held.centre * total[2], size) / base  # the ratio itself
        centre = np.where(np.isfinite(centre), centre, 0.0)
        about = held.recentred(centre[task])
        total = about.totals(model)
        num, more = (sums(task, total[i], size) for i in (0, 1))
        ratio_b = num / base
        ratio_c = (num + more - centre * grown) / (base + grown)
        one, other = n / (base + grown), n / base
        weight = np.stack([np.zeros(size), np.zeros(size), (one + other) / 2, one / 2])
        score = np.stack([
            one - other, one, ratio_b * other - ratio_c * one, -(ratio_c + centre) * one
        ])  # fmt: skip
        change = score + (ratio_c - ratio_b) * weight
    change, weight = (np.where(np.isfinite(v), v, 0.0)[:, task] for v in (change, weight))
    rows = RatioSums(count, count, about.all_products(model), count, count)
    return (
        (change * total).sum(axis=0),
        (weight * total).sum(axis=0),
        (
            rows.product_of(change, change),
            rows.product_of(change, weight),
            rows.product_of(weight, weight),
        ),
    )


def _alike(keys: Sequence[NDArray[Any]]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For rows of several keys: which different row each is, and the first of each."""
    folded = np.zeros(len(keys[0]), dtype=np.int64)
    first = np.zeros(0, dtype=np.intp)
    for key in keys:
        folded = folded * (int(key.max(initial=0)) + 1) + key
        _, first, folded = np.unique(folded, return_index=True, return_inverse=True)
        folded = folded.reshape(-1)
    return folded, first


def adjusted(p: Floats, largest: Floats) -> Floats:
    """p, not below the share of draws whose largest deviation is at least as large."""
    return np.where(np.isnan(p), np.nan, np.maximum(p, share_beyond(normal_z(p), largest)))


def share_beyond(z: Floats, largest: Floats) -> Floats:
    """Monte-Carlo p: the share of draws, the data among them, that reach z."""
    ordered = np.sort(largest)
    reached = len(ordered) - np.searchsorted(ordered, z - 1e-9)
    return np.where(np.isnan(z), np.nan, (1 + reached) / (1 + len(ordered)))


def quantile(largest: Floats, alpha: float, *, alone: bool, least: float | None = None) -> float:
    lowest = float(-ndtri((alpha if least is None else least) / 2))
    if alone:
        return lowest
    place = min(len(largest), math.ceil((1 - alpha) * (len(largest) + 1) - 1e-9))
    return max(lowest, float(np.partition(largest, place - 1)[place - 1]))
