"""Replicates of the score metrics: all are functions of sums over (slice, bin of the score).

A calibration error needs the sum of score − outcome per bin, the Brier score the sum of the loss,
the AUC the number of positives and negatives per bin. So one sparse product per model and batch of
draws serves every metric of every slice. The AUC of the data is exact; its replicates are exact up
to `RANK_BINS` distinct scores, and beyond that made on quantile bins and moved by the (tiny)
difference between the exact and the binned value of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.kept import Kept
from fairweight.auditing.compare.replicates import (
    FEWEST_REPLICATES,
    Replicated,
    in_batches,
    partners_of,
    with_context,
)
from fairweight.auditing.compare.retrained import difference
from fairweight.auditing.compare.sides import PerMember, Values
from fairweight.auditing.compare.slots import groupings_of
from fairweight.auditing.counts.draws import coins, resampler
from fairweight.auditing.counts.groupings import Grouping, joint_slices
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.metrics.ratio import ratio
from fairweight.auditing.metrics.scores import ScoreColumn, auc, bin_edges, bin_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

KINDS = ("overall", "group", "intersection")
RANK_BINS = 1024
FEWEST_RANK_BINS = 32
MOST_PRODUCTS = 4_000_000_000  # replicates × entries: what sixty models' scores may cost
MOST_BINS_AND_SLICES = 200_000  # rank bins × slices × problems of one statistic


@dataclass(frozen=True)
class Statistic:
    """One metric in the slices of one or more groupings.

    `matrices` hold for every member what one example of each cell adds to the sums, (sums, cells);
    `finish` makes the metric of the sums, (sums, R), and of the weight in every joint slice: one
    table (slices, R) for each of `kinds`. `exact` is the metric of the data, (members, slices),
    where binning made it inexact.
    """

    metric: str
    kinds: tuple[str, ...]
    matrices: list[csr_array]
    finish: Callable[[Floats, Floats], list[Floats]]
    exact: Floats | None = None


def calibration(
    c: Comparison, name: Literal["ece", "ece_top_label"], score: Floats, outcome: Floats
) -> Statistic:
    """sum_b |sum_i (score − outcome)| / n: the bins' own shares cancel."""
    n_bins = len(bin_edges(name)[0])
    return _absolute_sums(c, name, score - outcome, bin_of(score, name), n_bins)


def mean_loss(c: Comparison, name: str, loss: Floats) -> Statistic:
    """A mean of losses is a calibration error with one bin and no cancelling."""
    return _absolute_sums(c, name, loss, np.zeros(loss.shape, dtype=np.intp), 1)


def _absolute_sums(
    c: Comparison, name: str, value: Floats, bins: NDArray[np.intp], n_bins: int
) -> Statistic:
    """Sums are made once, in the finest slices, and added up for every grouping."""
    places = [(kind, g) for kind in KINDS for g in groupings_of(c, kind)]
    joint, slices = joint_slices([g for _, g in places])
    cells = np.arange(c.cube.n_cells)

    def matrix(member: int) -> csr_array:
        rows = joint * n_bins + bins[:, member]
        return _sparse(c, rows, cells, value[:, member], len(slices) * n_bins)

    adders = [_adder(slices[:, i], len(g.levels)) for i, (_, g) in enumerate(places)]

    def finish(total: Floats, size: Floats) -> list[Floats]:
        draws = total.shape[-1]
        by_slice = total.reshape(len(slices), n_bins * draws)
        found = []
        for adder in adders:
            gaps = np.abs(adder @ by_slice).reshape(adder.shape[0], n_bins, draws).sum(axis=1)
            found.append(ratio(gaps, adder @ size))
        return found

    kinds = tuple(kind for kind, _ in places)
    return Statistic(name, kinds, [matrix(m) for m in range(value.shape[1])], finish)


def _adder(level: NDArray[np.int64], n_levels: int) -> csr_array:
    """(levels, joint slices): which slices a level consists of."""
    from scipy.sparse import coo_array

    place = (level, np.arange(len(level)))
    return coo_array((np.ones(len(level)), place), shape=(n_levels, len(level))).tocsr()


