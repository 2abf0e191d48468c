"""Log odds ratios of being an exemplar, inside a part against outside it, and their variances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from fairweight.auditing.counts.cube import Codes
from fairweight.auditing.exemplars.retraining import votes_of_draws
from fairweight.auditing.exemplars.votes import TieRule, distinct_answers, modal, scale_of, taxicab
from fairweight.auditing.intervals.proportion import wilson
from fairweight.auditing.intervals.units import Term, TwoWay, two_way
from fairweight.auditing.pairing import MOST_SPLITS, matched_size, splits
from fairweight.auditing.prediction_matrix import Answer
from fairweight.base.types import Floats

HALF = 0.5  # Haldane and Anscombe: added to every cell


def log_odds_ratio(
    inside: ArrayLike, n_inside: ArrayLike, outside: ArrayLike, n_outside: ArrayLike
) -> Floats:
    """Log odds inside minus log odds outside, with ½ added to every one of the four cells.

    The ½ is always added, not only where a cell is empty, so that the value is one function of the
    counts. `inside` and `outside` count exemplars and need not be whole (means over splits).

    >>> float(log_odds_ratio(8, 19, 8, 49).round(6))  # log(41.5 / 11.5)
    1.283346
    """
    a, n, c, m = (np.asarray(x, dtype=np.float64) for x in (inside, n_inside, outside, n_outside))
    odds: Floats = np.log((a + HALF) / (n - a + HALF)) - np.log((c + HALF) / (m - c + HALF))
    return odds


def log_odds_limits(
    inside: ArrayLike,
    n_inside: ArrayLike,
    outside: ArrayLike,
    n_outside: ArrayLike,
    alpha: float = 0.05,
) -> tuple[Floats, Floats]:
    """Limits of the log odds ratio: square-and-add of both sides' modified Wilson limits.

    Examples are sampled, the models are fixed. Exact coverage at 95 % for 10 to 300 examples inside
    and 200 or 2,000 outside, over a grid of shares: at least 92.9 % (10 inside), 93 % from 20 on.
    Woolf's limits with ½ in every cell cover as little as 82 % there, where less than one exemplar
    is expected inside. Infinite where everybody, or nobody, inside is an exemplar.

    References
    ----------
    Fagerland & Newcombe (2013), Statistics in Medicine 32, 2823-2836.

    Examples
    --------
    No exemplar among 10 says nothing from below: the lower limit is −∞.

    >>> low, high = log_odds_limits(0, 10, 20, 100)
    >>> float(low), bool(high > log_odds_ratio(0, 10, 20, 100))
    (-inf, True)
    """
    a, n, c, m = (np.asarray(x, dtype=np.float64) for x in (inside, n_inside, outside, n_outside))
    value = log_odds_ratio(a, n, c, m)
    here, there = np.log((a + HALF) / (n - a + HALF)), np.log((c + HALF) / (m - c + HALF))
    low_here, high_here = (logit(x) for x in wilson(a, n, alpha, modified=True))
    low_there, high_there = (logit(x) for x in wilson(c, m, alpha, modified=True))
    low: Floats = value - np.hypot(here - low_here, high_there - there)
    high: Floats = value + np.hypot(high_here - here, there - low_there)
    return low, high


@dataclass(frozen=True)
class Linear:
    """How a log odds ratio moves with the examples' own chances to be exemplars.

    Near the values at hand, it moves by `inside` per exemplar inside the part and by −`outside`
    per exemplar outside it, and `rates` are the chances there.
    """

    rates: tuple[float, float]
    slopes: tuple[float, float]

    @property
    def pseudo(self) -> float:
        """What the added halves contribute to the variance, as half a success and half a failure.

        With it, the sum of squared influences of a single mask is Woolf's variance: 1 over each of
        the four cells, ½ added.
        """
        return sum(
            HALF * ((1 - rate) ** 2 + rate**2) * slope**2
            for rate, slope in zip(self.rates, self.slopes, strict=True)
        )


def linear(inside: float, n_inside: float, outside: float, n_outside: float) -> Linear:
    """The derivative of `log_odds_ratio` in the number of exemplars inside and outside.

    >>> near = linear(8, 19, 8, 49)
    >>> mask = np.repeat([1.0, 0.0], [8, 11]), np.repeat([1.0, 0.0], [8, 41])
    >>> squares = [((m - r) ** 2).sum() * s**2 for m, r, s in zip(mask, near.rates, near.slopes)]
    >>> float(round(sum(squares) + near.pseudo, 6)) == round(2 / 8.5 + 1 / 11.5 + 1 / 41.5, 6)
    True
    """
    rates = (inside + HALF) / (n_inside + 1), (outside + HALF) / (n_outside + 1)
    slopes = (
        1 / (rates[0] * (1 - rates[0]) * (n_inside + 1)),
        1 / (rates[1] * (1 - rates[1]) * (n_outside + 1)),
    )
    return Linear(rates, slopes)


def influences(
    near: Linear, within: Floats, n_within: Floats, without: Floats, n_without: Floats
) -> Floats:
    """The part that every unit (example or cluster) has in a log odds ratio, along the last axis.

    Parameters
    ----------
    within, without
        Sums of the unit's chances to be an exemplar, over its examples inside and outside.
    n_within, n_without
        How many those are.
    """
    moved: Floats = near.slopes[0] * (within - near.rates[0] * n_within) - near.slopes[1] * (
        without - near.rates[1] * n_without
    )
    return moved


# The chance of every example to be an exemplar, over many choices of who stands on either side.

EXAMPLES = 512  # at a time: a few megabytes per distinct answer


@dataclass(frozen=True)
class Definition:
    """A definition of exemplars: a kind, and the percentile of its cut where it has one."""

    kind: str  # modal, unanimous, taxicab, jaccard
    percentile: float = math.nan

    @property
    def by_distance(self) -> bool:
        return not math.isnan(self.percentile)


def chances(
    prediction: Answer,
    n_examples: int,
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    definitions: Sequence[Definition],
    rule: TieRule,
    rng: np.random.Generator,
) -> Floats:
    """Mean over draws of being an exemplar, (definitions, examples given).

    Ties at a percentile's cut count with the chance that a draw among them would take them, which
    is what random draws come to on average.

    Parameters
    ----------
    prediction
        (members, examples about which anybody differs).
    n_examples
        All examples, with those about which nobody differs: a percentile is a share of them.
    first, second
        (draws, members): who stands on either side, equally many in every draw.
    """
    n_first, n_second = int(first[0].sum()), int(second[0].sum())
    levels = 2 * scale_of(n_first, n_second) + 1
    draws, size = len(first), prediction.shape[1]
    level = np.zeros((draws, size), dtype=np.min_scalar_type(levels))
    found = np.zeros((len(definitions), size))
    for start in range(0, size, EXAMPLES):
        here = slice(start, start + EXAMPLES)
        block = prediction[:, here].copy()
        given = [
            (place, answer, members.astype(np.float32))
            for place, answer, members in distinct_answers(block.copy())
        ]
        votes = votes_of_draws(given, first, second, n_first, n_second, block.shape[1])
        level[:, here] = taxicab(votes)
        if all(one.by_distance for one in definitions):
            continue
        modes = modal(votes, rule, rng)
        for row, one in enumerate(definitions):
            if not one.by_distance:
                mask = modes.exemplar if one.kind == "modal" else modes.unanimous
                found[row, here] = mask.mean(axis=0)
    if not any(one.by_distance for one in definitions):
        return found
    number = np.stack([np.bincount(row, minlength=levels) for row in level])
    for row, one in enumerate(definitions):
        if one.by_distance:
            wanted = math.floor(n_examples * (100 - one.percentile) / 100 + 1e-9)
            taken = taken_at(number, wanted)
            found[row] = np.take_along_axis(taken, level.astype(np.intp), axis=1).mean(axis=0)
    return found


def taken_at(number: NDArray[np.integer], wanted: int) -> Floats:
    """The share of the examples at every distance that a cut takes, from the furthest on.

    Parameters
    ----------
    number
        (draws, distances): how many examples lie at each distance; those at 0 are never taken.
    wanted
        How many are asked for.

    Examples
    --------
    Two at distance 4, five at 2: asked for four, both of the first and 2/5 of the others.

    >>> taken_at(np.array([[9, 0, 5, 0, 2]]), 4).tolist()
    [[0.0, 0.0, 0.4, 1.0, 1.0]]
    """
    from_here = np.cumsum(number[:, ::-1], axis=1)[:, ::-1]
    left = wanted - (from_here - number)
    taken: Floats = np.where(
        number > 0, np.clip(left / np.maximum(number, 1), 0.0, 1.0), left > 0
    ).astype(np.float64)
    taken[:, 0] = 0.0
    return taken


# How often each example is an exemplar at matched sizes: of compression, and of retraining alone.
#
# Every split sets k baseline members against k others: for compression these are compressed, for
# retraining they are baseline members too. Where compressed members descend from baseline ones,
# the children of a split's second half stand where that half stands for retraining: nobody is
# compared with a parent, and the two comparisons differ in nothing but the compression of one side.

LEFT_OUT_SPLITS = 100  # of the remaining members, for every unit left out
MOST_COMPARED = 10**8  # (split, example) pairs held at a time, beyond which there are fewer splits
FEWEST_SPLITS = 10

SIDES = COMPRESSED, RETRAINED = 0, 1


@dataclass(frozen=True)
class OddsRows:
    """What may stand on either side: rows of `prediction`.

    Unit i of both sides belongs together where `paired`; several children of one parent are one
    unit, and one of them stands for it in every split.
    """

    dense: tuple[int, ...]
    compressed: tuple[tuple[int, ...], ...]
    paired: bool

    @property
    def size(self) -> int:
        """Members on either side of a split."""
        return matched_size(len(self.dense), len(self.compressed))

    def without(self) -> tuple[tuple[OddsRows, ...], ...]:
        """The units without each one in turn: pairs, or members of one side and then the other."""
        dense, compressed = self.dense, self.compressed
        fewer_dense = [dense[:i] + dense[i + 1 :] for i in range(len(dense))]
        fewer = [compressed[:i] + compressed[i + 1 :] for i in range(len(compressed))]
        if self.paired:
            both = zip(fewer_dense, fewer, strict=True)
            return (tuple(OddsRows(one, other, True) for one, other in both),)
        return (
            tuple(OddsRows(one, compressed, False) for one in fewer_dense),
            tuple(OddsRows(dense, other, False) for other in fewer),
        )


@dataclass(frozen=True)
class Rates:
    """Chances of each example to be an exemplar, means over splits, (2, definitions, examples).

    The first axis is COMPRESSED, RETRAINED. `left_out` holds the same without each unit in turn,
    (units, 2, definitions, examples), one array for every kind of unit that varies by itself.
    """

    mean: Floats
    left_out: tuple[Floats, ...]


def retrained_rates(
    prediction: Answer,
    n_examples: int,
    units: OddsRows,
    definitions: Sequence[Definition],
    rule: TieRule,
    rng: np.random.Generator,
    *,
    left_out: bool,
) -> Rates:
    """Average the exemplars over splits of all units, and over splits without each of them.

    Parameters
    ----------
    prediction
        (members, examples about which anybody differs), rows as `units` counts them.
    n_examples
        All examples, with those about which nobody differs.
    left_out
        Whether splits without each unit are wanted: there must be at least 3 on either side.
    """
    given = prediction, n_examples, definitions, rule, rng
    without = units.without() if left_out else ()
    return Rates(
        _mean_chances(units, MOST_SPLITS, *given),
        tuple(
            np.stack([_mean_chances(one, LEFT_OUT_SPLITS, *given) for one in several])
            for several in without
        ),
    )


def _mean_chances(
    units: OddsRows,
    most: int,
    prediction: Answer,
    n_examples: int,
    definitions: Sequence[Definition],
    rule: TieRule,
    rng: np.random.Generator,
) -> Floats:
    """Chances of compression and of retraining, means over splits, (2, definitions, examples)."""
    number = max(FEWEST_SPLITS, min(most, MOST_COMPARED // max(prediction.shape[1], 1)))
    one, other = (side > 0 for side in splits(len(units.dense), units.size, rng))
    if len(one) > number:
        chosen = rng.choice(len(one), size=number, replace=False)
        one, other = one[chosen], other[chosen]
    dense = np.array(units.dense)
    # Who stands on the first side, and who on the second: compressed, and retrained members.
    first, *seconds = np.zeros((3, len(one), len(prediction)), dtype=bool)
    for i, (here, there) in enumerate(zip(one, other, strict=True)):
        standing = (
            np.flatnonzero(there)
            if units.paired
            else rng.permutation(len(units.compressed))[: units.size]
        )
        first[i, dense[here]] = True
        for children in (units.compressed[u] for u in standing):
            seconds[0][i, children[0] if len(children) == 1 else rng.choice(children)] = True
        seconds[1][i, dense[there]] = True
    return np.stack(
        [chances(prediction, n_examples, first, one, definitions, rule, rng) for one in seconds]
    )


# The odds ratios of a part among exemplars of compression and of retraining, and their ratio.

# Which parts of (compression, retraining) make up a quantity.
MATCHED, RETRAINING, RATIO = (1.0, 0.0), (0.0, 1.0), (1.0, -1.0)


@dataclass(frozen=True)
class Sampled:
    """What is drawn when examples are: clusters, or single examples.

    `live` are the places of the examples about which anybody differs; all others are never
    exemplars and enter as numbers only.
    """

    live: NDArray[np.intp]
    n_examples: int
    cluster: NDArray[np.int64] | None = None

    @cached_property
    def n_clusters(self) -> int:
        return 0 if self.cluster is None else int(self.cluster.max(initial=-1)) + 1

    @cached_property
    def _by_cluster(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        assert self.cluster is not None
        of = self.cluster[self.live]
        order = np.argsort(of, kind="stable")
        present, start = np.unique(of[order], return_index=True)
        return order, start, present

    def sums(self, values: Floats) -> Floats:
        """Sums over the units of values of the live examples, along the last axis.

        Single examples are their own units; two more stand for those about which nobody differs,
        inside and outside a part.
        """
        if self.cluster is None:
            return np.concatenate([values, np.zeros((*values.shape[:-1], 2))], axis=-1)
        order, start, present = self._by_cluster
        total = np.zeros((*values.shape[:-1], self.n_clusters))
        if len(present):
            total[..., present] = np.add.reduceat(values[..., order], start, axis=-1)
        return total

    def sizes(self, inside: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
        """Examples of every unit inside and outside a part, and how often the unit is repeated."""
        if self.cluster is None:
            here = inside[self.live].astype(float)
            dead = inside.sum() - here.sum(), (~inside).sum() - (1 - here).sum()
            return (
                np.concatenate([here, [1.0, 0.0]]),
                np.concatenate([1 - here, [0.0, 1.0]]),
                np.concatenate([np.ones(len(here)), dead]),
            )
        within = np.bincount(self.cluster[inside], minlength=self.n_clusters).astype(np.float64)
        everyone = np.bincount(self.cluster, minlength=self.n_clusters).astype(np.float64)
        return within, everyone - within, np.ones(self.n_clusters)

    def clusters_of(self, code: Codes, levels: int) -> NDArray[np.float64]:
        """Distinct clusters with an example in each level; NaN without clusters."""
        if self.cluster is None:
            return np.full(levels, np.nan)
        pairs = np.unique(np.stack([code.astype(np.int64), self.cluster]), axis=1)
        return np.bincount(pairs[0], minlength=levels).astype(float)


@dataclass(frozen=True)
class OddsRatios:
    """Log odds ratios of one part and one cut, with everything their variances are made of."""

    value: Floats  # (2,): COMPRESSED, RETRAINED
    left_out: tuple[Floats, ...]  # (units left out, 2)
    influence: Floats  # (2, units)
    left_out_influence: tuple[Floats, ...]  # (units left out, 2, units)
    pseudo: Floats  # (2,): the variance of the added halves
    repeated: Floats  # (units,)

    def estimate(self, quantity: tuple[float, float]) -> TwoWay:
        """A combination of both log odds ratios, with members and examples sampled.

        Members: the jackknife over units of members, (J − 1) / J Σ (T₋ⱼ − T̄)², which needs no
        formula for how a member moves a percentile cut. Examples: squared influences of examples
        (clusters) on both odds ratios at once, so what they share cancels. The part of single
        answers is in both and is taken off once, as for any mean over members and examples
        (`intervals/two_way.py`). Measured: docs/statistics.md.
        """
        mix = np.array(quantity)
        n = float(self.repeated.sum())
        moved = mix @ self.influence
        by_example = float(n / (n - 1) * (moved**2 * self.repeated).sum() + (mix**2) @ self.pseudo)
        members: list[Term] = []
        for values, parts in zip(self.left_out, self.left_out_influence, strict=True):
            j = len(values)
            scale = (j - 1) / j
            without = values @ mix
            spread = scale * ((without - without.mean()) ** 2).sum()
            apart = np.einsum("q,jqu->ju", mix, parts)
            apart = apart - apart.mean(axis=0)
            alone = (apart**2 * self.repeated).sum() - ((apart @ self.repeated) ** 2).sum() / n
            # Not the plain two-way sum: splits are drawn, and what their drawing adds to the spread
            # over members is in the part of single answers too, so the difference is free of it.
            members.append((max(spread - scale * alone, 0.0), j - 1))
        return two_way(float(mix @ self.value), members, (by_example, n - 1), [])


def odds_ratios(rates: Rates, cut: int, inside: NDArray[np.bool_], sampled: Sampled) -> OddsRatios:
    """Both log odds ratios of a part, from the mean chances of every example.

    The odds are those of the mean share over splits, not means of log odds: in a small part many
    splits have no exemplar at all, and the mean of their log odds says more about the ½ that is
    added than about the part.
    """
    here = inside[sampled.live]
    n_in, n_out = float(inside.sum()), float((~inside).sum())
    n_within, n_without, repeated = sampled.sizes(inside)
    near: list[Linear] = []
    values, moved = [], []
    for rate in (rates.mean, *rates.left_out):
        chosen = rate[..., cut, :].astype(np.float64)
        a, c = (chosen * here).sum(axis=-1), (chosen * ~here).sum(axis=-1)  # exemplars, (..., 2)
        near = near or [linear(float(a[q]), n_in, float(c[q]), n_out) for q in SIDES]
        values.append(log_odds_ratio(a, n_in, c, n_out))
        within, without = sampled.sums(chosen * here), sampled.sums(chosen * ~here)
        sides = [
            influences(near[q], within[..., q, :], n_within, without[..., q, :], n_without)
            for q in SIDES
        ]
        moved.append(np.stack(sides, axis=-2))
    return OddsRatios(
        value=values[0],
        left_out=tuple(values[1:]),
        influence=moved[0],
        left_out_influence=tuple(moved[1:]),
        pseudo=np.array([one.pseudo for one in near]),
        repeated=repeated,
    )
