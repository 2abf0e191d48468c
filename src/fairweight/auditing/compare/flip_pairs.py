"""Flips between every two members of a comparison: what retraining alone changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.retrained import Statistic
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.counts.sums import sums
from fairweight.auditing.metrics.ratio import ratio

MOST_ROWS = 2_000  # of more rows no matrix of all pairs is kept


def pair_shares(
    c: Comparison, grouping: Grouping, *, by_class: bool = False
) -> dict[str, Floats] | None:
    """Weight on which members a and b flip, by metric, (rows, members, members); made once.

    Rows are classes or levels; of everyone together they are the sums over classes.
    """
    name = "class" if by_class else f"group {grouping.name}"
    if name not in c.once:
        if by_class or grouping.name:
            row = c.cube.label if by_class else grouping.code
            size = len(c.classes) if by_class else len(grouping.levels)
            c.once[name] = _pair_shares(c, row.astype(np.int64), size)
        else:
            classes = pair_shares(c, grouping, by_class=True)
            c.once[name] = classes and {
                key: part.sum(axis=0, keepdims=True) for key, part in classes.items()
            }
    made: dict[str, Floats] | None = c.once[name]
    return made


def _pair_shares(c: Comparison, row: NDArray[np.int64], n_rows: int) -> dict[str, Floats] | None:
    """The same for the rows of a partition.

    Only pairs of a class's predictions meet, so the cost grows with how many different answers an
    example gets, not with the number of classes. None of very many rows.
    """
    if n_rows > MOST_ROWS:
        return None
    cube = c.cube
    amount = cube.count.astype(float)
    if cube.weight is not None:
        amount = amount * cube.weight
    order = np.argsort(row, kind="stable")
    prediction, label = cube.prediction[order], cube.label[order]
    amount = amount[order].astype(np.float32)  # context is read to two or three digits
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
    total = sums(row, cube.count if cube.weight is None else cube.count * cube.weight, n_rows)
    return {
        "flips": total[:, None, None] - same,
        "harmful_flips": harmful,
        "helpful_flips": harmful.transpose(0, 2, 1),
        "total": total,
    }


def share_statistic(flipped: Floats, total: Floats) -> Statistic:
    """The share of flips, mean over all pairs of the two sides."""
    shares = ratio(flipped, total[:, None, None])

    def statistic(first: Floats, second: Floats) -> Floats:
        return _over_pairs(shares, first, second)

    return statistic


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
