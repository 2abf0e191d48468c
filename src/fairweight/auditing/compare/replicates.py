"""Bootstrap and swap replicates of every estimand that has no closed-form interval.

Bootstrap: the items (examples, or whole clusters) are drawn again, for all models at once; for
what is said about a method, members are drawn again too. Swap null: each item's answers of the two
sides are exchanged with probability one half, which is a binomial split of cells. Both are sparse
products, evaluated block by block on as many threads as there are cores, with random numbers that
do not depend on the blocks or the threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from math import lcm
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.estimate import beside
from fairweight.auditing.compare.influence import Changed, Influence
from fairweight.auditing.compare.members import BATCH, Both, PerMember, StoredDraws, Values
from fairweight.auditing.compare.retraining import Statistic, context, difference
from fairweight.auditing.counts.counts import Counts, Tally
from fairweight.auditing.intervals.bootstrap import coins, exceedance_p, resampler
from fairweight.base.memory import budget, give_back, reuse_freed_blocks
from fairweight.base.types import Floats

if TYPE_CHECKING:
    from fairweight.auditing.compare.estimands import Estimand

MOST_VALUES = 60_000_000  # replicates × rows kept in memory
FEWEST_REPLICATES = 200
BLOCK_VALUES = 500_000  # numbers per array that a thread works on: few calls, still in cache
FEW_VALUES = 4 * BLOCK_VALUES  # up to here a second thread adds work and saves no time
ARRAYS = 24  # of the width of a draw that evaluating it holds at a time
MOST_PAIRED = 64  # members that unequal sides are repeated to, so that each has a partner

Weights: TypeAlias = tuple[Floats, Floats]  # (draws, members) of either side


@dataclass(frozen=True)
class Replicated:
    """An estimand as observed, in bootstrap replicates, and under the swap null."""

    observed: Values  # R = 1
    bootstrap: Values | None  # None where limits need no draws
    swapped: Values | None  # None where exchanging predictions is not defined, or once p is known
    level: str | None = None  # the level that the observed value is of
    members: PerMember | None = None  # as observed, of every member (rates_first: of the mean)
    by_unit: Values | None = None  # bootstrap of the means over units, where they are not the same
    resampled: Values | None = None  # members drawn as well; None where scope `method` is not had
    spread: dict[str, Floats] = field(default_factory=dict)  # how units vary on their own
    context: dict[str, Floats] = field(default_factory=dict)  # from retraining
    statistic: Statistic | None = None  # the value as a function of who stands for either side
    alone: Floats | None = None  # comparisons: every member against the mean baseline
    changed: Changed | None = None  # how many examples its limits rest on; None: not asked
    influence: Influence | None = None  # what every example adds, where its t limits need that
    swap_p: Floats | None = None  # by the swap null, where its draws are no longer held

    def tested(self, *, two_sided: bool) -> Replicated:
        """The same with p by the swap null instead of its draws."""
        if self.swapped is None:
            return self
        p = exceedance_p(self.observed.change[0], self.swapped.change, two_sided=two_sided)
        return replace(self, swapped=None, swap_p=p)

    @property
    def own(self) -> Floats | None:
        """Every member's own value of the data, (members, rows)."""
        if self.alone is not None:
            return self.alone
        if self.members is None or self.members.baseline is None:
            return None
        first, second = self.members.baseline[0], self.members.compressed[0]
        if self.members.compared:
            return np.concatenate([np.full_like(first, np.nan), second - first.mean(axis=0)])
        return np.concatenate([first, second])

    @staticmethod
    def beside(parts: Sequence[Replicated]) -> Replicated:
        """The rows of several tables of one family as one."""
        if len(parts) == 1:
            return parts[0]

        def joined(values: Sequence[Floats | None]) -> Floats | None:
            known = [v for v in values if v is not None]
            return np.concatenate(known, axis=-1) if len(known) == len(values) else None

        def values(name: str) -> Values | None:
            known = [v for v in (getattr(part, name) for part in parts) if v is not None]
            if len(known) < len(parts):
                return None
            compressed = np.concatenate([v.compressed for v in known], axis=1)
            excess = joined([v.excess for v in known])
            return Values(joined([v.baseline for v in known]), compressed, excess)

        observed = values("observed")
        assert observed is not None
        members = [part.members for part in parts if part.members is not None]
        changed = [part.changed for part in parts if part.changed is not None]
        influence = [part.influence for part in parts if part.influence is not None]
        statistics = [part.statistic for part in parts if part.statistic is not None]
        return Replicated(
            observed,
            values("bootstrap"),
            values("swapped"),
            members=None
            if not members
            else PerMember(
                joined([m.baseline for m in members]),
                np.concatenate([m.compressed for m in members], axis=-1),
                joined([m.baseline_rest for m in members]),
                joined([m.compressed_rest for m in members]),
                members[0].compared,
            ),
            by_unit=values("by_unit"),
            resampled=values("resampled"),
            spread={
                name: np.concatenate([part.spread[name] for part in parts])
                for name in parts[0].spread
            },
            statistic=None
            if len(statistics) < len(parts)
            else lambda one, other: np.concatenate([s(one, other) for s in statistics], axis=1),
            changed=Changed.beside(changed) if len(changed) == len(parts) else None,
            influence=Influence.beside(influence) if len(influence) == len(parts) else None,
        )


