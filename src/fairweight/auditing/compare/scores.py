"""Rows of the score metrics: AUC, calibration, Brier score, uncertainty, top-5 accuracy.

Their intervals come from `score_replicates`; this file brings scores to one form and rows to the
results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, vstack

from fairweight.auditing.compare.closed_form import closed_flags
from fairweight.auditing.compare.comparison import (
    Comparison,
    all_slots,
    cell_outcomes,
    groupings_of,
    slots_of,
)
from fairweight.auditing.compare.estimands import NO_POSITIVE, Estimand, impossible, sizes
from fairweight.auditing.compare.estimate import Block
from fairweight.auditing.compare.influence import ROUNDING, Changed, Influence
from fairweight.auditing.compare.linear import linear_rates
from fairweight.auditing.compare.members import PerMember, StoredDraws, Values, units_of
from fairweight.auditing.compare.replicates import (
    FEWEST_REPLICATES,
    Replicated,
    in_batches,
    partners_of,
    with_context,
)
from fairweight.auditing.compare.retraining import difference
from fairweight.auditing.compare.rows import drawn_rows, scopes
from fairweight.auditing.counts.counts import ratio, sums
from fairweight.auditing.counts.cube import Cube, Scores, select
from fairweight.auditing.counts.groupings import Grouping, groupings, joint_slices, whole
from fairweight.auditing.intervals.bootstrap import coins, resampler
from fairweight.auditing.metrics.rates import is_uncertain
from fairweight.auditing.metrics.registry import Metric, metric, metrics
from fairweight.auditing.metrics.scores import (
    ScoreColumn,
    auc,
    bin_edges,
    bin_of,
    leave_one_out_gaps,
)
from fairweight.base.types import Floats

# Replicates of the score metrics: all are functions of sums over (slice, bin of the score).
#
# A calibration error needs the sum of score − outcome per bin, the Brier score the sum of the loss,
# the AUC the number of positives and negatives per bin. So one sparse product per model and batch
# of draws serves every metric of every slice. The AUC of the data is exact; its replicates are
# exact up to `RANK_BINS` distinct scores, and beyond that made on quantile bins and moved by the
# (tiny) difference between the exact and the binned value of the data.
#
# Beside them stands what every example adds to a value (`Influence`): it makes the error of the
# calibration metrics, and says on how many examples a change rests.

KINDS = ("overall", "group", "intersection")
RANK_BINS = 1024
FEWEST_RANK_BINS = 32
MOST_PRODUCTS = 4_000_000_000  # replicates × entries: what sixty models' scores may cost
MOST_BINS_AND_SLICES = 200_000  # rank bins × slices × problems of one statistic


@dataclass(frozen=True)
class Added:
    """What one example of each cell adds to sums: entries of (row of the sums, cell, value)."""

    c: Comparison
    rows: NDArray[np.int64]
    cells: NDArray[np.intp]
    values: Floats
    size: int

    @property
    def weighted(self) -> Floats:
        weight = self.c.cube.weight
        return self.values if weight is None else self.values * weight[self.cells]

    def matrix(self) -> csr_array:
        """(sums, items): items are cells of single examples, or units with all their examples."""
        cube, weight = self.c.cube, self.weighted
        if cube.unit is None:
            shape = (self.size, cube.n_cells)
            return coo_array((weight, (self.rows, self.cells)), shape=shape).tocsr()
        counted = weight * cube.count[self.cells]
        shape = (self.size, len(cube.unit_names))
        return coo_array((counted, (self.rows, cube.unit[self.cells])), shape=shape).tocsr()

    def observed(self) -> Floats:
        """The sums of the data, (sums, 1)."""
        counted = self.weighted * self.c.cube.count[self.cells]
        return sums(self.rows, counted, self.size)[:, None]


@dataclass(frozen=True)
class Statistic:
    """One metric in the slices of one or more groupings.

    `added` says for a member what one example of each cell adds to the sums; `finish` makes the
    metric of the sums, (sums, R), and of the weight in every joint slice: one table (slices, R)
    for each of `places`. `exact` is the metric of the data, (members, slices), where binning made
    it inexact. `gaps` are for a member and a table what each cell's value is beyond that of its
    slice (to first order); `moved` the cells on which the sides differ.
    """

    metric: str
    places: tuple[tuple[str, Grouping], ...]  # kind of rows, and the grouping of these
    members: int
    added: Callable[[int], Added]
    finish: Callable[[Floats, Floats], list[Floats]]
    exact: Floats | None = None
    gaps: Callable[[int, int], Floats] | None = None
    moved: NDArray[np.bool_] | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(kind for kind, _ in self.places)

    @cached_property
    def matrices(self) -> list[csr_array]:
        """What `added` says of every member, (sums, items) each."""
        return [self.added(m).matrix() for m in range(self.members)]


def calibration(
    c: Comparison, name: Literal["ece", "ece_top_label"], score: Floats, outcome: Floats
) -> Statistic:
    """sum_b |sum_i (score − outcome)| / n: the bins' own shares cancel."""
    n_bins = len(bin_edges(name)[0])
    return _sums_in_bins(c, name, score - outcome, bin_of(score, name), n_bins)


