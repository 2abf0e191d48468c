"""One number from the values of several classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairweight.auditing.counts.stats import Counts, Floats
from fairweight.auditing.metrics.ratio import ratio

if TYPE_CHECKING:
    from fairweight.auditing.metrics.registry import Metric


def of_positive(values: Floats, counts: Counts) -> Floats:
    """The value of the positive class; NaN where there is none (`values` are (..., C))."""
    if counts.positive is None:
        return np.full(values.shape[:-1], np.nan)
    return np.asarray(values[..., counts.positive])


def mean_over_present(values: Floats, counts: Counts) -> Floats:
    """Unweighted mean over the classes that have examples in the slice.

    A class with examples whose value is undefined makes the mean undefined: leaving it out would
    reward a model for never predicting it.

    >>> counts = Counts(label=np.array([2.0, 3.0, 0.0]), predicted=np.array([5.0, 0.0, 0.0]),
    ...                 correct=np.array([2.0, 0.0, 0.0]), abstained=np.array(0.0),
    ...                 classes=("a", "b", "c"))
    >>> float(mean_over_present(np.array([0.4, 0.2, np.nan]), counts))  # "c" has no examples
    0.30000000000000004
    >>> float(mean_over_present(np.array([0.4, np.nan, 0.1]), counts))  # "b" has, and no value
    nan
    """
    present = counts.label > 0
    total = np.where(present, values, 0.0).sum(axis=-1)
    return ratio(total, present.sum(axis=-1))


def of_positive_or_mean(values: Floats, counts: Counts) -> Floats:
    """The value for overall and group rows from values per class (..., C).

    Binary labels: the value of the positive class, NaN without one. Otherwise the unweighted mean
    over the classes that have examples in the slice.
    """
    if counts.binary:
        return of_positive(values, counts)
    return mean_over_present(values, counts)


def summary_of(metric: Metric, values: Floats, counts: Counts) -> Floats:
    """What a metric's values are in an overall or group row: (...) whether `per_class` or not.

    A metric that needs a positive class (`selection_rate`) has no mean over classes: every mean
    of selection rates is 1 / classes.
    """
    if not metric.per_class:
        return values
    if "positive" in metric.needs:
        return of_positive(values, counts)
    return of_positive_or_mean(values, counts)
