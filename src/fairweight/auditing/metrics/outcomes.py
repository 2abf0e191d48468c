"""Outcomes: one number per example and model in the place of label and prediction.

Four registrations, because which side is better and which unit it has belong to a metric: shares of
examples (outcomes that are 0 or 1, without a denominator) and ratios of sums, each of either side.
An audit has one of them.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from fairweight.auditing.metrics.registry import Event, register
from fairweight.base.types import Floats

OUTCOMES: Final = ("correct", "failed", "outcome", "cost")
ANY: Final = "outcome"  # what a policy may call whichever of them an audit has
KINDS: Final = ("overall", "group", "intersection")

_outcome = partial(
    register,
    kind="outcome",
    by=("overall", "group"),
    confirmatory=KINDS,
    source="Fieller 1954; Johnson 1978",
)


def ratio_of_sums(numerator: Floats, denominator: Floats) -> Floats:
    """Σ numerator / Σ denominator over the last axis; NaN where the denominators sum to 0.

    5 word errors in 40 words and 1 in 10: 6 / 50, not the mean of 1 / 8 and 1 / 10.

    >>> float(ratio_of_sums(np.array([5.0, 1.0]), np.array([40.0, 10.0])))
    0.12
    """
    total = denominator.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, numerator.sum(axis=-1) / total, np.nan)


@_outcome(
    better="higher",
    low=0,
    high=1,
    unit="share",
    label="share with outcome 1",
    summary="share of examples whose outcome is 1, where 1 is better",
    formula="sum outcome / n",
    undefined="no examples",
    event=Event("correct"),
)
def correct(numerator: Floats, denominator: Floats) -> Floats:
    """Share of examples whose outcome (0 or 1) is 1; higher is better.

    >>> float(correct(np.array([1.0, 0.0, 1.0, 1.0]), np.ones(4)))
    0.75
    """
    return ratio_of_sums(numerator, denominator)


@_outcome(
    better="lower",
    low=0,
    high=1,
    unit="share",
    label="share with outcome 1",
    summary="share of examples whose outcome is 1, where 0 is better",
    formula="sum outcome / n",
    undefined="no examples",
    event=Event("wrong"),
)
def failed(numerator: Floats, denominator: Floats) -> Floats:
    """Share of examples whose outcome (0 or 1) is 1; lower is better.

    >>> float(failed(np.array([1.0, 0.0, 0.0, 0.0]), np.ones(4)))
    0.25
    """
    return ratio_of_sums(numerator, denominator)


@_outcome(
    better="higher",
    low=-np.inf,
    high=np.inf,
    label="outcome",
    summary="mean outcome, or sum of outcomes over sum of denominators; higher is better",
    formula="sum outcome / sum denominator",
    undefined="no examples, or denominators that sum to 0",
)
def outcome(numerator: Floats, denominator: Floats) -> Floats:
    """Ratio of sums of an outcome of which more is better (F1, a judge's score, IoU).

    >>> float(outcome(np.array([3.0, 4.0]), np.ones(2)))
    3.5
    """
    return ratio_of_sums(numerator, denominator)


@_outcome(
    better="lower",
    low=-np.inf,
    high=np.inf,
    label="outcome (lower is better)",
    summary="mean outcome, or sum of outcomes over sum of denominators; lower is better",
    formula="sum outcome / sum denominator",
    undefined="no examples, or denominators that sum to 0",
)
def cost(numerator: Floats, denominator: Floats) -> Floats:
    """Ratio of sums of an outcome of which less is better (a loss, word errors per word).

    >>> float(cost(np.array([5.0, 1.0]), np.array([40.0, 10.0])))
    0.12
    """
    return ratio_of_sums(numerator, denominator)
