"""Bounds for the gate where too few predictions changed for an interval.

k changes among n examples: the share that changes is at most the upper Clopper–Pearson limit, and
the metric's loss is at most what so many changes cost if every one of them is harmful
(`auditing/metrics/harm.py`). A bound has one side: with it a model can pass, and never fail.

Clusters and weights count as if their changes came together: k and n are divided by Kish's factor
and by the mean size of a cluster. Members of a population count as one model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from fairweight.auditing.columns import DIVISORS, FEW_DIVISORS, GATE_ALPHA
from fairweight.auditing.compare.comparison import Comparison, groupings_of
from fairweight.auditing.compare.flips import share_of_pairs
from fairweight.auditing.counts.counts import Counts, Tally, ratio, sums
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.metrics.registry import Harm, Metric
from fairweight.auditing.result import BOUNDED
from fairweight.base.types import Floats

MANY_VALUES = 1_000_000  # rows × classes above which bounds are made at some levels only


@dataclass(frozen=True)
class HarmfulBounds:
    """Of the rows of a family: which have so few changes, and the most that they could lose."""

    few: NDArray[np.bool_]  # (rows,)
    loss: Floats  # (rows, divisors), at least 0; NaN in the other rows
    status: NDArray[np.object_]  # (rows,); None in the other rows


def harmful_bounds(
    c: Comparison, metric: Metric, kind: str, asked: NDArray[np.bool_]
) -> HarmfulBounds | None:
    """The bounds of the rows that are asked for; None where none of them needs or has one."""
    harm = metric.harm
    if harm is None or kind == "grouping" or c.stream is not None:  # no mean over tasks has one
        return None
    if not asked.any():
        return None
    chosen = groupings_of(c, kind)
    parts = [_changes(c, harm, grouping, by_class=kind == "class") for grouping in chosen]
    few = asked
    divisors = c.divisors if few.sum() * len(c.classes) <= MANY_VALUES else FEW_DIVISORS
    loss = np.full((len(few), len(DIVISORS)), np.nan)
    reasons = np.full(len(few), None, dtype=object)
    worst, what = harm.loss, "scores" if harm.relevant == "score" else "predictions"
    if kind == "class" and harm.of_class is not None:
        worst = harm.of_class
    at = 0
    for grouping, part in zip(chosen, parts, strict=True):
        here = few[at : at + len(part.seen)]
        rows = at + np.flatnonzero(here)
        at += len(part.seen)
        if not len(rows):
            continue
        name = f"baseline counts {grouping.name}"
        if name not in c.once:
            tally = Tally(c.cube, (grouping,), range(c.n_baseline), positive=c.positive)
            c.once[name] = tally.observed()[0]
        made: Counts = c.once[name]
        counts, seen = made, part.seen[here]
        if kind != "class":  # the classes of one slice are looked at together
            counts, part, here = counts.levels(here), part.of(here), np.ones(len(rows), bool)
        most = part.at_most(counts, np.array(divisors))
        found = [worst(counts, changes).mean(axis=0).reshape(-1)[here] for changes in most]
        # The next wider bound stands for those between, as with other limits.
        loss[rows] = np.stack(found, axis=1)[:, np.searchsorted(divisors, DIVISORS)]
        reasons[rows] = [
            f"{BOUNDED}at most {n:,.3g} {what} change ({k:,.3g} did), all counted as harmful"
            for n, k in zip(most[0][here], seen, strict=True)
        ]
    few = few & np.isfinite(loss).all(axis=1)
    reasons[~few] = None
    return HarmfulBounds(few, np.maximum(loss, 0.0), reasons)


@dataclass(frozen=True)
class _Changes:
    """What changed in the slices of a grouping, or among the predictions of each class."""

    seen: Floats  # (rows,): examples that changed, mean over pairs of members
    share: Floats  # (rows,): the same as a share of the weight
    size: Floats  # (rows,): independent examples that this share is worth

    def of(self, rows: NDArray[np.bool_]) -> _Changes:
        return _Changes(self.seen[rows], self.share[rows], self.size[rows])

    def at_most(self, counts: Counts, divisors: NDArray[np.int_]) -> Floats:
        """How many predictions change at most, (divisors, rows), in the unit of the counts.

        Upper limits of Clopper and Pearson, one-sided: 0 of 100 is 1 − .05^(1/100) = .0295.
        """
        changed, kept = self.size * self.share + 1, np.maximum(self.size * (1 - self.share), 1e-9)
        upper = betaincinv(changed, kept, 1 - GATE_ALPHA / divisors[:, None])
        total = counts.n[0]  # one slice holds every class
        made: Floats = upper * (total if len(total) == len(self.seen) else total[:1])
        return made


def _changes(c: Comparison, harm: Harm, grouping: Grouping, *, by_class: bool) -> _Changes:
    cube, n_levels = c.cube, len(grouping.levels)
    weight = cube.count.astype(float) if cube.weight is None else cube.count * cube.weight
    row, n_rows = grouping.code.astype(np.int64), n_levels
    total, n = sums(row, weight, n_rows), sums(row, cube.count, n_rows)
    size = n if cube.weight is None else ratio(total**2, sums(row, weight * cube.weight, n_rows))
    if cube.unit is not None:  # mean size of a cluster in the row, as an example sees it
        key, place = np.unique(cube.unit * n_rows + row, return_inverse=True)
        per_unit = sums(place.reshape(-1), cube.count, len(key))
        size = size / np.maximum(ratio(sums(key % n_rows, per_unit**2, n_rows), n), 1.0)
    if not by_class:
        changed = _share_changed(c, harm)
        return _Changes(
            sums(row, cube.count * changed, n_rows),
            ratio(sums(row, weight * changed, n_rows), total),
            size,
        )
    seen, moved = np.zeros((2, len(c.classes)))
    for first, second in c.pairing.pairs:
        one, other = cube.prediction[:, first], cube.prediction[:, second]
        for side in (one, other):  # into a class, and out of it
            counted = (one != other) & (side >= 0) & (side < len(c.classes))
            seen += sums(side[counted], cube.count[counted], len(c.classes))
            moved += sums(side[counted], weight[counted], len(c.classes))
    pairs = len(c.pairing.pairs)
    return _Changes(seen / pairs, moved / pairs / total[0], np.full(len(seen), size[0]))


def _share_changed(c: Comparison, harm: Harm) -> Floats:
    """Per cell, the share of pairs of members between which something relevant changed."""
    if harm.relevant == "prediction":
        return share_of_pairs(c, "changed")
    if harm.relevant == "correct":
        return share_of_pairs(c, "lost") + share_of_pairs(c, "gained")
    scores = c.cube.scores
    assert scores is not None
    found = np.zeros(c.cube.n_cells)
    for first, second in c.pairing.pairs:
        moved = np.zeros(c.cube.n_cells, dtype=bool)
        if scores.score is not None:
            moved |= scores.score[:, first] != scores.score[:, second]
        if scores.vector is not None:
            moved |= (scores.vector[:, first] != scores.vector[:, second]).any(axis=1)
        found += moved
    return found / len(c.pairing.pairs)