def slice_sizes(c: Comparison) -> csr_array:
    """(joint slices, items): the weight of every item in each slice."""
    joint, slices = joint_slices([g for kind in KINDS for g in groupings_of(c, kind)])
    cells = np.arange(c.cube.n_cells)
    return _sparse(c, joint, cells, np.ones(len(cells)), len(slices))


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

    def finish(total: Floats, size: Floats) -> list[Floats]:
        counts = total.reshape(n_problems, 2, slices, n_bins, -1)
        negative, positive = counts[:, 0], counts[:, 1]
        below = np.cumsum(negative, axis=2) - negative / 2
        pairs = (positive * below).sum(axis=2)
        return [ratio(pairs, positive.sum(axis=2) * negative.sum(axis=2)).mean(axis=0)]

    exact = None
    if not all(whole for _, whole in binned):
        exact = np.stack([_exact_auc(c, grouping, problems, m) for m in range(len(c.cube.members))])
    matrices = [matrix(m) for m in range(len(c.cube.members))]
    return Statistic(name, (kind,), matrices, finish, exact)


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
    weights = slice_sizes(c)

    def finished(sums: Floats, size: Floats) -> list[Floats]:
        """Each statistic in each of its kinds as (R, slices)."""
        parts = np.split(sums, ends[:-1])
        made = [s.finish(part, size) for s, part in zip(statistics, parts, strict=True)]
        return [table.T for tables in made for table in tables]

    def both(per_member: list[list[Floats]]) -> list[PerMember]:
        half = k if len(per_member) == len(members) else len(per_member) // 2
        return [
            PerMember(np.stack(values[:half], axis=1), np.stack(values[half:], axis=1))
            for values in zip(*per_member, strict=True)
        ]

    def drawn(items: NDArray[np.int64]) -> list[PerMember]:
        times = np.ascontiguousarray(items.T, dtype=np.float64)
        size = weights @ times
        return both([finished(stacked[m] @ times, size) for m in members])

    once = multiplicity.astype(np.float64)[:, None]
    whole, whole_size = [matrix @ once for matrix in stacked], weights @ once
    observed = drawn(multiplicity[None, :])
    resample = resampler(multiplicity)
    n_draws = _affordable(c, sum(matrix.nnz for matrix in stacked))
    width = max(len(multiplicity), int(ends[-1]))

    def bootstrap(rng: np.random.Generator, size: int) -> list[PerMember]:
        return drawn(resample(rng, size))

    kept = [Kept(c, values, n_draws, method=c.has_method) for values in observed]
    _draw(c, "scores bootstrap", width, bootstrap, kept, n_draws)
    null: list[Values | None] = [None] * len(observed)
    partners = partners_of(c)
    if partners is not None:
        half = len(partners) // 2

        def swapped(rng: np.random.Generator, size: int) -> list[PerMember]:
            goes = np.ascontiguousarray(coins(rng, multiplicity, size).T, dtype=np.float64)
            moved = {m: stacked[m] @ goes for m in set(partners)}
            found = []
            for p, m in enumerate(partners):
                other = partners[(p + half) % len(partners)]
                found.append(finished(whole[m] + moved[other] - moved[m], whole_size))
            return both(found)

        exchanged = [Kept(c, values, n_draws) for values in observed]
        _draw(c, "scores swap", width, swapped, exchanged, n_draws)
        null = [room.values for room in exchanged]
    made: dict[tuple[str, str], list[Replicated]] = {}
    outputs = [(s, kind) for s in statistics for kind in s.kinds]
    for (statistic, kind), values, room, swaps in zip(outputs, observed, kept, null, strict=True):
        found = Replicated(
            values.mean(),
            room.values,
            swaps,
            members=values,
            by_unit=room.by_unit,
            spread=room.spread,
        )
        found = _exact(found, statistic.exact, k)
        made.setdefault((statistic.metric, kind), []).append(found)
    return {key: _with_context(c, _side_by_side(parts)) for key, parts in made.items()}


def _affordable(c: Comparison, entries: int) -> int:
    """Replicates of a population's scores; two models have all that were asked for."""
    if c.one_pair:
        return c.options.n_boot
    return min(c.options.n_boot, max(FEWEST_REPLICATES, MOST_PRODUCTS // max(entries, 1)))


def _exact(found: Replicated, exact: Floats | None, k: int) -> Replicated:
    """Put the exact values in the place of the binned ones, and move the replicates with them."""
    if exact is None:
        return found
    members = PerMember(exact[None, :k], exact[None, k:])
    true = members.mean()

    def moved(draws: Values) -> Values:
        assert true.baseline is not None
        assert draws.baseline is not None
        assert found.observed.baseline is not None
        return Values(
            draws.baseline + (true.baseline - found.observed.baseline),
            draws.compressed + (true.compressed - found.observed.compressed),
        )

    return replace(
        found,
        observed=true,
        bootstrap=moved(found.bootstrap),
        members=members,
        by_unit=None if found.by_unit is None else moved(found.by_unit),
    )


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
    members = [p.members for p in parts if p.members is not None]
    return Replicated(
        observed,
        boot,
        joined([p.swapped for p in parts]),
        members=PerMember(
            np.concatenate([m.baseline for m in members if m.baseline is not None], axis=-1),
            np.concatenate([m.compressed for m in members], axis=-1),
        ),
        by_unit=joined([p.by_unit for p in parts]),
        spread={name: np.concatenate([p.spread[name] for p in parts]) for name in parts[0].spread},
    )


def _with_context(c: Comparison, found: Replicated) -> Replicated:
    if c.one_pair or found.members is None or found.members.baseline is None:
        return found
    each = np.concatenate([found.members.baseline[0], found.members.compressed[0]])
    return with_context(c, replace(found, statistic=difference(each)))


def _draw(
    c: Comparison,
    purpose: str,
    width: int,
    draw: Callable[[np.random.Generator, int], list[PerMember]],
    kept: Sequence[Kept],
    n_draws: int,
) -> None:
    def work(generators: list[np.random.Generator], sizes: list[int], start: int) -> None:
        for rng, size in zip(generators, sizes, strict=True):
            for room, found in zip(kept, draw(rng, size), strict=True):
                room.add(found, start, [size])
            start += size

    in_batches(c.rng(purpose), n_draws, width, work)
