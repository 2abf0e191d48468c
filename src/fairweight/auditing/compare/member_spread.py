"""How much members' own values vary over draws of examples: the interaction of a two-way t.

Bootstrap draws of examples move all members together (the examples' part) and each a little on its
own (the interaction). The second part is what a mean over members counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairweight.auditing.compare.pairing import Pairing
from fairweight.auditing.compare.sides import PerMember
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.metrics.ratio import ratio


@dataclass(frozen=True)
class Units:
    """Values of every unit, (R, units, rows); `change` and `excess` only where units are paired."""

    baseline: Floats
    compressed: Floats
    baseline_excess: Floats | None
    compressed_excess: Floats | None
    paired: bool

    @property
    def parts(self) -> dict[str, Floats]:
        """What a variance over units is needed of."""
        found = {"baseline": self.baseline, "compressed": self.compressed}
        if self.paired:
            found["change"] = self.compressed - self.baseline
        if self.baseline_excess is None or self.compressed_excess is None:
            return found
        if self.paired:
            return found | {"excess": self.compressed_excess - self.baseline_excess}
        return found | {
            "baseline_excess": self.baseline_excess,
            "compressed_excess": self.compressed_excess,
        }


def units_of(values: PerMember, pairing: Pairing) -> Units:
    """Members' values averaged within their units."""
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
    if values.baseline_rest is None or values.compressed_rest is None:
        return Units(baseline, compressed, None, None, pairing.paired)
    return Units(
        baseline,
        compressed,
        baseline - averaged(first, values.baseline_rest),
        compressed - averaged(second, values.compressed_rest),
        pairing.paired,
    )


class SpreadSums:
    """Sums over draws of the squared moves of units' deviations from their mean, per batch.

    Batches are summed one by one and added in order, so that the result does not depend on how
    many of them a thread took.
    """

    def __init__(self, observed: PerMember, pairing: Pairing, n_batches: int) -> None:
        self._pairing = pairing
        self._observed = {
            name: _deviations(values) for name, values in units_of(observed, pairing).parts.items()
        }
        rows = observed.compressed.shape[-1]
        self._sums = {name: np.zeros((n_batches, rows)) for name in self._observed}
        self._defined = {name: np.zeros((n_batches, rows)) for name in self._observed}

    def add(self, drawn: PerMember, first_batch: int, sizes: list[int]) -> None:
        """The draws of several batches, `sizes` draws each."""
        starts = np.cumsum([0, *sizes[:-1]])
        for name, values in units_of(drawn, self._pairing).parts.items():
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
