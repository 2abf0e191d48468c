"""Counts of both sides of a comparison, and the values that metrics make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.counts.counts import Counts, ratio
from fairweight.auditing.intervals.bootstrap import Replicates
from fairweight.auditing.pairing import Pairing
from fairweight.base.types import Floats

Evaluate: TypeAlias = Callable[["Both"], "PerMember"]


class Both(dict[str, tuple[Counts, Counts]]):
    """Counts of baseline and compressed, (R, members, S, C), by the grouping's name ("": whole).

    What several metrics ask for is made once: everyone outside each slice, and chosen levels.
    """

    def __init__(
        self, counts: dict[str, tuple[Counts, Counts]], *, observed: bool, excess: bool = True
    ) -> None:
        super().__init__(counts)
        self.observed = observed  # the data as they are, not replicates
        self.excess = excess  # whether anybody reads the excess over everyone outside a slice
        self._made: dict[tuple[str, str], tuple[Counts, Counts]] = {}

    def levels(self, name: str, keep: NDArray[np.bool_]) -> tuple[Counts, Counts]:
        """The slices where `keep` is true."""
        if keep.all():
            return self[name]
        return self._once((name, keep.tobytes().hex()), lambda side: side.levels(keep))

    def other_levels(self, name: str, keep: NDArray[np.bool_]) -> tuple[Counts, Counts]:
        """For the slices where `keep` is true, everyone outside each."""
        first, second = self._once((name, "others"), lambda side: side.others())
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
            excess=self.excess,
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
    """An estimand's rows, (R, members, rows); comparisons have no value of the baseline."""

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
    """An estimand's rows under R replicates, averaged over members."""

    baseline: Floats | None  # (R, rows)
    compressed: Floats  # (R, rows)
    excess: Floats | None = None  # (R, rows)
    _drawn: dict[str, Replicates] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def drawn(self, part: str) -> Replicates:
        """The draws of one part (`change`, `baseline`, …), put in order once."""
        if part not in self._drawn:
            self._drawn[part] = Replicates(getattr(self, part))
        return self._drawn[part]

    @property
    def parts(self) -> tuple[Floats, ...]:
        return tuple(p for p in (self.baseline, self.compressed, self.excess) if p is not None)

    def moved(self, before: Values, after: Values) -> Values:
        """Both sides moved by the difference of two other values."""
        assert self.baseline is not None
        assert before.baseline is not None
        assert after.baseline is not None
        return Values(
            self.baseline + (after.baseline - before.baseline),
            self.compressed + (after.compressed - before.compressed),
        )

    @property
    def change(self) -> Floats:
        """What an interval is about: the shift, or the value of a comparison."""
        return self.compressed if self.baseline is None else self.compressed - self.baseline


# How much members' own values vary over draws of examples: the interaction of a two-way t.
#
# Bootstrap draws of examples move all members together (the examples' part) and each a little on
# its own (the interaction). The second part is what a mean over members counts twice.


def units_of(values: PerMember, pairing: Pairing) -> dict[str, Floats]:
    """What a variance over units is needed of, (R, units, rows): members' values averaged in units.

    Sides and their excesses; `change` and `excess` where units are paired.
    """
    assert values.baseline is not None
    n_baseline = values.baseline.shape[1]
    first, second = pairing.first[:, :n_baseline], pairing.second[:, n_baseline:]

    def averaged(weights: Floats, members: Floats) -> Floats:
        if weights.shape[0] == weights.shape[1] and (weights == np.eye(len(weights))).all():
            return members
        number = (weights > 0).sum(axis=1)[:, None]
        made: Floats = np.matmul((weights > 0).astype(np.float64), members) / number
        return made

    baseline, compressed = averaged(first, values.baseline), averaged(second, values.compressed)
    found = {"baseline": baseline, "compressed": compressed}
    if pairing.paired:
        found["change"] = compressed - baseline
    if values.baseline_rest is None or values.compressed_rest is None:
        return found
    baseline_excess = baseline - averaged(first, values.baseline_rest)
    compressed_excess = compressed - averaged(second, values.compressed_rest)
    if pairing.paired:
        return found | {"excess": compressed_excess - baseline_excess}
    return found | {"baseline_excess": baseline_excess, "compressed_excess": compressed_excess}


