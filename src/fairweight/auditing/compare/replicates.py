"""Bootstrap and swap replicates of every quantity that has no closed-form interval.

Bootstrap: the items (examples, or whole clusters) are drawn again, for both models at once.
Swap null: each item's two predictions are exchanged with probability one half, which is a binomial
split of cells. Both are sparse products, evaluated block by block on as many threads as there are
cores, with random numbers that do not depend on the blocks or the threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.counts.draws import coins, resampler
from fairweight.auditing.counts.stats import Counts, Floats
from fairweight.auditing.counts.tally import Tally

Evaluate: TypeAlias = Callable[["Both"], "Values"]

MOST_VALUES = 60_000_000  # replicates × rows kept in memory
FEWEST_REPLICATES = 200
BLOCK_VALUES = 1_000_000  # numbers per array that a thread works on: few calls, still in cache
BATCH = 25  # draws that share a generator


class Both(dict[str, tuple[Counts, Counts]]):
    """Counts of baseline and compressed, (R, members, S, C), by the grouping's name ("": whole).

    What several metrics ask for is made once: everyone outside each slice, and chosen levels.
    """

    def __init__(self, counts: dict[str, tuple[Counts, Counts]], *, observed: bool) -> None:
        super().__init__(counts)
        self.observed = observed  # the data as they are, not replicates
        self._made: dict[tuple[str, str], tuple[Counts, Counts]] = {}

    def others(self, name: str) -> tuple[Counts, Counts]:
        """For every slice, everyone outside it."""
        return self._once((name, "others"), lambda side: side.others())

    def levels(self, name: str, keep: NDArray[np.bool_]) -> tuple[Counts, Counts]:
        """The slices where `keep` is true."""
        if keep.all():
            return self[name]
        return self._once((name, keep.tobytes().hex()), lambda side: side.levels(keep))

    def other_levels(self, name: str, keep: NDArray[np.bool_]) -> tuple[Counts, Counts]:
        """For the slices where `keep` is true, everyone outside each."""
        first, second = self.others(name)
        return (first, second) if keep.all() else (first.levels(keep), second.levels(keep))

    def _once(
        self, key: tuple[str, str], make: Callable[[Counts], Counts]
    ) -> tuple[Counts, Counts]:
        if key not in self._made:
            first, second = self[key[0]]
            self._made[key] = (make(first), make(second))
        return self._made[key]


@dataclass(frozen=True)
class Values:
    """A quantity's rows under R replicates; comparisons have no value of the baseline."""

    baseline: Floats | None  # (R, rows)
    compressed: Floats  # (R, rows)
    excess: Floats | None = None  # (R, rows)

    @property
    def parts(self) -> tuple[Floats, ...]:
        return tuple(p for p in (self.baseline, self.compressed, self.excess) if p is not None)


@dataclass(frozen=True)
class Replicated:
    """A quantity as observed (R = 1), in bootstrap replicates, and under the swap null."""

    observed: Values
    bootstrap: Values
    swapped: Values | None  # None where exchanging predictions is not defined (populations)
    level: str | None = None  # the level that the observed value is of