def mean_of(c: Comparison, name: str, value: Floats) -> Statistic:
    """The mean of a value per cell and member, of either sign."""
    one_bin = np.broadcast_to(np.intp(0), value.shape)
    made = _sums_in_bins(c, name, value, one_bin, 1, signed=True)
    means = [_means(c, grouping) for _, grouping in made.places]

    def gaps(member: int, table: int) -> Floats:
        own = value[:, member]
        return own - means[table](own)[made.places[table][1].code]

    return replace(made, gaps=gaps, moved=_moved(c, value))


def squared_calibration(
    c: Comparison, name: str, kind: str, grouping: Grouping, score: Floats, outcome: Floats
) -> Statistic:
    """Mean over examples of h = residual × leave-one-out mean residual of its bin in its slice.

    Two examples make an h, so the value moves by 2 (h − mean h): that is what is drawn, about the
    value of the data, and what its error is made of.
    """
    n_bins = len(bin_edges("ece_top_label")[0])
    level = grouping.code.astype(np.int64)
    weight = np.ones(c.cube.n_cells) if c.cube.weight is None else c.cube.weight
    count = c.cube.count.astype(float)
    cells = np.tile(np.arange(c.cube.n_cells), 2)
    rows = np.concatenate([level, len(grouping.levels) + level])
    mean_in = _means(c, grouping)

    @cache
    def products(member: int) -> tuple[Floats, Floats]:
        """Every cell's h, and their mean in every level."""
        own = score[:, member]
        key = level * n_bins + bin_of(own, "ece_top_label")
        size = len(grouping.levels) * n_bins
        h = leave_one_out_gaps(own - outcome[:, member], key, size, weight, count)
        return h, mean_in(h)

    def gaps(member: int, table: int) -> Floats:
        h, mean = products(member)
        return 2 * (h - mean[level])

    def added(member: int) -> Added:
        h, mean = products(member)
        values = 2 * h - mean[level]  # their mean is the value of the data
        both = np.concatenate([values, np.ones(len(values))])
        return Added(c, rows, cells, both, 2 * len(grouping.levels))

    def finish(total: Floats, size: Floats) -> list[Floats]:
        value, own_size = np.split(total, 2)
        return [ratio(value, own_size)]

    changed = _moved(c, score) | _moved(c, outcome)
    places = ((kind, grouping),)
    members = len(c.cube.members)
    return Statistic(name, places, members, added, finish, gaps=gaps, moved=changed)


def _moved(c: Comparison, value: Floats) -> NDArray[np.bool_]:
    """Cells on which the means of the two sides differ."""
    first, second = value[:, : c.n_baseline], value[:, c.n_baseline :]
    differ: NDArray[np.bool_] = np.abs(second.mean(axis=1) - first.mean(axis=1)) > ROUNDING
    return differ


def _means(c: Comparison, grouping: Grouping) -> Callable[[Floats], Floats]:
    """What makes of a value per cell its weighted mean in every level."""
    code, weight = grouping.code.astype(np.int64), c.cube.amount.astype(float)
    levels = len(grouping.levels)
    size = sums(code, weight, levels)
    return lambda value: ratio(sums(code, weight * value, levels), size)