class SpreadSums:
    """Sums over draws of the squared moves of units' deviations from their mean, per batch.

    Batches are summed one by one and added in order, so that the result does not depend on how
    many of them a thread took.
    """

    def __init__(self, observed: PerMember, pairing: Pairing, n_batches: int) -> None:
        self._pairing = pairing
        self._observed = {
            name: _deviations(values) for name, values in units_of(observed, pairing).items()
        }
        rows = observed.compressed.shape[-1]
        self._sums = {name: np.zeros((n_batches, rows)) for name in self._observed}
        self._defined = {name: np.zeros((n_batches, rows)) for name in self._observed}

    def add(self, drawn: PerMember, first_batch: int, sizes: list[int]) -> None:
        """The draws of several batches, `sizes` draws each."""
        starts = np.cumsum([0, *sizes[:-1]])
        for name, values in units_of(drawn, self._pairing).items():
            moved = ((_deviations(values) - self._observed[name]) ** 2).sum(axis=1)
            defined = np.isfinite(moved)
            here = slice(first_batch, first_batch + len(sizes))
            known = np.where(defined, moved, 0.0)
            self._sums[name][here] = np.add.reduceat(known, starts, axis=0)
            self._defined[name][here] = np.add.reduceat(defined.astype(float), starts, axis=0)

    def mean(self) -> dict[str, Floats]:
        """Sum over units of the variance of their own moves, (rows,), for every part."""
        return {
            name: ratio(sums.sum(axis=0), self._defined[name].sum(axis=0))
            for name, sums in self._sums.items()
        }


def _deviations(values: Floats) -> Floats:
    made: Floats = values - values.mean(axis=1, keepdims=True)
    return made


# What is kept of an estimand's draws: means over members, and how members vary on their own.

BATCH = 25  # draws that share a generator


class StoredDraws:
    """The draws of one estimand.

    Parameters
    ----------
    observed
        The estimand of the data: its shape is that of every draw.
    method
        Whether what scope `method` needs is kept too.
    members_drawn
        Whether scope `method` draws members again.
    by_member
        Whether members have values of their own, whose spread scope `method` takes.
    change_alone
        Whether nobody will read the two sides, only their difference.
    """

    def __init__(
        self,
        c: Comparison,
        observed: PerMember,
        n_draws: int,
        *,
        method: bool = False,
        members_drawn: bool = False,
        by_member: bool = True,
        change_alone: bool = False,
    ) -> None:
        self._change_alone = change_alone
        mean = self._read(observed)
        self.values = _empty(mean, n_draws)
        self.resampled = _empty(mean, n_draws) if method and members_drawn else None
        self.by_unit: Values | None = None
        self._spread: SpreadSums | None = None
        self._unit_weights = c.unit_weights
        if method and by_member:
            self._spread = SpreadSums(observed, c.pairing, -(-n_draws // BATCH))
            self.by_unit = None if c.all_alike else _empty(mean, n_draws)

    def add(
        self, found: PerMember, start: int, sizes: list[int], again: Values | None = None
    ) -> None:
        """Draws from `start` on, in batches of `sizes`; `again`: the same with members drawn."""
        _put(self.values, self._read(found), start)
        if self.resampled is not None and again is not None:
            _put(self.resampled, again, start)
        if self._spread is not None:
            self._spread.add(found, start // BATCH, sizes)
        if self.by_unit is not None:
            _put(self.by_unit, found.mean(self._unit_weights), start)

    def _read(self, found: PerMember) -> Values:
        mean = found.mean()
        return Values(None, mean.change) if self._change_alone else mean

    @property
    def spread(self) -> dict[str, Floats]:
        """Sum over units of the variance of their own moves, by part."""
        return {} if self._spread is None else self._spread.mean()


def _put(store: Values, values: Values, start: int) -> None:
    for part, target in zip(values.parts, store.parts, strict=True):
        target[start : start + len(part)] = part


def _empty(like: Values, n_draws: int) -> Values:
    shape = n_draws, like.compressed.shape[1]
    return Values(
        None if like.baseline is None else np.empty(shape),
        np.empty(shape),
        None if like.excess is None else np.empty(shape),
    )
