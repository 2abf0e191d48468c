"""Risk scores of classes, groups and whole tasks: means over their examples, with limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.compare.comparison import MIN_CLUSTERS
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.partitions import Partition, training_sizes
from fairweight.auditing.exemplars.risk_scores import MEANINGS as OF_EXAMPLES
from fairweight.auditing.exemplars.risk_scores import risk_scores
from fairweight.auditing.intervals.linearised import linearised
from fairweight.auditing.intervals.wilson import wilson

ERROR_RATE, RARITY = "error_rate", "rarity"
MEANINGS = {
    ERROR_RATE: "share of the dense model's answers that are wrong",
    RARITY: "how many times rarer than an even share of the training data",
    **OF_EXAMPLES,
}


@dataclass(frozen=True)
class Limited:
    """A number with its limits; NaN where it has none."""

    value: float
    low: float
    high: float


def scores_of_examples(answers: Answers) -> dict[str, Floats]:
    """What can be averaged over a part: errors, and the risk scores of single examples."""
    wrong: Floats = 1 - answers.correct(answers.baseline).mean(axis=0)
    return {ERROR_RATE: wrong, **risk_scores(answers)}


def mean_of(
    score: Floats, part: NDArray[np.bool_], cluster: NDArray[np.int64] | None, alpha: float
) -> Limited:
    """The mean over a part's examples, which (or whose clusters) are sampled; all in [0, 1].

    Wilson's limits where every value is 0 or 1, linearised ones else; NaN below 20 clusters.
    """
    here = part & ~np.isnan(score)
    x = score[here]
    n = len(x)
    if n < 2:
        return Limited(float(x.mean()) if n else np.nan, np.nan, np.nan)
    if cluster is None and np.isin(x, (0.0, 1.0)).all():
        low, high = wilson(x.sum(), n, alpha, modified=True)
        return Limited(float(x.mean()), float(low), float(high))
    if cluster is None:
        total, size = x, np.ones(n)
    else:
        unit = np.unique(cluster[here], return_inverse=True)[1]
        total = np.bincount(unit, weights=x).astype(np.float64)
        size = np.bincount(unit).astype(np.float64)
        if len(size) < MIN_CLUSTERS:
            return Limited(float(x.mean()), np.nan, np.nan)
    low, high, _ = linearised(
        total.sum(), size.sum(), total @ total, total @ size, size @ size, len(size), alpha
    )
    return Limited(float(x.mean()), float(low), float(high))


def beyond(inside: Limited, outside: Limited) -> Limited:
    """The difference of two means from their limits (Newcombe's square-and-add).

    >>> found = beyond(Limited(0.5, 0.4, 0.6), Limited(0.2, 0.1, 0.3))
    >>> [round(x, 3) for x in (found.value, found.low, found.high)]
    [0.3, 0.159, 0.441]
    """
    value = inside.value - outside.value
    down = np.hypot(inside.value - inside.low, outside.high - outside.value)
    up = np.hypot(inside.high - inside.value, outside.value - outside.low)
    return Limited(value, value - float(down), value + float(up))


def rarity(answers: Answers, partition: Partition, alpha: float) -> list[Limited] | None:
    """1 / (levels × share of the training data) of every level; None without training data.

    An even share has rarity 1, half of it 2. Limits are Wilson's of the share.
    """
    sizes = training_sizes(answers, partition)
    if sizes is None or not sizes.sum():
        return None
    levels = int((~partition.missing).sum())
    total = sizes.sum()
    low, high = wilson(sizes, total, alpha, modified=True)
    with np.errstate(divide="ignore"):
        values = (1 / (levels * np.stack([sizes / total, high, low]))).T
    return [Limited(*(float(x) for x in row)) for row in values]