def replicate(c: Comparison, wanted: Sequence[Estimand]) -> list[Replicated]:
    """Evaluate all estimands on the data, and those with limits on bootstrap draws and on swaps."""
    members = list(range(len(c.cube.members)))
    tally = Tally(c.cube, (c.whole, *c.groupings), members, positive=c.positive)
    data = tally.flat(tally.multiplicity.astype(np.float64)[None, :])
    counted = _sides(tally, data, c.n_baseline, observed=True)
    averaged = counted.averaged()
    observed = [_evaluate(estimand, counted, averaged) for estimand in wanted]
    means = [values.mean() for values in observed]
    drawn = [i for i, estimand in enumerate(wanted) if estimand.no_limits is None]
    statistic_of = partial(_statistic, c, tally, data)
    stored: list[StoredDraws | None] = [None] * len(wanted)
    null: list[Values | None] = [None] * len(wanted)
    if drawn:
        alive = [wanted[i] for i in drawn]
        if len(drawn) < len(wanted) and all(_without_classes(estimand) for estimand in alive):
            tally = Tally(c.cube, (c.whole,), members, positive=c.positive, totals=c.groupings)
        kept, swapped = _replicates(c, alive, [observed[i] for i in drawn], tally)
        for i, draws, swaps in zip(drawn, kept, swapped, strict=True):
            stored[i], null[i] = draws, swaps
    against_mean = Both(
        {name: (one.averaged(), other) for name, (one, other) in counted.items()}, observed=True
    )
    made = []
    for estimand, values, mean, store, exchanged in zip(
        wanted, observed, means, stored, null, strict=True
    ):
        statistic = None if c.one_pair else statistic_of(estimand, values)
        alone = None
        if estimand.rates_first:  # every compressed member with the baseline's mean
            assert estimand.evaluate is not None
            own = estimand.evaluate(against_mean).compressed[0]
            alone = np.concatenate([np.full((c.n_baseline, own.shape[1]), np.nan), own])
        found = Replicated(
            observed=mean,
            bootstrap=None if store is None else store.values,
            swapped=exchanged,
            level=None if estimand.level is None else estimand.level(counted),
            members=values,
            by_unit=None if store is None else store.by_unit,
            resampled=None if store is None else store.resampled,
            spread={} if store is None else store.spread,
            statistic=statistic,
            alone=alone,
            changed=None if estimand.changed is None else estimand.changed(),
        )
        made.append(with_context(c, found, signed=estimand.metric.inflation is None))
    return made


def _without_classes(estimand: Estimand) -> bool:
    """Whether a draw needs no classes in the groups for it."""
    return estimand.slots.by in ("overall", "class") or estimand.metric.without_classes


