"""Spread of accuracy over classes in one model."""

from __future__ import annotations

import numpy as np

from fairweight.auditing.counts.stats import Counts, Floats
from fairweight.auditing.metrics.rates import recall
from fairweight.auditing.metrics.registry import Event, register
from fairweight.auditing.metrics.summarise import mean_over_present


def _lowest_recall(counts: Counts) -> Floats:
    lowest: Floats = np.where(counts.label > 0, recall(counts), np.inf).min(axis=-1)
    return lowest


def _where_two_classes(values: Floats, counts: Counts) -> Floats:
    return np.where((counts.label > 0).sum(axis=-1) >= 2, values, np.nan)


@register(
    kind="value",
    by=("overall", "group"),
    better="lower",
    low=0,
    high=1,
    summary="highest minus lowest class accuracy",
    formula="max_c recall_c - min_c recall_c over classes with examples",
    source="Paganini 2020, Fig. 4a (unfairness)",
    undefined="fewer than two classes have examples",
    changed=Event("correct", "label"),
)
def class_gap(counts: Counts) -> Floats:
    """Highest minus lowest recall among the classes with examples.

    Lower is better; in [0, 1]. NaN where fewer than two classes have examples.

    >>> from fairweight.auditing.counts.stats import counts_of
    >>> float(class_gap(counts_of([0, 0, 1, 1], [0, 1, 1, 1])))
    0.5
    """
    highest = np.where(counts.label > 0, recall(counts), -np.inf).max(axis=-1)
    with np.errstate(invalid="ignore"):
        return _where_two_classes(highest - _lowest_recall(counts), counts)


@register(
    kind="value",
    by=("overall", "group"),
    better="lower",
    low=0,
    high=1,
    summary="mean minus lowest class accuracy",
    formula="mean_c recall_c - min_c recall_c over classes with examples",
    source="Paganini 2020, Fig. 4b (unfairness); the mean is unweighted",
    undefined="fewer than two classes have examples",
    changed=Event("correct", "label"),
)
def class_shortfall(counts: Counts) -> Floats:
    """Unweighted mean minus lowest recall among the classes with examples.

    Lower is better; in [0, 1]. NaN where fewer than two classes have examples.

    >>> from fairweight.auditing.counts.stats import counts_of
    >>> float(class_shortfall(counts_of([0, 0, 1, 1], [0, 1, 1, 1])))  # (.5 + 1) / 2 - .5
    0.25
    """
    mean = mean_over_present(recall(counts), counts)
    return _where_two_classes(mean - _lowest_recall(counts), counts)
