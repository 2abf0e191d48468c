"""The wider rule once more, written as it is stated and not as it is computed.

Plain loops over rows, clusters and pairs of members, on arrays of right and wrong predictions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from .made_populations import Population

Array = NDArray[Any]


@dataclass(frozen=True)
class Raw:
    """Right or wrong, (members, examples) of both sides, with the pairs that are compared."""

    dense: Array
    small: Array
    pairs: Sequence[tuple[int, int]]
    cluster: Array  # of every example; without clusters every example is one
    weight: Array
    rows: Sequence[Array]  # masks: classes and levels of single columns
    known: float | None = None  # the pooled correlation, where it is that of another event

    @property
    def change(self) -> Array:
        """−1, 0 or 1 of every pair, (pairs, examples)."""
        return np.array([self.small[j] - self.dense[i] for i, j in self.pairs])

    @property
    def mean_change(self) -> Array:
        """Of all members of one side less all of the other."""
        return np.asarray(self.small.mean(axis=0) - self.dense.mean(axis=0))

    def clusters(self, here: Array) -> list[Array]:
        """Masks of the clusters with an example in a row."""
        return [(self.cluster == k) & here for k in np.unique(self.cluster[here])]

    def sizes(self, here: Array) -> Array:
        return np.array([mine.sum() for mine in self.clusters(here)])

    @property
    def n_changed(self) -> int:
        """Clusters in which anything changed."""
        moved = (self.change != 0).any(axis=0)
        return len(np.unique(self.cluster[moved]))

    @property
    def icc(self) -> float:
        if self.known is not None:
            return self.known
        between = within = squares = total = 0.0
        for here in self.rows:
            x = self.change[:, here]
            groups = self.clusters(here)
            if len(groups) < 2:
                continue
            r = self.change - x.mean(axis=1, keepdims=True)
            between += (
                len(groups) / (len(groups) - 1) * sum(r[:, mine].sum() ** 2 for mine in groups)
            )
            within += (r[:, here] ** 2).sum()
            m = len(self.pairs) * self.sizes(here)
            squares, total = squares + (m**2).sum(), total + m.sum()
        if within == 0 or squares == total:
            return 0.0
        return float(np.clip((between / within - 1) / (squares / total - 1), 0, 1))

    def shift(self, here: Array) -> float:
        return float(np.average(self.mean_change[here], weights=self.weight[here]))

    def churn(self, here: Array) -> float:
        lost_or_gained = np.abs(self.change).mean(axis=0)
        found = float(np.average(lost_or_gained[here], weights=self.weight[here]))
        return max(found, abs(self.shift(here)))

    def influence(self, here: Array) -> dict[Any, float]:
        """U of every cluster: its part in the error of the row's shift."""
        r = self.weight * (self.mean_change - self.shift(here)) / self.weight[here].sum()
        return {k: float(r[(self.cluster == k) & here].sum()) for k in np.unique(self.cluster)}

    def linearised(self, here: Array) -> float:
        g = len(self.clusters(here))
        return g / (g - 1) * sum(u**2 for u in self.influence(here).values())

    def answers(self, here: Array) -> float:
        return float(here.sum() * len(self.pairs))

    def iid(self, here: Array) -> float:
        return (self.churn(here) - self.shift(here) ** 2) / self.answers(here)

    def kish(self, here: Array) -> float:
        w = self.weight[here]
        return float(len(w) * (w**2).sum() / w.sum() ** 2)

    def n_eff(self, here: Array, variance: float) -> float:
        m = len(self.pairs) * self.sizes(here)
        own = variance / self.iid(here) if self.iid(here) > 1e-15 else 1.0
        clumped = self.kish(here) * (1 + ((m**2).sum() / m.sum() - 1) * self.icc)
        found = self.answers(here) / max(1.0, own, clumped)
        return min(found, len(m)) if self.n_changed < 10 else found

    def degrees(self, here: Array) -> float:
        m = self.sizes(here)
        return float(m.sum() ** 2 / (m**2).sum() - 1)


def raw_of(
    made: Population, pairs: list[tuple[int, int]], *, cluster: Any = None, weight: Any = None
) -> Raw:
    """Right and wrong predictions of a population; rows are its classes and levels."""
    dense, small = made.right
    n = len(made.label)
    columns = [made.label, *made.groups.values()]
    return Raw(
        dense,
        small,
        pairs,
        np.arange(n) if cluster is None else cluster,
        np.ones(n) if weight is None else weight,
        [column == level for column in columns for level in np.unique(column)],
    )


def tango_by_hand(n: float, churn: float, shift: float, q: float) -> tuple[float, float]:
    """The two shifts at which the score statistic is ± q, by bisection on Tango's variance."""

    def score(delta: float) -> float:
        b, c = n * (churn - shift) / 2, n * (churn + shift) / 2
        linear = -(b + c) + (2 * n - c + b) * delta
        constant = -b * delta * (1 - delta)
        root = (math.sqrt(max(linear**2 - 8 * n * constant, 0.0)) - linear) / (4 * n)
        variance = n * (2 * root + delta * (1 - delta))
        return (c - b - n * delta) / math.sqrt(max(variance, 1e-300))

    tiny = 1e-9
    low = optimize.brentq(lambda d: score(d) - q, -1 + tiny, shift - tiny, xtol=1e-15)
    high = optimize.brentq(lambda d: score(d) + q, shift + tiny, 1 - tiny, xtol=1e-15)
    return float(low), float(high)


def shift_limits(raw: Raw, here: Array, alpha: float, *, members: bool) -> tuple[float, float]:
    """Scope model: the wider of linearised t and Tango on n_eff."""
    own = raw.linearised(here)
    q = stats.norm.isf(alpha / 2) if members else stats.t.isf(alpha / 2, raw.degrees(here))
    low, high = tango_by_hand(raw.n_eff(here, own), raw.churn(here), raw.shift(here), q)
    reach = stats.t.isf(alpha / 2, len(raw.clusters(here)) - 1) * math.sqrt(own)
    return min(low, raw.shift(here) - reach), max(high, raw.shift(here) + reach)


def excess_limits(raw: Raw, here: Array, alpha: float) -> tuple[float, float]:
    """Scope model: linearised t or MOVER on n / max(1, Kish, V_e / (V_iid + V_iid))."""
    others = ~here
    inside, outside = raw.influence(here), raw.influence(others)
    g = len(inside)
    variance = g / (g - 1) * sum((inside[k] - outside[k]) ** 2 for k in inside)
    own = variance / (raw.iid(here) + raw.iid(others))
    q = stats.t.isf(alpha / 2, min(raw.degrees(here), raw.degrees(others)))
    sides = []
    for side in (here, others):
        n = raw.answers(side) / max(1.0, raw.kish(side), own)
        sides.append((raw.shift(side), *tango_by_hand(n, raw.churn(side), raw.shift(side), q)))
    (d, low, high), (d_rest, low_rest, high_rest) = sides
    excess, reach = d - d_rest, q * math.sqrt(variance)
    return (
        min(excess - math.hypot(d - low, high_rest - d_rest), excess - reach),
        max(excess + math.hypot(high - d, d_rest - low_rest), excess + reach),
    )