def _replicates(
    c: Comparison, wanted: Sequence[Estimand], observed: Sequence[PerMember], tally: Tally
) -> tuple[list[StoredDraws], list[Values] | list[None]]:
    """Bootstrap draws and swaps of the estimands."""
    rows = sum(part.shape[1] for values in observed for part in values.mean().parts)
    n_draws = min(c.options.n_boot, max(FEWEST_REPLICATES, MOST_VALUES // max(rows, 1)))
    resample = resampler(tally.multiplicity)
    kept = [
        StoredDraws(
            c,
            values,
            n_draws,
            method=c.has_method,
            members_drawn=estimand.members_drawn,
            by_member=not estimand.rates_first,
        )
        for estimand, values in zip(wanted, observed, strict=True)
    ]

    def bootstrap(rng: np.random.Generator, size: int) -> tuple[Floats, Weights | None]:
        flat = tally.flat(resample(rng, size))
        return flat, drawn_members(c, rng, size) if c.has_method else None

    _draw(c, "bootstrap", bootstrap, tally, c.n_baseline, wanted, kept, n_draws)
    partners = partners_of(c)
    if partners is None:
        return kept, [None] * len(wanted)
    return kept, _swapped(c, wanted, observed, tally, partners, n_draws)


def with_context(c: Comparison, found: Replicated, *, signed: bool = True) -> Replicated:
    """The same with what retraining alone does to it."""
    if found.statistic is None:
        return found
    return replace(found, context=context(c.retraining, found.statistic, signed=signed))


def _evaluate(estimand: Estimand, each: Both, mean: Both) -> PerMember:
    assert estimand.evaluate is not None
    return estimand.evaluate(mean if estimand.rates_first else each)


def _statistic(
    c: Comparison, tally: Tally, data: Floats, estimand: Estimand, values: PerMember
) -> Statistic:
    """The estimand as a function of which members stand for either side."""
    if not estimand.rates_first:
        assert values.baseline is not None
        return difference(np.concatenate([values.baseline[0], values.compressed[0]]))
    everyone = dict(zip((g.name for g in (c.whole, *c.groupings)), tally.read(data), strict=True))
    at_once = max(1, BLOCK_VALUES // max(tally.size // len(c.cube.members), 1))

    def statistic(first: Floats, second: Floats) -> Floats:
        parts = []
        for start in range(0, len(first), at_once):
            one, other = first[start : start + at_once], second[start : start + at_once]
            both = Both(
                {name: (k.averaged(one), k.averaged(other)) for name, k in everyone.items()},
                observed=True,
            )
            assert estimand.evaluate is not None
            parts.append(estimand.evaluate(both).mean().compressed)
        return np.concatenate(parts)

    return statistic


def drawn_members(c: Comparison, rng: np.random.Generator, size: int) -> Weights:
    """How much each member counts when units are drawn with replacement, (size, members)."""
    first, second = c.pairing.first, c.pairing.second

    def times(units: int) -> Floats:
        drawn = rng.integers(0, units, (size, units))
        counted = np.stack([(drawn == u).sum(axis=1) for u in range(units)], axis=1)
        return counted / units

    one = times(len(first))
    other = one if c.pairing.paired else times(len(second))
    return one @ first[:, : c.n_baseline], other @ second[:, c.n_baseline :]


def _sides(
    tally: Tally, flat: Floats, k: int, *, observed: bool = False, excess: bool = True
) -> Both:
    """Flat statistics as counts of the first k members and of the others."""
    named = zip(tally.groupings, tally.read(flat), strict=True)
    return Both(
        {g.name: (_members(n, slice(0, k)), _members(n, slice(k, None))) for g, n in named},
        observed=observed,
        excess=excess,
    )


def partners_of(c: Comparison) -> list[int] | None:
    """Members so repeated that both sides have equally many; None where that takes too many."""
    total = lcm(c.n_baseline, c.n_compressed)
    if total > MOST_PAIRED:
        return None
    one, other = np.arange(total) % c.n_baseline, np.arange(total) % c.n_compressed
    return [*(int(m) for m in one), *(c.n_baseline + int(m) for m in other)]


def _swapped(
    c: Comparison,
    wanted: Sequence[Estimand],
    observed: Sequence[PerMember],
    tally: Tally,
    partners: list[int],
    n_draws: int,
) -> list[Values]:
    """Replicates after exchanging the two sides' answers on random items."""
    if len(partners) != len(tally.members):
        apart = tally.groupings[: len(tally.groupings) - len(tally.totals)]
        tally = Tally(c.cube, apart, partners, positive=c.positive, totals=tally.totals)
    if c.cube.unit is not None:
        movable = np.arange(len(c.cube.unit_names))
    else:  # items whose exchange changes anything: where two predictions differ
        differ = (c.cube.prediction != c.cube.prediction[:, :1]).any(axis=1)
        movable = np.flatnonzero(differ)
    data = tally.flat(tally.multiplicity.astype(np.float64)[None, :])
    moved, many = tally.flat_of(movable), tally.multiplicity[movable]

    def swap(rng: np.random.Generator, size: int) -> tuple[Floats, None]:
        swapped = moved(coins(rng, many, size))
        result = np.repeat(data.T, size, axis=1).T  # in the same order of memory as `swapped`
        for layout in tally.layouts:
            cells = layout.n_slices * layout.n_classes
            width = layout.n_members // 2 * (2 * cells + layout.n_slices)
            first = slice(layout.start + cells, layout.start + cells + width)
            second = slice(first.stop, first.stop + width)
            changed = swapped[:, second] - swapped[:, first]
            result[:, first] += changed
            result[:, second] -= changed
        return result, None

    # The test is of the change: nobody reads the sides, or the excess, of what was exchanged.
    kept = [StoredDraws(c, values, n_draws, change_alone=True) for values in observed]
    _draw(c, "swap", swap, tally, len(partners) // 2, wanted, kept, n_draws, excess=False)
    return [store.values for store in kept]


def _members(counts: Counts, which: slice) -> Counts:
    return Counts(
        label=counts.label[..., which, :, :],
        predicted=counts.predicted[..., which, :, :],
        correct=counts.correct[..., which, :, :],
        abstained=counts.abstained[..., which, :],
        classes=counts.classes,
        positive=counts.positive,
    )


def in_batches(
    rng: np.random.Generator,
    n_draws: int,
    width: int,
    work: Callable[[list[np.random.Generator], list[int], int], None],
) -> None:
    """Call `work(generators, sizes, start)` until `n_draws` draws are made, on several threads.

    Every batch of `BATCH` draws has a generator of its own, so neither the number of threads nor
    the memory at hand changes a single draw. `width` numbers are evaluated per draw.
    """
    sizes = [min(BATCH, n_draws - start) for start in range(0, n_draws, BATCH)]
    seeds = rng.bit_generator.seed_seq.spawn(len(sizes))  # type: ignore[attr-defined]
    workers = 1 if n_draws * width <= FEW_VALUES else os.cpu_count() or 1
    # Large blocks, because small ones spend their time in calls; yet work for every thread.
    share = -(-len(sizes) // (2 * workers)) if workers > 1 else len(sizes)
    together = max(1, min(BLOCK_VALUES // max(width * BATCH, 1), share))
    held = budget()
    if held is not None:  # batches in memory at a time, all threads together
        most = max(1, held // (8 * ARRAYS * BATCH * max(width, 1)))
        workers = min(workers, most)
        together = min(together, most // workers)

    def run(first: int) -> None:
        last = min(first + together, len(sizes))
        generators = [np.random.default_rng(seed) for seed in seeds[first:last]]
        work(generators, sizes[first:last], first * BATCH)

    reuse_freed_blocks()
    jobs = range(0, len(sizes), together)
    if workers == 1:
        for first in jobs:
            run(first)
    else:
        with ThreadPoolExecutor(max_workers=min(len(jobs), workers)) as pool:
            list(pool.map(run, jobs))
    if len(jobs) > 1:
        give_back()


def _draw(
    c: Comparison,
    purpose: str,
    draw: Callable[[np.random.Generator, int], tuple[Floats, Weights | None]],
    tally: Tally,
    k: int,
    wanted: Sequence[Estimand],
    kept: Sequence[StoredDraws],
    n_draws: int,
    *,
    excess: bool = True,
) -> None:
    """Evaluate all estimands on `n_draws` draws, in blocks that bound the memory."""
    any_mean = any(estimand.rates_first for estimand in wanted)

    def work(generators: list[np.random.Generator], sizes: list[int], start: int) -> None:
        made = [draw(rng, size) for rng, size in zip(generators, sizes, strict=True)]
        each = _sides(tally, beside([flat for flat, _ in made]), k, excess=excess)
        given = [weights for _, weights in made if weights is not None]
        weights = (
            (np.concatenate([one for one, _ in given]), np.concatenate([two for _, two in given]))
            if given
            else None
        )
        mean = each.averaged() if any_mean else each
        drawn = each.averaged(weights) if any_mean and weights is not None else each
        for estimand, store in zip(wanted, kept, strict=True):
            found = _evaluate(estimand, each, mean)
            again = None
            if weights is not None and store.resampled is not None:
                again = (
                    _evaluate(estimand, each, drawn).mean()
                    if estimand.rates_first
                    else found.mean(weights)
                )
            store.add(found, start, sizes, again)

    in_batches(c.rng(purpose), n_draws, tally.size, work)