def _sums_in_bins(
    c: Comparison,
    name: str,
    value: Floats,
    bins: NDArray[np.intp],
    n_bins: int,
    *,
    signed: bool = False,
) -> Statistic:
    """Sums are made once, in the finest slices, and added up for every grouping."""
    places = tuple((kind, g) for kind in KINDS for g in groupings_of(c, kind))
    joint, slices = joint_slices([g for _, g in places])
    cells = np.arange(c.cube.n_cells)

    def added(member: int) -> Added:
        rows = joint * n_bins + bins[:, member]
        return Added(c, rows, cells, value[:, member], len(slices) * n_bins)

    everyone = np.arange(len(slices))
    adders = [  # (levels, joint slices): which slices a level consists of
        coo_array(
            (np.ones(len(slices)), (slices[:, i], everyone)), shape=(len(g.levels), len(slices))
        ).tocsr()
        for i, (_, g) in enumerate(places)
    ]

    def finish(total: Floats, size: Floats) -> list[Floats]:
        draws = total.shape[-1]
        by_slice = total.reshape(len(slices), n_bins * draws)
        found = []
        for adder in adders:
            gaps = adder @ by_slice
            gaps = gaps if signed else np.abs(gaps)
            gaps = gaps.reshape(adder.shape[0], n_bins, draws).sum(axis=1)
            found.append(ratio(gaps, adder @ size))
        return found

    return Statistic(name, places, value.shape[1], added, finish)


def slice_sizes(c: Comparison) -> csr_array:
    """(joint slices, items): the weight of every item in each slice."""
    joint, slices = joint_slices([g for kind in KINDS for g in groupings_of(c, kind)])
    cells = np.arange(c.cube.n_cells)
    return Added(c, joint, cells, np.ones(len(cells)), len(slices)).matrix()


def ranking(
    c: Comparison,
    name: str,
    kind: str,
    grouping: Grouping,
    problems: Sequence[tuple[Floats, Floats]],
) -> Statistic:
    """The AUC of each problem (scores and outcomes, (cells, members)), averaged over problems."""
    slices, n_problems = len(grouping.levels), len(problems)
    affordable = MOST_BINS_AND_SLICES // (slices * n_problems)
    most = int(np.clip(affordable, FEWEST_RANK_BINS, RANK_BINS))
    binned, every_value = [], True  # bins keep the order of all members' scores
    for score, _ in problems:
        values, place = np.unique(score, return_inverse=True)
        if len(values) <= most:
            binned.append(place.reshape(score.shape))
            continue
        edges = np.unique(np.quantile(score, np.arange(1, most) / most))
        binned.append(np.searchsorted(edges, score, side="right"))
        every_value = False
    n_bins = max(int(bins.max()) + 1 for bins in binned)
    code = grouping.code.astype(np.int64)
    cells = np.arange(c.cube.n_cells)
    block = slices * n_bins

    def added(member: int) -> Added:
        rows = [
            (2 * k + outcome[:, member].astype(np.int64)) * block + code * n_bins + bins[:, member]
            for k, ((_, outcome), bins) in enumerate(zip(problems, binned, strict=True))
        ]
        everyone = np.tile(cells, n_problems)
        size = 2 * n_problems * block
        return Added(c, np.concatenate(rows), everyone, np.ones(len(everyone)), size)

    def gaps(member: int, table: int) -> Floats:
        """How far an example's share of pairs won lies from the AUC, in units of its slice."""
        counts = added(member).observed().reshape(n_problems, 2, slices, n_bins)
        found = np.zeros(c.cube.n_cells)
        for k, ((_, outcome), bins) in enumerate(zip(problems, binned, strict=True)):
            negative, positive = counts[k]
            below = np.cumsum(negative, axis=1) - negative / 2
            above = positive.sum(axis=1, keepdims=True) - np.cumsum(positive, axis=1) + positive / 2
            n, p = negative.sum(axis=1), positive.sum(axis=1)
            value = ratio((positive * below).sum(axis=1), n * p)[code]
            at = code, bins[:, member]
            won = np.where(
                outcome[:, member] > 0,
                (ratio(below[at], n[code]) - value) * ratio(n + p, p)[code],
                (ratio(above[at], p[code]) - value) * ratio(n + p, n)[code],
            )
            found += won / n_problems
        return np.nan_to_num(found)

    def finish(total: Floats, size: Floats) -> list[Floats]:
        counts = total.reshape(n_problems, 2, slices, n_bins, -1)
        negative, positive = counts[:, 0], counts[:, 1]
        below = np.cumsum(negative, axis=2) - negative / 2
        pairs = (positive * below).sum(axis=2)
        return [ratio(pairs, positive.sum(axis=2) * negative.sum(axis=2)).mean(axis=0)]

    members, places = len(c.cube.members), ((kind, grouping),)
    exact = None
    if not every_value:
        weight, level = c.cube.amount[None, :].astype(float), grouping.code.astype(np.intp)
        columns = [
            [ScoreColumn(score[:, m], outcome[:, m], level, slices) for score, outcome in problems]
            for m in range(members)
        ]
        exact = np.stack([np.mean([auc(x, weight)[0] for x in own], axis=0) for own in columns])
    changed = np.any([_moved(c, score) for score, _ in problems], axis=0)
    return Statistic(name, places, members, added, finish, exact, gaps, changed)


