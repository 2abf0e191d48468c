"""Counts of both sides of a comparison, and the values that metrics make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Counts, Floats

Evaluate: TypeAlias = Callable[["Both"], "PerMember"]


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

    def averaged(self, weights: tuple[Floats, Floats] | None = None) -> Both:
        """Both sides as one mean member each; `weights` are (R, members) for either side."""
        first, second = (None, None) if weights is None else weights
        return Both(
            {
                name: (one.averaged(first), other.averaged(second))
                for name, (one, other) in self.items()
            },
            observed=self.observed,
        )

    def _once(
        self, key: tuple[str, str], make: Callable[[Counts], Counts]
    ) -> tuple[Counts, Counts]:
        if key not in self._made:
            first, second = self[key[0]]
            self._made[key] = (make(first), make(second))
        return self._made[key]


@dataclass(frozen=True)
class PerMember:
    """A quantity's rows, (R, members, rows); comparisons have no value of the baseline."""

    baseline: Floats | None
    compressed: Floats
    baseline_rest: Floats | None = None  # the same of everyone outside the row
    compressed_rest: Floats | None = None
    compared: bool = False  # a comparison that is the difference of the two sides' means

    def mean(self, weights: tuple[Floats, Floats] | None = None) -> Values:
        """Averaged over the members of each side; `weights` are (R, members) or (members,)."""

        def averaged(values: Floats, side: int) -> Floats:
            if values.shape[1] == 1:
                return values[:, 0]
            if weights is None:
                plain: Floats = values.mean(axis=1)
                return plain
            weighted: Floats = np.einsum(
                "rmk,rm->rk", values, np.broadcast_to(weights[side], values.shape[:2])
            )
            return weighted

        compressed = averaged(self.compressed, 1)
        if self.baseline is None:
            return Values(None, compressed)
        baseline = averaged(self.baseline, 0)
        if self.compared:
            return Values(None, compressed - baseline)
        if self.baseline_rest is None or self.compressed_rest is None:
            return Values(baseline, compressed)
        rest = averaged(self.compressed_rest, 1) - averaged(self.baseline_rest, 0)
        return Values(baseline, compressed, (compressed - baseline) - rest)


@dataclass(frozen=True)
class Values:
    """A quantity's rows under R replicates, averaged over members."""

    baseline: Floats | None  # (R, rows)
    compressed: Floats  # (R, rows)
    excess: Floats | None = None  # (R, rows)

    @property
    def parts(self) -> tuple[Floats, ...]:
        return tuple(p for p in (self.baseline, self.compressed, self.excess) if p is not None)

    @property
    def change(self) -> Floats:
        """What an interval is about: the shift, or the value of a comparison."""
        return self.compressed if self.baseline is None else self.compressed - self.baseline
