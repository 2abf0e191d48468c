"""Replicates of the score metrics: all are functions of sums over (slice, bin of the score).

A calibration error needs the sum of score − outcome per bin, the Brier score the sum of the loss,
the AUC the number of positives and negatives per bin. So one sparse product per model and batch of
draws serves every metric of every slice. The AUC of the data is exact; its replicates are exact up
to `RANK_BINS` distinct scores, and beyond that made on quantile bins and moved by the (tiny)
difference between the exact and the binned value of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.replicates import Replicated, Values, in_batches
from fairweight.auditing.counts.draws import coins, resampler
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.metrics.ratio import ratio
from fairweight.auditing.metrics.scores import ScoreColumn, auc, bin_edges, bin_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RANK_BINS = 1024
FEWEST_RANK_BINS = 32
MOST_BINS_AND_SLICES = 200_000  # rank bins × slices × problems of one statistic


@dataclass(frozen=True)
class Statistic:
    """One metric in the slices of one grouping.

    `matrices` hold for every member what one example of each cell adds to the sums, (sums, cells);
    `finish` makes the metric of the sums, (sums, R) → (slices, R). `exact` is the metric of the
    data, (members, slices), where binning made it inexact.
    """

    metric: str
    kind: str
    matrices: list[csr_array]
    finish: Callable[[Floats], Floats]
    exact: Floats | None = None


def calibration(
    c: Comparison,
    name: Literal["ece", "ece_top_label"],
    kind: str,
    grouping: Grouping,
    score: Floats,
    outcome: Floats,
) -> Statistic:
    """sum_b |sum_i (score − outcome)| / n: the bins' own shares cancel."""
    n_bins = len(bin_edges(name)[0])
    return _absolute_sums(c, name, kind, grouping, score - outcome, bin_of(score, name), n_bins)


def mean_loss(c: Comparison, name: str, kind: str, grouping: Grouping, loss: Floats) -> Statistic:
    """A mean of losses is a calibration error with one bin and no cancelling."""
    one_bin = np.zeros(loss.shape, dtype=np.intp)
    return _absolute_sums(c, name, kind, grouping, loss, one_bin, 1)


def _absolute_sums(
    c: Comparison,
    name: str,
    kind: str,
    grouping: Grouping,
    value: Floats,
    bins: NDArray[np.intp],
    n_bins: int,
) -> Statistic:
    slices = len(grouping.levels)
    code = grouping.code.astype(np.int64)
    cells = np.arange(c.cube.n_cells)

    def matrix(member: int) -> csr_array:
        rows = np.concatenate([code * n_bins + bins[:, member], slices * n_bins + code])
        added = np.concatenate([value[:, member], np.ones(len(cells))])
        return _sparse(c, rows, np.concatenate([cells, cells]), added, slices * (n_bins + 1))

    def finish(total: Floats) -> Floats:
        gaps = np.abs(total[: slices * n_bins]).reshape(slices, n_bins, -1).sum(axis=1)
        return ratio(gaps, total[slices * n_bins :])

    return Statistic(name, kind, [matrix(m) for m in range(value.shape[1])], finish)


def ranking(
    c: Comparison,
    name: str,
    kind: str,
    grouping: Grouping,
    problems: Sequence[tuple[Floats, Floats]],
) -> Statistic:
    """The AUC of each problem (scores and outcomes, (cells, members)), averaged over problems."""
    slices, n_problems = len(grouping.levels), len(problems)
    room = MOST_BINS_AND_SLICES // (slices * n_problems)
    most = int(np.clip(room, FEWEST_RANK_BINS, RANK_BINS))
    binned = [_rank_bins(score, most) for score, _ in problems]
    n_bins = max(int(bins.max()) + 1 for bins, _ in binned)
    code = grouping.code.astype(np.int64)
    cells = np.arange(c.cube.n_cells)
    block = slices * n_bins

    def matrix(member: int) -> csr_array:
        rows = [
            (2 * k + outcome[:, member].astype(np.int64)) * block + code * n_bins + bins[:, member]
            for k, ((_, outcome), (bins, _)) in enumerate(zip(problems, binned, strict=True))
        ]
        everyone = np.tile(cells, n_problems)
        return _sparse(
            c, np.concatenate(rows), everyone, np.ones(len(everyone)), 2 * n_problems * block
        )

    def finish(total: Floats) -> Floats:
        counts = total.reshape(n_problems, 2, slices, n_bins, -1)
        negative, positive = counts[:, 0], counts[:, 1]
        below = np.cumsum(negative, axis=2) - negative / 2
        pairs = (positive * below).sum(axis=2)
        found: Floats = ratio(pairs, positive.sum(axis=2) * negative.sum(axis=2)).mean(axis=0)
        return found

    exact = None
    if not all(whole for _, whole in binned):
        exact = np.stack([_exact_auc(c, grouping, problems, m) for m in range(len(c.cube.members))])
    matrices = [matrix(m) for m in range(len(c.cube.members))]
    return Statistic(name, kind, matrices, finish, exact)


def _rank_bins(score: Floats, most: int) -> tuple[NDArray[np.int64], bool]:
    """Bins that keep the order of all members' scores; exact where there are few values."""
    values, place = np.unique(score, return_inverse=True)
    place = place.reshape(score.shape)
    if len(values) <= most:
        return place, True
    edges = np.unique(np.quantile(score, np.arange(1, most) / most))
    return np.searchsorted(edges, score, side="right"), False


