"""What clustered, weighted or repeated predictions are worth in independent examples.

n predictions of one person, n examples with unequal weights, or K members' predictions on the same
examples say less than as many single independent trials. Linearised t knows that, but it is too
narrow where few predictions changed: at a true loss equal to a margin the gate passed 10 to 21 %
instead of 5 %. Tango's interval is right where few changed, but wants independent trials. So the
sample is turned into an effective size, Tango's limits are taken on it, and limit by limit the
wider of both holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from fairweight.auditing.intervals.excess import mover, touching
from fairweight.auditing.intervals.proportion import tango_at
from fairweight.auditing.intervals.units import ROUNDING, TwoWay
from fairweight.base.types import Floats

FEWEST_CHANGED = 10  # clusters with a change, below which nothing is known about how they clump


@dataclass(frozen=True)
class Clumping:
    """How changes go together within clusters, over all rows of a variant."""

    icc: float  # intraclass correlation of the change, 0 to 1
    changed: float  # clusters in which any prediction changed

    @property
    def unknown(self) -> bool:
        """Whether too few clusters changed to tell."""
        return self.changed < FEWEST_CHANGED


INDEPENDENT = Clumping(0.0, np.inf)


def intraclass_correlation(
    between: ArrayLike, within: ArrayLike, squared_sizes: ArrayLike, sizes: ArrayLike
) -> float:
    """Pooled intraclass correlation of the change, cut to 0–1.

    Parameters
    ----------
    between
        Of every row: G / (G − 1) Σ_k (Σ_i r)², r the residual of a change (−1, 0 or 1) from the
        mean of its row and member, summed within each of the row's G clusters.
    within
        Σ r² of every row.
    squared_sizes, sizes
        Σ m² and Σ m of every row, m the predictions in a cluster.

    Notes
    -----
    Σ between / Σ within = 1 + (m̄ − 1) ICC with m̄ = Σ m² / Σ m over all rows. A row's own ratio is
    0/0 where nothing changed there, and far off where little did; pooled over the rows of a variant
    it is not. G / (G − 1) because residuals are from the row's own mean: without it rows of few
    clusters, as of a column that is nested in them, draw the correlation towards 0. 0 where nothing
    changed or every cluster holds one prediction.

    Examples
    --------
    One row of three clusters of two, changes −1 −1 | 0 0 | 0 0: mean −1/3, residuals −2/3 twice and
    1/3 four times, totals −4/3, 2/3, 2/3. between = 3/2 · (16 + 4 + 4)/9 = 4, within = 12/9,
    ratio 3 = 1 + (2 − 1) ICC, cut to 1.

    >>> intraclass_correlation(4, 12 / 9, 12, 6)
    1.0
    """
    total = float(np.sum(within))
    number = float(np.sum(sizes))
    if total <= 0 or number <= 0:
        return 0.0
    further = float(np.sum(squared_sizes)) / number - 1
    if further <= 0:
        return 0.0
    return float(np.clip((np.sum(between) / total - 1) / further, 0.0, 1.0))


def effective_size(
    answers: ArrayLike,
    iid_variance: ArrayLike,
    variance: ArrayLike,
    *,
    clusters: ArrayLike = np.inf,
    kish: ArrayLike = 1.0,
    mean_cluster: ArrayLike = 1.0,
    clumping: Clumping = INDEPENDENT,
) -> Floats:
    """n_eff: how many independent examples have the information of these predictions.

    Parameters
    ----------
    answers
        Predictions of the row: examples × pairs of members.
    iid_variance, variance
        Of the shift: (lost + gained − shift²) / answers with (weighted) shares, and what it is with
        clusters, weights and members (linearised, or of the two-way t).
    clusters
        Clusters of the row; with several members and no clusters every example is one.
    kish
        n Σ w² / (Σ w)² over the row's examples.
    mean_cluster
        m̄ = Σ m² / Σ m of the row, m the predictions in a cluster.
    clumping
        Of the whole variant.

    Notes
    -----
    n_eff = answers / max(1, variance / iid_variance, kish · (1 + (m̄ − 1) ICC)). A row's own ratio
    alone (which is 0/0 where nothing changed) let a loss at the margin pass in up to 70 %. Where
    fewer than 10 clusters of the variant changed the ICC is not known, and n_eff is at most the
    row's number of clusters.

    Examples
    --------
    200 predictions in 20 clusters of 10, ICC .2: 1 + 9 · .2 = 2.8, so 71 independent ones; by the
    row's own variance, three times that of independent ones, 67.

    >>> clumps = Clumping(0.2, 30)
    >>> float(effective_size(200, 1e-4, 0, mean_cluster=10, clumping=clumps).round(1))
    71.4
    >>> float(effective_size(200, 1e-4, 3e-4, mean_cluster=10, clumping=clumps).round(1))
    66.7
    >>> few = Clumping(0.2, 9)
    >>> float(effective_size(200, 1e-4, 0, clusters=20, mean_cluster=10, clumping=few))
    20.0
    """
    size, iid, v, groups, inflation, m = (
        np.asarray(x, dtype=np.float64)
        for x in (answers, iid_variance, variance, clusters, kish, mean_cluster)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.where(iid * size > ROUNDING, v / iid, 1.0)
        pooled = inflation * (1 + (m - 1) * clumping.icc)
        made: Floats = size / np.maximum(np.maximum(1.0, own), pooled)
    return np.minimum(made, groups) if clumping.unknown else made


@dataclass(frozen=True)
class EffectiveCounts:
    """Lost and gained predictions as on so many independent examples."""

    n: Floats
    churn: Floats  # share lost + share gained
    shift: Floats  # share gained − share lost

    @property
    def lost(self) -> Floats:
        return self.n * (self.churn - self.shift) / 2

    @property
    def gained(self) -> Floats:
        return self.n * (self.churn + self.shift) / 2

    def limits(self, quantile: ArrayLike) -> tuple[Floats, Floats]:
        """Tango's limits of the shift at a quantile of z or t."""
        return tango_at(self.n, self.lost, self.gained, quantile)

    @property
    def touching(self) -> Floats:
        """The quantile at which these limits touch 0: McNemar's |gained − lost| / √changed."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            reached: Floats = np.abs(self.shift) * np.sqrt(self.n / self.churn)
        return np.where((self.shift == 0) & (self.churn == 0), 0.0 * self.n, reached)


@dataclass(frozen=True)
class WiderShift:
    """A shift with two intervals of which, limit by limit, the wider holds.

    Notes
    -----
    Student's t (linearised, or two-way) and Tango's limits on effective counts at the t quantile
    with `degrees` (infinite: normal). p is the smallest level at which the limits exclude 0, which
    is the larger p of both. Measured: at a true loss equal to the margin the lower 95 % limit lies
    above it in at most 4.4 % (ICC 0 to 1, 20 to 150 clusters; 6.7 % in fresh worlds), 3.4 %
    (weights) and 6.6 % (3 to 10 members): docs/statistics.md.

    Examples
    --------
    100 examples worth 50, none changed: t has no width, Tango's limits are z² / (50 + z²).

    >>> same = WiderShift(
    ...     TwoWay(np.array([0.0]), np.array([0.0]), np.array([99.0])),
    ...     EffectiveCounts(np.array([50.0]), np.array([0.0]), np.array([0.0])),
    ...     np.inf,
    ... )
    >>> low, high = same.limits(0.05)
    >>> float(high[0].round(3)), float(same.p_value[0])
    (0.071, 1.0)
    """

    t: TwoWay
    counts: EffectiveCounts
    degrees: ArrayLike

    def limits(self, alpha: ArrayLike) -> tuple[Floats, Floats]:
        quantile = -stdtrit(self.degrees, np.asarray(alpha, dtype=np.float64) / 2)
        return _wider(self.counts.limits(quantile), self.t.limits(alpha), 1.0)

    @property
    def p_value(self) -> Floats:
        p: Floats = np.maximum(self.t.p_value, 2 * stdtr(self.degrees, -self.counts.touching))
        return p


@dataclass(frozen=True)
class WiderExcess:
    """An excess (shift of a group − shift of all others) with the wider of two intervals.

    Notes
    -----
    Student's t, and MOVER on the effective counts of both sides: excess ± the root of the squared
    distances of Tango's limits from the two shifts, at the t quantile with `degrees`. p is the
    smallest level at which the limits exclude 0: test and interval are one thing. Linearised t
    alone rejected a true null in 16 % at 30 clusters, two-way t alone in 28 % with three members
    where few predictions changed; this rule in .3 to 5.2 % and in 0 to 2.6 %.

    References
    ----------
    Zou, G. Y. & Donner, A. (2008), Statistics in Medicine 27, 1693-1702 (MOVER).

    Examples
    --------
    A group of 100 loses 12 and gains none, the 900 others lose 18 and gain 9; t is narrower.

    >>> both = WiderExcess(
    ...     TwoWay(np.array([-0.11]), np.array([0.0]), np.array([99.0])),
    ...     EffectiveCounts(np.array([100.0]), np.array([0.12]), np.array([-0.12])),
    ...     EffectiveCounts(np.array([900.0]), np.array([0.03]), np.array([-0.01])),
    ...     np.inf,
    ... )
    >>> low, high = both.limits(0.05)
    >>> float(low[0].round(3)), float(high[0].round(3)), float(both.p_value[0].round(4))
    (-0.189, -0.058, 0.0011)
    """

    t: TwoWay
    group: EffectiveCounts
    rest: EffectiveCounts
    degrees: ArrayLike

    def limits(self, alpha: ArrayLike) -> tuple[Floats, Floats]:
        quantile = -stdtrit(self.degrees, np.asarray(alpha, dtype=np.float64) / 2)
        return _wider(mover(self._counts, quantile), self.t.limits(alpha), 2.0)

    @property
    def p_value(self) -> Floats:
        p: Floats = np.maximum(self.t.p_value, 2 * stdtr(self.degrees, -touching(self._counts)))
        return p

    @property
    def _counts(self) -> tuple[Floats, ...]:
        group, rest = self.group, self.rest
        return group.n, group.lost, group.gained, rest.n, rest.lost, rest.gained


def _wider(
    one: tuple[Floats, Floats], other: tuple[Floats, Floats], bound: float
) -> tuple[Floats, Floats]:
    low, high = np.minimum(one[0], other[0]), np.maximum(one[1], other[1])
    return np.clip(low, -bound, bound), np.clip(high, -bound, bound)


def effective_clusters(sizes: ArrayLike, squared_sizes: ArrayLike) -> NDArray[np.float64]:
    """(Σ m)² / Σ m²: how many clusters of equal size unequal ones are worth.

    >>> float(effective_clusters(6, 12)), float(effective_clusters(6, 18))  # 2 2 2, and 4 1 1
    (3.0, 2.0)
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        found: NDArray[np.float64] = np.asarray(sizes, float) ** 2 / np.asarray(
            squared_sizes, float
        )
    return found