def _multiplicity(c: Comparison) -> NDArray[np.int64]:
    """How many items are alike: cells of single examples, or units."""
    if c.cube.unit is None:
        return c.cube.count
    return np.ones(len(c.cube.unit_names), dtype=np.int64)


def replicate_scores(
    c: Comparison, statistics: Sequence[Statistic], *, draw_all: bool = False, swaps: bool = True
) -> dict[tuple[str, str], Replicated]:
    """Observed values, bootstrap replicates and swap null; groupings of one kind side by side.

    Without `swaps` there is no null: of what is not tested.

    What has no limits is not drawn, nor what has t limits, except where `draw_all` asks for it
    because several tasks are to be averaged.
    """
    drawn: list[Statistic] = []
    undrawn: list[Statistic] = []
    for statistic in statistics:
        entry = metric(statistic.metric)
        is_drawn = entry.no_limits is None and (draw_all or not entry.linear)
        (drawn if is_drawn else undrawn).append(statistic)
    found: dict[tuple[str, str], list[Replicated]] = {}
    for part in (_drawn(c, drawn, swaps=swaps), _undrawn(c, undrawn)):
        for key, replicated in part:
            found.setdefault(key, []).append(replicated)
    made = {}
    for key, parts in found.items():
        whole = made[key] = Replicated.beside(parts)
        if not c.one_pair and whole.members is not None and whole.members.baseline is not None:
            each = np.concatenate([whole.members.baseline[0], whole.members.compressed[0]])
            made[key] = with_context(c, replace(whole, statistic=difference(each)))
    return made


def _undrawn(
    c: Comparison, statistics: Sequence[Statistic]
) -> Iterator[tuple[tuple[str, str], Replicated]]:
    """Observed values, and what every example adds to them."""
    once, k = _multiplicity(c).astype(np.float64)[:, None], c.n_baseline
    size = slice_sizes(c) @ once if statistics else once
    for statistic in statistics:
        sums_of = (statistic.added(m).observed() for m in range(statistic.members))
        each = [statistic.finish(total, size) for total in sums_of]
        for i, (kind, _) in enumerate(statistic.places):
            values = np.stack([tables[i][:, 0] for tables in each])[None]
            members = PerMember(values[:, :k], values[:, k:])
            influence, changed = _influence(c, statistic, i)
            spread = {}
            if c.has_method and influence is not None:
                # Sum over units of the variance of their own moves: as draws would show it.
                moves, number = influence.value.T[None], influence.units
                units = units_of(PerMember(moves[:, :k], moves[:, k:]), c.pairing)
                for name, moved in units.items():
                    square = ((moved[0] - moved[0].mean(axis=0)) ** 2).sum(axis=0)
                    total = sums(influence.row, influence.copies * square, influence.n_rows)
                    spread[name] = ratio(number, number - 1) * total
            yield (
                (statistic.metric, kind),
                Replicated(
                    members.mean(),
                    None,
                    None,
                    members=members,
                    changed=changed,
                    influence=influence,
                    spread=spread,
                ),
            )


def _influence(
    c: Comparison, statistic: Statistic, table: int
) -> tuple[Influence | None, Changed | None]:
    """What every example adds, and how many the change and either side's value rest on."""
    if statistic.gaps is None:
        return None, None
    grouping = statistic.places[table][1]
    gaps = (statistic.gaps(m, table) for m in range(statistic.members))
    influence = Influence.of(c, grouping.code.astype(np.int64), len(grouping.levels), gaps)
    if statistic.moved is None:
        return influence, None
    examples = sums(grouping.code, c.cube.count * statistic.moved, len(grouping.levels))
    first, second = c.n_baseline, c.n_compressed
    shares = np.full(first, 1 / first), np.full(second, 1 / second)
    return influence, influence.changed(*shares, examples)


