"""Metrics of scores: AUC, calibration errors, calibration gap, Brier score.

Scores do not reduce to counts per class. The examples of one model are held as a `ScoreColumn`,
sorted once; every replicate is a row of weights (how often each example was drawn), so all
replicates of all slices cost one pass over the sorted column.

More than two classes: one column per class, one-vs-rest; the AUC is then the unweighted mean over
classes, the Brier score the sum (its original definition).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.counts import ratio, sums
from fairweight.auditing.metrics.registry import Harm, auc_loss, brier_loss, register
from fairweight.base.types import Floats

Integers: TypeAlias = NDArray[np.intp]
Definition: TypeAlias = Literal["ece", "ece_top_label"]

EQUAL_BUCKETS = 10  # of `ece`; a score of exactly 1 falls into one more
BIASED = "biased upwards; see calibration_error_sq"  # the plug-in calibration errors
TOP_LABEL_BINS = 15
NEARLY_NORMAL = 100.0  # variance of a sum of coins whose mean deviation is normal to .1 %
SLAB_VALUES = 2**18
score_metric = partial(register, kind="score", by=("overall", "group"), low=0, high=1)


@dataclass(frozen=True)
class ScoreColumn:
    """Scores of one model: a row per example, or per distinct value with its multiplicity outside.

    `outcome` is 1 where that happened whose probability `score` states: the label is positive, or
    (top label) the prediction is right.
    """

    score: Floats  # (n,) in [0, 1]
    outcome: Floats  # (n,) 0 or 1
    slice: Integers  # (n,) index of the slice, -1 in none
    n_slices: int

    @cached_property
    def ranked(self) -> Ranked:
        """The rows in order of slice and score, sorted once."""
        return Ranked.of(self)


@dataclass(frozen=True)
class Blocks:
    """Consecutive runs of sorted rows, to be summed by `np.add.reduceat`."""

    starts: Integers  # (B,) first row of each run
    key: Integers  # (B,) what the run is of

    @staticmethod
    def of(sorted_keys: Integers) -> Blocks:
        changes = np.flatnonzero(np.diff(sorted_keys, prepend=sorted_keys[:1] - 1))
        return Blocks(changes, sorted_keys[changes])

    def sums(self, values: Floats, n_keys: int) -> Floats:
        """Sums of `values` (R, n) over the runs, placed by key: (R, n_keys), 0 without a run."""
        out = np.zeros((values.shape[0], n_keys))
        if len(self.starts):
            out[:, self.key] = np.add.reduceat(values, self.starts, axis=1)
        return out


@dataclass(frozen=True)
class Ranked:
    """Sorted rows, in runs of equal score (ties), in runs of one slice."""

    order: Integers  # rows of the column that lie in a slice, by slice, then score
    outcome: Floats
    slices: Blocks  # of rows
    ties: Blocks | None  # of rows; None where no two scores of a slice are equal
    slices_of_ties: Blocks  # of ties

    @staticmethod
    def of(column: ScoreColumn) -> Ranked:
        inside = np.flatnonzero(column.slice >= 0)
        order = inside[np.lexsort((column.score[inside], column.slice[inside]))]
        slices, scores = column.slice[order], column.score[order]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (slices[1:] != slices[:-1]) | (scores[1:] != scores[:-1])
        starts = np.flatnonzero(new)
        return Ranked(
            order=order,
            outcome=np.asarray(column.outcome, dtype=np.float64)[order],
            slices=Blocks.of(slices),
            ties=None if len(starts) == len(order) else Blocks(starts, np.arange(len(starts))),
            slices_of_ties=Blocks.of(slices[starts]),
        )

    def by_tie(self, values: Floats) -> Floats:
        """Sums of `values` (R, n sorted) over rows of equal score."""
        return values if self.ties is None else self.ties.sums(values, len(self.ties.starts))


def _two_dimensional(weights: Floats) -> Floats:
    return np.atleast_2d(np.asarray(weights, dtype=np.float64))


def _in_slabs(weights: Floats, order: Integers, of_drawn: Callable[[Floats], Floats]) -> Floats:
    """`of_drawn` on the sorted weights of a few replicates at a time: (R, S).

    Slabs that fit the processor's cache are several times faster than one pass over everything,
    and the memory needed does not grow with the number of replicates.
    """
    weights = _two_dimensional(weights)
    rows = max(1, SLAB_VALUES // max(1, weights.shape[1]))
    starts = range(0, max(1, len(weights)), rows)
    return np.concatenate([of_drawn(weights[i : i + rows, order]) for i in starts])


@score_metric(
    better="higher",
    label="AUC",
    chance=0.5,
    summary="area under the ROC curve of the scores",
    formula="P(score of a positive > score of a negative) + P(equal) / 2",
    source="standard (scikit-learn roc_auc_score); Iofinova et al. 2023, Sinha and Groover",
    undefined="no positive or no negative examples",
    needs={"score", "positive"},
    harm=Harm(auc_loss, "score"),
    unit="share",
)
def auc(column: ScoreColumn, weights: Floats) -> Floats:
    """Probability that a positive's score exceeds a negative's, ties counted half: (R, S).

    Higher is better; in [0, 1], .5 is chance. NaN in a slice without positives or negatives.

    >>> column = ScoreColumn(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0.0, 0.0, 1.0, 1.0]),
    ...                      np.zeros(4, dtype=np.intp), n_slices=1)
    >>> auc(column, np.ones((1, 4))).tolist()  # 3 of the 4 pairs are in order
    [[0.75]]
    """
    return _in_slabs(weights, column.ranked.order, lambda drawn: _auc(column, drawn))


def _auc(column: ScoreColumn, drawn: Floats) -> Floats:
    ranked, n_slices = column.ranked, column.n_slices
    positive = ranked.by_tie(drawn * ranked.outcome)
    negative = ranked.by_tie(drawn * (1 - ranked.outcome))
    positives = ranked.slices_of_ties.sums(positive, n_slices)
    negatives = ranked.slices_of_ties.sums(negative, n_slices)
    # A positive beats the negatives before it and half of its ties ...
    beaten = np.cumsum(negative, axis=1)
    negative /= 2
    beaten -= negative
    beaten *= positive
    # ... less those of the slices before its own, which the running sum has counted too.
    earlier = np.cumsum(negatives, axis=1) - negatives
    pairs = ranked.slices_of_ties.sums(beaten, n_slices) - positives * earlier
    return ratio(pairs, positives * negatives)


@score_metric(
    better="lower",
    summary="mean squared difference of score and outcome",
    formula="mean (p - y)^2",
    source="Brier 1950; scikit-learn brier_score_loss",
    undefined="no examples",
    needs={"score", "positive"},
    harm=Harm(brier_loss, "score"),
)
def brier(column: ScoreColumn, weights: Floats) -> Floats:
    """Mean squared difference of the score and the 0/1 outcome: (R, S).

    >>> column = ScoreColumn(np.array([0.5, 1.0]), np.array([0.0, 1.0]),
    ...                      np.zeros(2, dtype=np.intp), n_slices=1)
    >>> brier(column, np.ones((1, 2))).tolist()  # (.25 + 0) / 2
    [[0.125]]
    """
    return _mean_in_slices(column, weights, (column.score - column.outcome) ** 2)


def _mean_in_slices(column: ScoreColumn, weights: Floats, value: Floats) -> Floats:
    """The weighted mean of a value per row in every slice: (R, S)."""
    ranked = column.ranked
    ordered = value[ranked.order]

    def of_drawn(drawn: Floats) -> Floats:
        n = ranked.slices.sums(drawn, column.n_slices)
        return ratio(ranked.slices.sums(drawn * ordered, column.n_slices), n)

    return _in_slabs(weights, ranked.order, of_drawn)


def bin_of(score: Floats, definition: Definition) -> Integers:
    """The bin of each score.

    >>> bin_of(np.array([0.0, 0.1, 0.99, 1.0]), "ece").tolist()  # [lo, hi), and 1 by itself
    [0, 1, 9, 10]
    >>> bin_of(np.array([0.0, 1 / 15, 0.5, 1.0]), "ece_top_label").tolist()  # (lo, hi]
    [0, 0, 7, 14]
    """
    if definition == "ece":
        return np.floor(np.asarray(score) * EQUAL_BUCKETS).astype(np.intp)
    # How many edges lie below: several times faster than searching them for every score.
    below = np.zeros(np.shape(score), dtype=np.uint8)
    for edge in np.arange(1, TOP_LABEL_BINS) / TOP_LABEL_BINS:
        below += score > edge
    return below.astype(np.intp)


def bin_edges(definition: Definition) -> tuple[Floats, Floats]:
    """Low and high ends of the bins."""
    if definition == "ece":
        low = np.arange(EQUAL_BUCKETS + 1) / EQUAL_BUCKETS
        return low, np.append(low[1:], 1.0)
    edges = np.arange(TOP_LABEL_BINS + 1) / TOP_LABEL_BINS
    return edges[:-1], edges[1:]


def _keys(
    column: ScoreColumn, definition: Definition
) -> tuple[Integers, Integers, tuple[int, int]]:
    """The rows that lie in a slice, slice × bins + bin of each, and how many there are of both."""
    bins = len(bin_edges(definition)[0])
    inside = np.flatnonzero(column.slice >= 0)
    keys = column.slice[inside] * bins + bin_of(column.score[inside], definition)
    return inside, keys, (column.n_slices, bins)


def _in_runs(keys: Integers) -> tuple[Integers, Blocks]:
    """The order that brings equal keys together, and their runs in it."""
    # Short integers are sorted by counting, several times faster.
    short = keys.max(initial=0) <= np.iinfo(np.uint16).max
    order = np.argsort(keys.astype(np.uint16) if short else keys, kind="stable")
    return order, Blocks.of(keys[order])


def _calibration_error(column: ScoreColumn, weights: Floats, definition: Definition) -> Floats:
    # The weighted gap of a bin is |sum w p - sum w y| / sum w: the bin's own share cancels.
    inside, keys, (slices, bins) = _keys(column, definition)
    order, runs = _in_runs(keys)
    order = inside[order]
    difference = column.score[order] - column.outcome[order]

    def in_slices(values: Floats) -> Floats:
        return runs.sums(values, slices * bins).reshape(-1, slices, bins)

    def of_drawn(drawn: Floats) -> Floats:
        gaps = np.abs(in_slices(drawn * difference)).sum(axis=-1)
        return ratio(gaps, in_slices(drawn).sum(axis=-1))

    return _in_slabs(weights, order, of_drawn)


@score_metric(
    better="lower",
    label="calibration error (ECE)",
    summary="expected calibration error of the positive class's probability, ten buckets",
    formula="sum_b n_b / n |mean p_b - mean label_b|, b = floor(10 p) / 10 (p = 1 by itself)",
    source="Iofinova et al. 2023, ECE (on P(positive), not on the top label's confidence)",
    undefined="no examples",
    needs={"score", "positive"},
    no_limits=BIASED,
    unit="share",
    instead="calibration_error_sq",
)
def ece(column: ScoreColumn, weights: Floats) -> Floats:
    """Expected calibration error of P(positive), as in Iofinova et al. 2023: (R, S).

    Lower is better; in [0, 1], above 0 by chance alone, in small slices far above (see
    `expected_ece_if_calibrated`): so it has no limits, and `calibration_error_sq` is what is
    tested. NaN in a slice without examples.

    >>> column = ScoreColumn(np.array([0.25, 0.25, 0.75]), np.array([0.0, 1.0, 1.0]),
    ...                      np.zeros(3, dtype=np.intp), n_slices=1)
    >>> ece(column, np.ones((1, 3))).tolist()  # 2/3 |.25 - .5| + 1/3 |.75 - 1|
    [[0.25]]
    """
    return _calibration_error(column, weights, "ece")


@score_metric(
    better="lower",
    summary="expected calibration error of the predicted class's confidence, fifteen bins",
    formula="sum_b n_b / n |mean confidence_b - accuracy_b|, 15 bins (lo, hi]",
    source="Guo et al. 2017",
    undefined="no examples",
    needs={"score"},
    no_limits=BIASED,
    unit="share",
    instead="calibration_error_sq",
    signature="top_label",
)
def ece_top_label(column: ScoreColumn, weights: Floats) -> Floats:
    """Expected calibration error of the predicted class: (R, S).

    Here `score` is the confidence of the prediction and `outcome` whether it is right. Lower is
    better; in [0, 1], above 0 by chance alone, and without limits for that reason (see
    `calibration_error_sq`). NaN in a slice without examples.

    >>> column = ScoreColumn(np.array([0.9, 0.9, 0.6]), np.array([1.0, 0.0, 1.0]),
    ...                      np.zeros(3, dtype=np.intp), n_slices=1)
    >>> ece_top_label(column, np.ones((1, 3))).round(6).tolist()  # 2/3 |.9 - .5| + 1/3 |.6 - 1|
    [[0.4]]
    """
    return _calibration_error(column, weights, "ece_top_label")


def leave_one_out_gaps(
    residual: Floats, key: Integers, n_keys: int, weight: Floats, count: Floats
) -> Floats:
    """h_i = r_i × the weighted mean of r over the other examples with i's key: (n,).

    `key` is the bin (and slice) of a row, `count` how many examples of `weight` each it stands for.
    An example alone in its bin has no others: its h is 0.

    >>> residual, key = np.array([0.5, -0.25, 0.75]), np.array([0, 0, 1])
    >>> leave_one_out_gaps(residual, key, 2, np.ones(3), np.ones(3)).tolist()
    [-0.125, -0.125, 0.0]
    """
    total = sums(key, count * weight * residual, n_keys)[key]
    others = sums(key, count * weight, n_keys)[key] - weight
    alone = others <= 1e-9 * weight
    gaps: Floats = residual * (total - weight * residual) / np.where(alone, 1.0, others)
    return np.where(alone, 0.0, gaps)


@score_metric(
    better="lower",
    low=-1,
    summary="squared calibration error without the upward bias of ECE",
    formula="mean h_i, h_i = r_i x mean of r over the other examples in i's bin, "
    "r = score - outcome, 15 bins (lo, hi]",
    source="the squared error corrected for bias of Kumar et al. 2019, leave-one-out form",
    undefined="no examples",
    needs={"score"},
    linear=True,
    signature="promise",
)
def calibration_error_sq(column: ScoreColumn, weights: Floats) -> Floats:
    """Squared gap of score and outcome per bin, unbiased within bins: (R, S).

    `score` is P(positive) and `outcome` whether the label is positive; with more than two classes
    the confidence of the prediction and whether it is right. Lower is better. The true value lies
    in [0, 1]; the estimate, in [-1, 1], may fall below 0 by chance where a model is calibrated. An
    example alone in its bin adds 0. Weights are those of single examples. NaN in a slice without
    examples.

    >>> column = ScoreColumn(np.array([0.5, 0.5, 0.5, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]),
    ...                      np.zeros(4, dtype=np.intp), n_slices=1)
    >>> # r = .5, .5, -.5, -.1; the last is alone: (.5 x 0 + .5 x 0 - .5 x .5 + 0) / 4
    >>> calibration_error_sq(column, np.ones((1, 4))).tolist()
    [[-0.0625]]
    """
    bins = TOP_LABEL_BINS
    inside = np.flatnonzero(column.slice >= 0)
    residual = (column.score - column.outcome)[inside]
    place = column.slice[inside]
    key = place * bins + bin_of(column.score[inside], "ece_top_label")
    found = []
    for weight in _two_dimensional(weights)[:, inside]:
        h = leave_one_out_gaps(
            residual, key, column.n_slices * bins, weight, np.ones(len(residual))
        )
        total = sums(place, weight * h, column.n_slices)
        found.append(ratio(total, sums(place, weight, column.n_slices)))
    return np.stack(found)


@score_metric(
    better="zero",
    low=-1,
    summary="mean score less the share of outcomes: above 0 the scores promise too much",
    formula="mean score - mean outcome, signed",
    source="calibration in the large (Cox 1958; Van Calster et al. 2019)",
    undefined="no examples",
    needs={"score"},
    linear=True,
    unit="share",
    instead="calibration_error_sq",
    signature="promise",
)
def calibration_gap(column: ScoreColumn, weights: Floats) -> Floats:
    """Mean score minus mean outcome: (R, S).

    `score` and `outcome` are those of `calibration_error_sq`: above 0 the model promises more
    positives (more than two classes: more right predictions) than there are, below 0 fewer. 0 is
    best and harm is distance from 0, so a shift says which way the gap moved, not that it grew:
    -.05 to -.01 is a shift of +.04 and an improvement. In [-1, 1]. NaN in a slice without examples.

    >>> column = ScoreColumn(np.array([0.5, 0.75, 0.75]), np.array([0.0, 1.0, 0.0]),
    ...                      np.zeros(3, dtype=np.intp), n_slices=1)
    >>> calibration_gap(column, np.ones((1, 3))).round(6).tolist()  # 2/3 - 1/3
    [[0.333333]]
    """
    return _mean_in_slices(column, weights, column.score - column.outcome)


def reliability(
    column: ScoreColumn, definition: Definition, weights: Floats | None = None
) -> dict[str, Floats]:
    """The bins behind a calibration error, whose value is the sum of `contribution`.

    `low` and `high` are (bins,); `n`, `mean_score`, `mean_outcome` and `contribution` are
    (slices, bins). Empty bins have no means and contribute 0; an empty slice contributes NaN.

    >>> column = ScoreColumn(np.array([0.25, 0.25, 0.75]), np.array([0.0, 1.0, 1.0]),
    ...                      np.zeros(3, dtype=np.intp), n_slices=1)
    >>> bins = reliability(column, "ece")
    >>> bins["n"][0, [2, 7]].tolist(), float(bins["contribution"].sum())
    ([2.0, 1.0], 0.25)
    """
    inside, keys, (slices, n_bins) = _keys(column, definition)
    weight = np.ones(len(column.score)) if weights is None else np.ravel(weights)
    n, scores, outcomes = (
        sums(keys, (weight * values)[inside], slices * n_bins).reshape(slices, n_bins)
        for values in (1.0, column.score, column.outcome)
    )
    mean_score, mean_outcome = ratio(scores, n), ratio(outcomes, n)
    share = ratio(n, n.sum(axis=-1, keepdims=True))
    gap = np.where(n > 0, np.abs(mean_score - mean_outcome), 0.0)
    low, high = bin_edges(definition)
    return {
        "low": low,
        "high": high,
        "n": n,
        "mean_score": mean_score,
        "mean_outcome": mean_outcome,
        "contribution": share * gap,
    }


def expected_ece_if_calibrated(
    column: ScoreColumn,
    definition: Definition,
    n_draws: int,
    rng: np.random.Generator,
    counts: NDArray[np.int64] | None = None,
) -> Floats:
    """Mean calibration error of a calibrated model with these scores, per slice (S,).

    The outcomes are Bernoulli(score); what remains is the noise of that number of examples. The sum
    of a bin is normal where its variance is at least `NEARLY_NORMAL`: E|sum| = sqrt(2 / pi
    variance). In smaller bins outcomes are drawn `n_draws` times. `counts` is the multiplicity of
    each row where rows are distinct values.

    >>> column = ScoreColumn(np.full(50, 0.55), np.ones(50), np.zeros(50, dtype=np.intp), 1)
    >>> value = expected_ece_if_calibrated(column, "ece", 2000, np.random.default_rng(0))
    >>> bool(0.05 < value[0] < 0.065)  # E|mean - .55| = sqrt(2 / pi * .55 * .45 / 50) = .056
    True
    """
    inside, keys, (slices, bins) = _keys(column, definition)
    score = column.score[inside]
    times = np.ones(len(score), dtype=np.int64) if counts is None else counts[inside]
    variance = sums(keys, times * score * (1 - score), slices * bins).reshape(1, slices, bins)
    normal = variance >= NEARLY_NORMAL
    gaps = np.where(normal, np.sqrt(2 / np.pi * variance), 0.0).sum(axis=-1)
    total = sums(keys, times, slices * bins).reshape(slices, bins).sum(axis=-1)
    drawn = np.flatnonzero(~normal.reshape(-1)[keys])
    if len(drawn):
        order, runs = _in_runs(keys[drawn])
        score, times = score[drawn[order]], times[drawn[order]]
        shape = (n_draws, len(score))
        # One coin per row is a comparison, ten times cheaper than a general binomial.
        if (times == 1).all():
            apart = rng.random(shape)
            np.subtract(score, apart < score, out=apart)
        else:
            apart = times * score - rng.binomial(times, score, size=shape)
        in_bins = runs.sums(apart, slices * bins).reshape(n_draws, slices, bins)
        gaps = gaps + np.abs(in_bins).sum(axis=-1)
    mean: Floats = ratio(gaps, total).mean(axis=0)
    return mean