def replicate(
    c: Comparison,
    evaluations: Sequence[Evaluate],
    levels: Sequence[Callable[[Both], str | None] | None],
) -> list[Replicated]:
    """Evaluate all quantities on the data, on bootstrap draws and on swaps."""
    tally = Tally(c.cube, (c.whole, *c.groupings), range(len(c.cube.members)), positive=c.positive)

    def both(flat: Floats, *, observed: bool = False) -> Both:
        counts = tally.read(flat)
        k = c.n_baseline
        return Both(
            {
                g.name: (_members(found, slice(0, k)), _members(found, slice(k, None)))
                for g, found in zip((c.whole, *c.groupings), counts, strict=True)
            },
            observed=observed,
        )

    multiplicity = tally.multiplicity.astype(np.float64)
    data = tally.flat(multiplicity[None, :])
    counted = both(data, observed=True)
    observed = [evaluate(counted) for evaluate in evaluations]
    named = [None if level is None else level(counted) for level in levels]
    rows = sum(part.shape[1] for values in observed for part in values.parts)
    n_draws = min(c.options.n_boot, max(FEWEST_REPLICATES, MOST_VALUES // max(rows, 1)))
    movable = _movable(c)
    resample = resampler(tally.multiplicity)

    def bootstrap(rng: np.random.Generator, size: int) -> Floats:
        return tally.flat(resample(rng, size))

    def swap(rng: np.random.Generator, size: int) -> Floats:
        swapped = coins(rng, tally.multiplicity[movable], size)
        return _exchanged(tally, data, tally.flat(swapped, movable))

    width = max(tally.size, len(multiplicity))
    boot = _blocks(c, "bootstrap", bootstrap, both, evaluations, observed, n_draws, width)
    null: list[Values] | list[None] = [None] * len(observed)
    if c.one_pair:
        null = _blocks(c, "swap", swap, both, evaluations, observed, n_draws, width)
    return [Replicated(*parts) for parts in zip(observed, boot, null, named, strict=True)]


def _movable(c: Comparison) -> NDArray[np.intp]:
    """Items whose exchange changes anything: where the two answers differ, or whole clusters."""
    if c.cube.unit is not None or not c.one_pair:
        return np.arange(len(c.cube.unit_names) or c.cube.n_cells)
    return np.flatnonzero(c.cube.prediction[:, 0] != c.cube.prediction[:, 1])


def _members(counts: Counts, which: slice) -> Counts:
    return Counts(
        label=counts.label[..., which, :, :],
        predicted=counts.predicted[..., which, :, :],
        correct=counts.correct[..., which, :, :],
        abstained=counts.abstained[..., which, :],
        classes=counts.classes,
        positive=counts.positive,
    )


def _exchanged(tally: Tally, data: Floats, swapped: Floats) -> Floats:
    """Statistics after the swapped items' answers of the two members changed places."""
    result = np.repeat(data.T, len(swapped), axis=1).T  # in the same order of memory as `swapped`
    for layout in tally.layouts:
        cells = layout.n_slices * layout.n_classes
        size = 2 * cells + layout.n_slices
        first = slice(layout.start + cells, layout.start + cells + size)
        second = slice(first.stop, first.stop + size)
        moved = swapped[:, second] - swapped[:, first]
        result[:, first] += moved
        result[:, second] -= moved
    return result


def in_batches(
    rng: np.random.Generator,
    n_draws: int,
    width: int,
    work: Callable[[list[np.random.Generator], list[int], int], None],
) -> None:
    """Call `work(generators, sizes, start)` until `n_draws` draws are made, on several threads.

    Every batch of `BATCH` draws has a generator of its own, so neither the number of threads nor
    the memory at hand changes a single draw. `width` numbers are held per draw.
    """
    sizes = [min(BATCH, n_draws - start) for start in range(0, n_draws, BATCH)]
    seeds = rng.bit_generator.seed_seq.spawn(len(sizes))  # type: ignore[attr-defined]
    workers = os.cpu_count() or 1
    # Large blocks, because small ones spend their time in calls; yet work for every thread.
    share = -(-len(sizes) // (2 * workers))
    together = max(1, min(BLOCK_VALUES // max(width * BATCH, 1), share))

    def run(first: int) -> None:
        last = min(first + together, len(sizes))
        generators = [np.random.default_rng(seed) for seed in seeds[first:last]]
        work(generators, sizes[first:last], first * BATCH)

    jobs = range(0, len(sizes), together)
    with ThreadPoolExecutor(max_workers=min(len(jobs), workers)) as pool:
        list(pool.map(run, jobs))


def _blocks(
    c: Comparison,
    purpose: str,
    draw: Callable[[np.random.Generator, int], Floats],
    both: Callable[[Floats], Both],
    evaluations: Sequence[Evaluate],
    observed: Sequence[Values],
    n_draws: int,
    width: int,
) -> list[Values]:
    """Evaluate all quantities on `n_draws` draws, in blocks that bound the memory."""
    kept = [_empty(values, n_draws) for values in observed]

    def work(generators: list[np.random.Generator], sizes: list[int], start: int) -> None:
        flat = [draw(rng, size) for rng, size in zip(generators, sizes, strict=True)]
        counts = both(np.concatenate(flat))
        stop = start + sum(sizes)
        for evaluate, target in zip(evaluations, kept, strict=True):
            for part, room in zip(evaluate(counts).parts, target.parts, strict=True):
                room[start:stop] = part

    in_batches(c.rng(purpose), n_draws, width, work)
    return kept


def _empty(like: Values, n_draws: int) -> Values:
    def room(part: Floats | None) -> Floats | None:
        return None if part is None else np.empty((n_draws, part.shape[1]))

    compressed = room(like.compressed)
    assert compressed is not None
    return Values(room(like.baseline), compressed, room(like.excess))