def _drawn(
    c: Comparison, statistics: Sequence[Statistic], *, swaps: bool
) -> Iterator[tuple[tuple[str, str], Replicated]]:
    """Observed values, bootstrap replicates and swap null."""
    if not statistics:
        return
    k = c.n_baseline
    members = range(len(c.cube.members))
    multiplicity = _multiplicity(c)
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
    n_draws = c.options.n_boot
    if not c.one_pair:  # two models have all replicates that were asked for
        entries = max(sum(matrix.nnz for matrix in stacked), 1)
        n_draws = min(n_draws, max(FEWEST_REPLICATES, MOST_PRODUCTS // entries))
    width = max(len(multiplicity), int(ends[-1]))
    kept = [StoredDraws(c, values, n_draws, method=c.has_method) for values in observed]
    _draw(c, "scores bootstrap", width, resample, drawn, kept, n_draws)
    null: list[Values | None] = [None] * len(observed)
    partners = partners_of(c) if swaps else None
    if partners is not None:
        half = len(partners) // 2

        def toss(rng: np.random.Generator, size: int) -> NDArray[np.int64]:
            return coins(rng, multiplicity, size)

        def swapped(heads: NDArray[np.int64]) -> list[PerMember]:
            goes = np.ascontiguousarray(heads.T, dtype=np.float64)
            moved = {m: stacked[m] @ goes for m in set(partners)}
            found = []
            for p, m in enumerate(partners):
                other = partners[(p + half) % len(partners)]
                found.append(finished(whole[m] + moved[other] - moved[m], whole_size))
            return both(found)

        exchanged = [StoredDraws(c, values, n_draws) for values in observed]
        _draw(c, "scores swap", width, toss, swapped, exchanged, n_draws)
        null = [store.values for store in exchanged]
    outputs = [(s, i) for s in statistics for i in range(len(s.places))]
    for (statistic, i), values, store, own_null in zip(outputs, observed, kept, null, strict=True):
        mean, draws, by_unit = values.mean(), store.values, store.by_unit
        if statistic.exact is not None:
            # The exact values stand in the place of the binned ones; replicates move with them.
            binned = mean
            values = PerMember(statistic.exact[None, :k], statistic.exact[None, k:])
            mean = values.mean()
            draws = draws.moved(binned, mean)
            by_unit = None if by_unit is None else by_unit.moved(binned, mean)
        found = Replicated(
            mean,
            draws,
            own_null,
            members=values,
            by_unit=by_unit,
            spread=store.spread,
            changed=_influence(c, statistic, i)[1],
        )
        yield (statistic.metric, statistic.kinds[i]), found


def _draw(
    c: Comparison,
    purpose: str,
    width: int,
    draw: Callable[[np.random.Generator, int], NDArray[np.int64]],
    evaluate: Callable[[NDArray[np.int64]], list[PerMember]],
    kept: Sequence[StoredDraws],
    n_draws: int,
) -> None:
    """Evaluate numbers of items, (draws, items), in as large blocks as memory allows."""

    def work(generators: list[np.random.Generator], sizes: list[int], start: int) -> None:
        made = [draw(rng, size) for rng, size in zip(generators, sizes, strict=True)]
        for store, found in zip(kept, evaluate(np.concatenate(made)), strict=True):
            store.add(found, start, sizes)

    in_batches(c.rng(purpose), n_draws, width, work)


@dataclass(frozen=True)
class Probabilities:
    """Per cell and member, what the scores say; None where they do not say it."""

    positive: Floats | None  # P(positive class), binary labels
    confidence: Floats | None  # probability of the predicted class
    vector: Floats | None  # (cells, members, classes), in the order of the label classes
    rank: Floats | None


def probabilities(c: Comparison) -> Probabilities:
    """Bring single scores and score vectors to one form."""
    scores = c.cube.scores
    assert scores is not None
    prediction = c.cube.prediction
    vector = None
    if scores.vector is not None:
        order = [scores.vector_classes.index(name) for name in c.classes]
        vector = scores.vector[:, :, order]
    positive = confidence = None
    if c.positive is not None and vector is not None:
        positive = vector[:, :, c.positive]
    elif c.positive is not None and scores.score is not None:
        positive = scores.score
    if scores.vector is not None:
        confidence = _of_the_prediction(c, scores)
    elif positive is not None:
        confidence = np.where(prediction == c.positive, positive, 1 - positive)
    elif scores.score is not None and len(c.classes) != 2:
        confidence = scores.score
    rank = scores.rank
    if rank is None and vector is not None:
        own = np.take_along_axis(vector, c.cube.label[:, None, None].astype(np.intp), axis=2)
        rank = 1.0 + (vector > own).sum(axis=2)
    return Probabilities(positive, confidence, vector, rank)


def _of_the_prediction(c: Comparison, scores: Scores) -> Floats:
    """The vectors' entry for the class that each member predicts; NaN where they have none."""
    assert scores.vector is not None
    place = {name: i for i, name in enumerate(scores.vector_classes)}
    # One more entry, for abstentions (-1) and for classes that the vectors do not know.
    nowhere = len(scores.vector_classes)
    at = np.array([*(place.get(name, nowhere) for name in c.cube.classes), nowhere])
    padded = np.concatenate([scores.vector, np.full((*scores.vector.shape[:2], 1), np.nan)], axis=2)
    entry = at[c.cube.prediction][:, :, None]
    picked: Floats = np.take_along_axis(padded, entry, axis=2)[:, :, 0]
    return picked


def with_scores_only(c: Comparison) -> tuple[Comparison, int]:
    """The examples that every member scores and answers, and how many others were left out."""
    scores = c.cube.scores
    assert scores is not None
    keep = np.asarray((c.cube.prediction >= 0).all(axis=1)) | (not c.cube.labelled)
    if scores.score is not None:
        keep = keep & np.isfinite(scores.score).all(axis=1)
    if scores.vector is not None:
        keep = keep & np.isfinite(scores.vector).all(axis=(1, 2))
        if c.cube.labelled:  # without labels the probabilities alone are looked at
            keep = keep & np.isfinite(_of_the_prediction(c, scores)).all(axis=1)
    left_out = int(c.cube.count[~keep].sum())
    if not left_out:
        return c, 0
    cube = select(c.cube, keep)
    names = tuple(g.name for g in c.groupings)
    kept = replace(c, cube=cube, whole=whole(cube), groupings=groupings(cube, names))
    return kept, left_out


def score_rows(c: Comparison) -> Iterator[Block]:
    """Blocks of rows of every score metric that the scores allow."""
    p = probabilities(c)
    no_scores = "not_estimable: no scores of the kind it needs"
    if len(c.classes) == 2 and c.positive is None:
        no_scores = NO_POSITIVE
    for entry, flags in _flags(p):
        if flags is None:
            ranked = "label_rank" in entry.needs
            why = "not_estimable: no ranks or score vectors" if ranked else no_scores
            yield from _no_values(c, [(entry, why)])
            continue
        for kind in KINDS:
            family = (
                closed_flags(c, entry, flags, kind)
                if c.closed_form
                else linear_rates(c, entry, cell_outcomes(c, flags, kind), kind)
            )
            if family is not None:
                for built in scopes(c, [(family, cell_outcomes(c, flags, kind))]):
                    yield built.block
    statistics = list(score_statistics(c, p))
    drawn = []
    for (name, kind), found in replicate_scores(c, statistics).items():
        n = sizes(c, *groupings_of(c, kind))
        drawn.append([(Estimand(metric(name), all_slots(c, kind), n, None), found)])
    yield from drawn_rows(c, drawn)
    made = {statistic.metric for statistic in statistics}
    absent = [e for e in metrics() if e.kind == "score" and e.name not in made]
    yield from _no_values(c, [(e, impossible(c, e) or no_scores) for e in absent])


def score_statistics(c: Comparison, p: Probabilities) -> Iterator[Statistic]:
    """Every metric of scores that these probabilities allow, for each kind of rows.

    Calibration error and gap are of the positive class's probability; with more than two classes,
    of the predicted class's.
    """
    right = (c.cube.prediction == c.cube.label[:, None]).astype(float)
    places = [(kind, grouping) for kind in KINDS for grouping in groupings_of(c, kind)]
    if p.confidence is not None:
        yield calibration(c, "ece_top_label", p.confidence, right)
    promise = None
    if p.positive is not None and c.positive is not None:
        is_positive = (c.cube.label == c.positive).astype(float)[:, None]
        truth = np.broadcast_to(is_positive, p.positive.shape)
        promise = p.positive, truth
        yield calibration(c, "ece", p.positive, truth)
        yield mean_of(c, "brier", (p.positive - truth) ** 2)
        for kind, grouping in places:
            yield ranking(c, "auc", kind, grouping, [(p.positive, truth)])
    elif p.vector is not None and len(c.classes) > 2:
        one_hot = np.eye(len(c.classes))[c.cube.label][:, None, :]
        yield mean_of(c, "brier", ((p.vector - one_hot) ** 2).sum(axis=2))
        shape = p.vector.shape[:2]
        problems = [
            (p.vector[:, :, k], np.broadcast_to(one_hot[:, :, k], shape))
            for k in range(len(c.classes))
        ]
        for kind, grouping in places:
            yield ranking(c, "auc", kind, grouping, problems)
    if p.confidence is not None and len(c.classes) != 2:
        promise = p.confidence, right
    if promise is not None:
        yield mean_of(c, "calibration_gap", promise[0] - promise[1])
        for kind, grouping in places:
            yield squared_calibration(c, "calibration_error_sq", kind, grouping, *promise)


def flag_statistics(c: Comparison, p: Probabilities) -> Iterator[Statistic]:
    """Uncertainty and top-5 accuracy as means to be drawn: no closed form across tasks."""
    for entry, flags in _flags(p):
        if flags is not None:
            yield mean_of(c, entry.name, flags.astype(float))


def _flags(p: Probabilities) -> Iterator[tuple[Metric, NDArray[np.bool_] | None]]:
    """Rates of an event of scores, with whether it happens per cell and member.

    Uncertain is |p − .5| < .4; with more classes, a top probability below .9 (both strict).
    """
    uncertain = None
    if p.positive is not None and p.confidence is not None:
        uncertain = is_uncertain(p.positive, binary=True)
    elif p.confidence is not None:
        top = p.confidence if p.vector is None else p.vector.max(axis=2)
        uncertain = is_uncertain(top, binary=False)
    happens = {"top5": None if p.rank is None else p.rank <= 5, "uncertain": uncertain}
    for name, flags in happens.items():
        for entry in metrics():
            if entry.event is not None and entry.event.happens == name:
                yield entry, flags


def no_score_rows(c: Comparison) -> Iterator[Block]:
    """Rows that say which metrics would need scores."""
    wanted = [entry for entry in metrics() if entry.of_scores]
    reasons = []
    for entry in sorted(wanted, key=lambda entry: entry.kind != "score"):
        ranked = "label_rank" in entry.needs
        what = "label ranks or score vectors" if ranked else "scores"
        reasons.append((entry, f"not_estimable: no {what}"))
    return _no_values(c, reasons)


def most_tied_share(scored: Cube, positive: dict[str | None, int | None]) -> float:
    """Largest share, over tasks and members, of (positive, negative) pairs with equal scores.

    Rounding puts at most these pairs out of order, and an equal pair counts one half.
    """
    most = 0.0
    for task in scored.tasks or (None,):
        cube = scored.of_task(task)
        if cube.scores is None or cube.scores.score is None or positive[task] is None:
            continue
        is_positive = cube.label == positive[task]
        for column in cube.scores.score.T:
            known = np.isfinite(column)
            values, place = np.unique(column[known], return_inverse=True)
            count, truth = cube.count[known], is_positive[known]
            up = sums(place.reshape(-1), count * truth, len(values))
            down = sums(place.reshape(-1), count * ~truth, len(values))
            most = max(most, float((up * down).sum() / max(up.sum() * down.sum(), 1.0)))
    return most


def _no_values(c: Comparison, reasons: Sequence[tuple[Metric, str]]) -> Iterator[Block]:
    slots, n = slots_of(c, c.whole, "overall"), sizes(c, c.whole)
    absent = [
        Estimand(entry, slots, n, None, np.array([why], dtype=object)) for entry, why in reasons
    ]
    return drawn_rows(c, [[(estimand, None)] for estimand in absent])