def _exact_auc(
    c: Comparison, grouping: Grouping, problems: Sequence[tuple[Floats, Floats]], member: int
) -> Floats:
    weight = c.cube.count if c.cube.weight is None else c.cube.count * c.cube.weight
    found = []
    for score, outcome in problems:
        column = ScoreColumn(
            score[:, member],
            outcome[:, member],
            grouping.code.astype(np.intp),
            len(grouping.levels),
        )
        found.append(auc(column, weight[None, :].astype(float))[0])
    mean: Floats = np.mean(found, axis=0)
    return mean


def _sparse(
    c: Comparison,
    rows: NDArray[np.int64],
    cells: NDArray[np.intp],
    values: Floats,
    size: int,
) -> csr_array:
    """(sums, items): items are cells of single examples, or units with all their examples."""
    from scipy.sparse import coo_array

    weight = values if c.cube.weight is None else values * c.cube.weight[cells]
    if c.cube.unit is None:
        return coo_array((weight, (rows, cells)), shape=(size, c.cube.n_cells)).tocsr()
    counted = weight * c.cube.count[cells]
    shape = (size, len(c.cube.unit_names))
    return coo_array((counted, (rows, c.cube.unit[cells])), shape=shape).tocsr()


def replicate_scores(
    c: Comparison, statistics: Sequence[Statistic]
) -> dict[tuple[str, str], Replicated]:
    """Observed values, bootstrap replicates and swap null; groupings of one kind side by side."""
    from scipy.sparse import vstack

    if not statistics:
        return {}
    cube, k = c.cube, c.n_baseline
    members = range(len(cube.members))
    multiplicity = (
        cube.count if cube.unit is None else np.ones(len(cube.unit_names), dtype=np.int64)
    )
    stacked = [vstack([s.matrices[m] for s in statistics]).tocsr() for m in members]
    ends = np.cumsum([s.matrices[0].shape[0] for s in statistics])

    def finished(sums: Floats) -> list[Floats]:
        """Each statistic as (R, slices)."""
        parts = np.split(sums, ends[:-1])
        return [s.finish(part).T for s, part in zip(statistics, parts, strict=True)]

    def both(per_member: list[list[Floats]]) -> list[Values]:
        return [
            Values(np.mean(values[:k], axis=0), np.mean(values[k:], axis=0))
            for values in zip(*per_member, strict=True)
        ]

    def drawn(items: NDArray[np.int64]) -> list[Values]:
        times = np.ascontiguousarray(items.T, dtype=np.float64)
        return both([finished(stacked[m] @ times) for m in members])

    def swapped(moved: NDArray[np.int64]) -> list[Values]:
        goes = np.ascontiguousarray(moved.T, dtype=np.float64)
        change = stacked[1] @ goes - stacked[0] @ goes
        return both([finished(whole[0] + change), finished(whole[1] - change)])

    whole = [(matrix @ multiplicity.astype(np.float64))[:, None] for matrix in stacked]
    width = max(len(multiplicity), int(ends[-1]))
    observed = drawn(multiplicity[None, :])
    resample = resampler(multiplicity)
    boot = _batches(c, "scores bootstrap", width, lambda rng, n: drawn(resample(rng, n)))
    null: list[Values | None] = [None] * len(statistics)
    if c.one_pair:
        null = list(
            _batches(c, "scores swap", width, lambda rng, n: swapped(coins(rng, multiplicity, n)))
        )
    made: dict[tuple[str, str], list[Replicated]] = {}
    for statistic, data, drawn_again, exchanged in zip(
        statistics, observed, boot, null, strict=True
    ):
        found = _exact(Replicated(data, drawn_again, exchanged), statistic.exact, k)
        made.setdefault((statistic.metric, statistic.kind), []).append(found)
    return {key: _side_by_side(parts) for key, parts in made.items()}


def _exact(found: Replicated, exact: Floats | None, k: int) -> Replicated:
    """Put the exact values in the place of the binned ones, and move the replicates with them."""
    if exact is None or found.observed.baseline is None or found.bootstrap.baseline is None:
        return found
    true = Values(exact[:k].mean(axis=0)[None, :], exact[k:].mean(axis=0)[None, :])
    assert true.baseline is not None
    moved = Values(
        found.bootstrap.baseline + (true.baseline - found.observed.baseline),
        found.bootstrap.compressed + (true.compressed - found.observed.compressed),
    )
    return Replicated(true, moved, found.swapped)


def _side_by_side(parts: Sequence[Replicated]) -> Replicated:
    def joined(values: Sequence[Values | None]) -> Values | None:
        given = [v for v in values if v is not None]
        base = [v.baseline for v in given if v.baseline is not None]
        if not given:
            return None
        return Values(
            np.concatenate(base, axis=1), np.concatenate([v.compressed for v in given], axis=1)
        )

    observed, boot = joined([p.observed for p in parts]), joined([p.bootstrap for p in parts])
    assert observed is not None
    assert boot is not None
    return Replicated(observed, boot, joined([p.swapped for p in parts]))


def _batches(
    c: Comparison,
    purpose: str,
    width: int,
    draw: Callable[[np.random.Generator, int], list[Values]],
) -> list[Values]:
    made: dict[int, list[Values]] = {}

    def work(generators: list[np.random.Generator], sizes: list[int], start: int) -> None:
        for rng, size in zip(generators, sizes, strict=True):
            made[start] = draw(rng, size)
            start += size

    in_batches(c.rng(purpose), c.options.n_boot, width, work)
    in_order = [made[start] for start in sorted(made)]
    joined = []
    for parts in zip(*in_order, strict=True):
        base = [v.baseline for v in parts if v.baseline is not None]
        joined.append(Values(np.concatenate(base), np.concatenate([v.compressed for v in parts])))
    return joined
