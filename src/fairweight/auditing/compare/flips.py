"""Flips: predictions that changed, and those among them that lost or gained a right answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import (
    Comparison,
    all_slots,
    groupings_of,
    slots_of,
)
from fairweight.auditing.compare.estimate import (
    Estimate,
    Family,
    Formula,
    LimitsAt,
    joined,
    without_limits,
)
from fairweight.auditing.compare.linear import share_limits
from fairweight.auditing.compare.retraining import Statistic, context
from fairweight.auditing.compare.two_way import interval_name, share_by_unit
from fairweight.auditing.counts.counts import ratio, sums
from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.intervals.proportion import MODIFIED_WILSON
from fairweight.auditing.metrics.registry import Event, Metric, PairEvent, metrics
from fairweight.base.types import Floats

# Flips between every two members of a comparison: what retraining alone changes.

MOST_ROWS = 2_000  # of more rows no matrix of all pairs is kept


def pair_shares(
    c: Comparison, grouping: Grouping, *, by_class: bool = False
) -> dict[str, Floats] | None:
    """Weight on which members a and b flip, by what flips, (rows, members, members); made once.

    Rows are classes or levels; of everyone together they are the sums over classes. None of very
    many rows. Only pairs of a class's predictions meet, so the cost grows with how many different
    predictions an example gets, not with the number of classes.
    """
    name = "class" if by_class else f"group {grouping.name}"
    row, n_rows = rows_of(c, grouping, "class" if by_class else "group")
    if name not in c.once and not by_class and not grouping.name:
        classes = pair_shares(c, grouping, by_class=True)
        c.once[name] = classes and {
            key: part.sum(axis=0, keepdims=True) for key, part in classes.items()
        }
    elif name not in c.once and n_rows > MOST_ROWS:
        c.once[name] = None
    elif name not in c.once:
        cube = c.cube
        order = np.argsort(row, kind="stable")
        prediction, label = cube.prediction[order], cube.label[order]
        # Context is read to two or three digits.
        amount = cube.amount[order].astype(np.float32)
        ends = np.searchsorted(row[order], np.arange(n_rows + 1))
        members = prediction.shape[1]
        same = np.zeros((n_rows, members, members))
        right = prediction == label[:, None]
        harmful = np.zeros_like(same)
        for r in range(n_rows):
            part = slice(ends[r], ends[r + 1])
            answers, weight = prediction[part], amount[part]
            for k in np.unique(answers):
                chosen = answers == k
                used = np.flatnonzero(chosen.any(axis=1))
                one = chosen[used].astype(np.float32)
                same[r] += one.T @ (one * weight[used, None])
            was = right[part].astype(np.float32)
            harmful[r] = was.T @ ((1 - was) * weight[:, None])
        total = sums(row, cube.amount, n_rows)
        c.once[name] = {
            "changed": total[:, None, None] - same,
            "lost": harmful,
            "gained": harmful.transpose(0, 2, 1),
            "total": total,
        }
    made: dict[str, Floats] | None = c.once[name]
    return made


def concentration_statistic(harmful: Floats, whole: Floats) -> Statistic:
    """The share of all lost answers that falls on each row."""

    def statistic(first: Floats, second: Floats) -> Floats:
        here = _over_pairs(harmful, first, second)
        return ratio(here, _over_pairs(whole, first, second))

    return statistic


def _over_pairs(matrices: Floats, first: Floats, second: Floats) -> Floats:
    """Σ_ab first_a second_b M_ab for every draw and row, (draws, rows)."""
    half = np.einsum("rab,db->dra", matrices, second, optimize=True)
    made: Floats = np.einsum("dra,da->dr", half, first, optimize=True)
    return made


def flip_metrics() -> list[Metric]:
    """The metrics that are shares of pairs of predictions."""
    return [entry for entry in metrics() if entry.pairs is not None]


def flip_families(c: Comparison) -> Iterator[tuple[Family, str]]:
    """All shares of flips, overall, by class and by group, with their scope; means over pairs."""
    pairs, k = np.array(c.pairing.pairs), c.n_baseline
    for entry in flip_metrics():
        what, bounds = entry.pairs, (entry.low, entry.high)
        assert what is not None
        share = share_of_pairs(c, what)
        each = _mean_by(c, what, pairs[:, 1])
        if c.has_method and c.pairing.paired:
            units = [_mean_by(c, what, pairs[:, 0])]
        elif c.has_method:  # the units of either side
            weights = c.pairing.first[:, :k], c.pairing.second[:, k:]
            units = [_mean_by(c, what, pairs[:, side]) @ weights[side].T for side in (0, 1)]
        for kind in ("overall", "class", "group", "intersection"):
            models, methods, members = [], [], []
            for grouping in groupings_of(c, kind):
                row, size = rows_of(c, grouping, kind)
                slots = slots_of(c, grouping, kind)
                n, hits, value = _totals(c, share, row, size)
                limits: LimitsAt = (
                    Formula(MODIFIED_WILSON, (hits, n))
                    if c.closed_form
                    else share_limits(c, share, row, size, bounds)
                )
                how = "wilson" if c.closed_form else "linearised t"
                models.append(Family(entry, slots, n, Estimate.closed(value, limits), interval=how))
                # Every compressed member against its partners.
                own = [_totals(c, of_member, row, size)[2] for of_member in each.T]
                members.append(np.stack([*[np.full(size, np.nan)] * k, *own]))
                if c.has_method:
                    of_units = Estimate(*share_by_unit(c, units, row, size, bounds))
                    methods.append(Family(entry, slots, n, of_units, interval=interval_name(c)))
            if not models:
                continue
            about = _context(c, entry, kind)
            family = replace(joined(models), columns=about)
            yield replace(family, members=np.concatenate(members, axis=1)), "model"
            if methods:
                yield replace(joined(methods), columns=about), "method"
            elif not c.one_pair:
                yield without_limits(family), "method"


def _context(c: Comparison, entry: Metric, kind: str) -> dict[str, Any]:
    """Flips between baseline members alone; relabelling says nothing about a symmetric share."""
    if c.one_pair or c.retraining.splits is None:
        return {}
    statistic = flip_statistic(c, entry, kind)
    if statistic is None:
        nothing = np.full(len(all_slots(c, kind)), np.nan)
        return {"matched": nothing, "noise_floor": nothing}
    made = context(replace(c.retraining, relabelled=None), statistic, signed=False)
    return {column: made[column] for column in ("matched", "noise_floor")}


def flip_statistic(c: Comparison, entry: Metric, kind: str) -> Statistic | None:
    """Mean over all pairs of the members that stand for either side; None of very many rows."""
    parts = []
    for grouping in groupings_of(c, kind):
        shares = pair_shares(c, grouping, by_class=kind == "class")
        if shares is None:
            return None
        share = ratio(shares[str(entry.pairs)], shares["total"][:, None, None])
        parts.append(partial(_over_pairs, share))
    return lambda first, second: np.concatenate([part(first, second) for part in parts], axis=1)


def rows_of(c: Comparison, grouping: Grouping, kind: str) -> tuple[NDArray[np.int64], int]:
    """The row of every cell, and how many rows there are."""
    if kind == "class":
        return c.cube.label.astype(np.int64), len(c.classes)
    return grouping.code.astype(np.int64), len(grouping.levels)


def churn(c: Comparison, event: Event | None, kind: str) -> Floats:
    """Share of a rate's examples whose prediction became wrong or right, in every row of a kind.

    Lost + gained predictions, mean over pairs of members; NaN by group and class.
    """
    parts = []
    for grouping in groupings_of(c, kind):
        # Weight of the predictions that became wrong or right, and of all, (slices, classes).
        name = f"churn {grouping.name}"
        if name not in c.once:
            share = share_of_pairs(c, "lost") + share_of_pairs(c, "gained")
            shape = len(grouping.levels), len(c.classes)
            cell = grouping.code.astype(np.int64) * shape[1] + c.cube.label
            c.once[name] = tuple(
                sums(cell, weight, shape[0] * shape[1]).reshape(shape)
                for weight in (c.cube.amount * share, c.cube.amount)
            )
        tables: tuple[Floats, Floats] = c.once[name]
        if kind == "class":
            given = (
                "label" if event is None or event.happens in ("correct", "wrong") else event.given
            )
            changed, total = (_given(table, given).reshape(-1) for table in tables)
        elif event is None or event.given == "all" or c.positive is None:
            changed, total = (table.sum(axis=1) for table in tables)
        else:
            changed, total = (_given(table, event.given)[:, c.positive] for table in tables)
        parts.append(ratio(changed, total))
    return np.concatenate(parts)


def _given(table: Floats, given: str) -> Floats:
    """Of (slices, classes): the class itself, all other classes, or everyone."""
    if given == "label":
        return table
    everyone = table.sum(axis=1, keepdims=True)
    return everyone - table if given == "not_label" else np.broadcast_to(everyone, table.shape)


def share_of_pairs(c: Comparison, what: PairEvent) -> Floats:
    """Per cell, the share of the pairs of members between which its prediction changed so."""
    share = np.zeros(c.cube.n_cells)
    for first, second in c.pairing.pairs:
        share += _event(c.cube, what, first, second)
    return share / len(c.pairing.pairs)


def _totals(
    c: Comparison, share: Floats, row: NDArray[np.int64], size: int
) -> tuple[Floats, Floats, Floats]:
    """Examples of every row, the weight that flipped in it, and the share."""
    n, hits = sums(row, c.cube.count, size), sums(row, c.cube.amount * share, size)
    return n, hits, ratio(hits, sums(row, c.cube.amount, size))


def _mean_by(c: Comparison, what: PairEvent, unit: NDArray[np.intp]) -> Floats:
    names, place = np.unique(unit, return_inverse=True)
    total = np.zeros((c.cube.n_cells, len(names)))
    for (first, second), at in zip(c.pairing.pairs, place.reshape(-1), strict=True):
        total[:, at] += _event(c.cube, what, first, second)
    return total / np.bincount(place.reshape(-1))


def _event(cube: Cube, what: PairEvent, first: int, second: int) -> Floats:
    before, after = cube.prediction[:, first], cube.prediction[:, second]
    if what == "changed":
        return np.asarray(before != after, dtype=float)
    was, became = before == cube.label, after == cube.label
    return np.asarray(was & ~became if what == "lost" else ~was & became, dtype=float)
