"""What is kept of a quantity's draws: means over members, and how members vary on their own."""

from __future__ import annotations

import numpy as np

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.member_spread import SpreadSums
from fairweight.auditing.compare.sides import PerMember, Values
from fairweight.auditing.counts.stats import Floats

BATCH = 25  # draws that share a generator


class Kept:
    """Room for the draws of one quantity.

    Parameters
    ----------
    observed
        The quantity of the data: its shape is that of every draw.
    method
        Whether what scope `method` needs is kept too.
    members_drawn
        Whether scope `method` draws members again.
    by_member
        Whether members have values of their own, whose spread scope `method` takes.
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
    ) -> None:
        mean = observed.mean()
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
        _put(self.values, found.mean(), start)
        if self.resampled is not None and again is not None:
            _put(self.resampled, again, start)
        if self._spread is not None:
            self._spread.add(found, start // BATCH, sizes)
        if self.by_unit is not None:
            _put(self.by_unit, found.mean(self._unit_weights), start)

    @property
    def spread(self) -> dict[str, Floats]:
        """Sum over units of the variance of their own moves, by part."""
        return {} if self._spread is None else self._spread.mean()


def _put(room: Values, values: Values, start: int) -> None:
    for part, target in zip(values.parts, room.parts, strict=True):
        target[start : start + len(part)] = part


def _empty(like: Values, n_draws: int) -> Values:
    def room(part: Floats | None) -> Floats | None:
        return None if part is None else np.empty((n_draws, part.shape[1]))

    compressed = room(like.compressed)
    assert compressed is not None
    return Values(room(like.baseline), compressed, room(like.excess))
