"""Properties of a whole group column in one model: gaps, ratios, worst level.

Every function takes counts of shape (..., L, C), the L usable levels of one column, and returns
(...). With fewer than two levels, or with a level whose own value is undefined, the result is
NaN: a group without positives must not become the "worst" one by way of a 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.counts import Counts, ratio
from fairweight.auditing.metrics import rates
from fairweight.auditing.metrics.rates import of_positive, summary_of
from fairweight.auditing.metrics.registry import Metric, metric, register
from fairweight.base.types import Floats

_UNDEFINED = "fewer than two usable levels, or a level without a value"
_NO_POSITIVE = _UNDEFINED + "; no positive class, or more than two classes"
of_column = partial(register, kind="grouping", by=("grouping",), low=0, high=1)


def _of_two_levels(values: Floats, reduce: Callable[[Floats], Floats]) -> Floats:
    """`reduce` over the levels (last axis), NaN with fewer than two."""
    if values.shape[-1] < 2:
        return np.full(values.shape[:-1], np.nan)
    return reduce(values)


def level_range(values: Floats) -> Floats:
    """Highest minus lowest value over the levels, the last axis.

    >>> float(level_range(np.array([0.5, 0.75, 1.0])))
    0.5
    """
    return _of_two_levels(values, lambda v: np.asarray(v.max(axis=-1) - v.min(axis=-1)))


def level_ratio(values: Floats) -> Floats:
    """Lowest over highest value over the levels; NaN where the highest is 0.

    >>> float(level_ratio(np.array([0.5, 0.75, 1.0])))
    0.5
    """
    return _of_two_levels(values, lambda v: ratio(v.min(axis=-1), v.max(axis=-1)))


@of_column(
    better="lower",
    label="gap between groups",
    summary="highest minus lowest group accuracy",
    formula="max_g accuracy_g - min_g accuracy_g",
    source="standard (fairlearn MetricFrame.difference)",
    undefined=_UNDEFINED,
    unit="share",
    without_classes=True,
)
def group_gap(counts: Counts) -> Floats:
    """Highest minus lowest accuracy over the levels of a column.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y, p, sex = [0, 1, 0, 1], [0, 1, 0, 0], ["f", "f", "m", "m"]
    >>> float(group_gap(count_arrays(y, p, sensitive_features=sex)))  # f: 2/2, m: 1/2
    0.5
    """
    return level_range(rates.accuracy(counts))


def worst_level(counts: Counts) -> NDArray[np.intp]:
    """Index of the level with the lowest accuracy (the first of equals); -1 where undefined."""
    values = rates.accuracy(counts)
    if values.shape[-1] < 2:
        return np.full(values.shape[:-1], -1, dtype=np.intp)
    return np.where(np.isnan(values).any(axis=-1), -1, values.argmin(axis=-1))


@of_column(
    better="higher",
    label="accuracy of the worst group",
    summary="lowest group accuracy, with the group's name",
    formula="min_g accuracy_g",
    source="worst-group accuracy (Sagawa et al. 2020)",
    undefined=_UNDEFINED,
    level=worst_level,
    unit="share",
    without_classes=True,
)
def worst_group(counts: Counts) -> Floats:
    """Lowest accuracy over the levels of a column; `worst_level` says whose it is.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y, p, sex = [0, 1, 0, 1], [0, 1, 0, 0], ["f", "f", "m", "m"]
    >>> counts = count_arrays(y, p, sensitive_features=sex)
    >>> float(worst_group(counts)), int(worst_level(counts))
    (0.5, 1)
    """
    return _of_two_levels(rates.accuracy(counts), lambda v: np.asarray(v.min(axis=-1)))


@of_column(
    better="lower",
    high=0.5,
    summary="standard deviation of the groups' accuracies",
    formula="sqrt(mean_g (accuracy_g - mean accuracy)^2), every group with equal weight, ddof 0",
    source="fairweight",
    undefined=_UNDEFINED,
    unit="share",
    without_classes=True,
)
def group_std(counts: Counts) -> Floats:
    """Standard deviation (ddof 0) of the accuracies of the levels, each with equal weight.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y, p, sex = [0, 1, 0, 1], [0, 1, 0, 0], ["f", "f", "m", "m"]
    >>> float(group_std(count_arrays(y, p, sensitive_features=sex)))
    0.25
    """
    return _of_two_levels(rates.accuracy(counts), lambda v: np.asarray(v.std(axis=-1)))


def _register_gap_of(entry: Metric) -> None:
    """Register `<metric>_group_gap`: the range over the levels of another metric."""
    positive = "positive" in entry.needs

    def gap(counts: Counts) -> Floats:
        return level_range(summary_of(entry, entry.function(counts), counts))

    gap.__name__ = gap.__qualname__ = f"{entry.name}_group_gap"
    gap.__doc__ = f"""Highest minus lowest `{entry.name}` over the levels of a column.

    Lower is better; in [0, {entry.high - entry.low:g}]. {entry.summary.capitalize()}.
    """
    of_column(
        better="lower",
        high=entry.high - entry.low,
        summary=f"highest minus lowest {entry.name} of the groups",
        formula=f"max_g {entry.name}_g - min_g {entry.name}_g",
        source="standard (fairlearn MetricFrame.difference)",
        undefined=_NO_POSITIVE if positive else _UNDEFINED,
        of=entry.name,
        unit="share",
        needs=entry.needs,
        without_classes=entry is metric(rates.error_rate.__name__),
    )(gap)


GAPS_OF = (
    rates.recall,
    rates.precision,
    rates.fpr,
    rates.fnr,
    rates.error_rate,
    rates.selection_rate,
    rates.balanced_accuracy,
    rates.kappa,
)
for _function in GAPS_OF:
    _register_gap_of(metric(_function.__name__))


@of_column(
    better="one",
    summary="lowest over highest selection rate of the groups",
    formula="min_g selection_rate_g / max_g selection_rate_g",
    source="US EEOC four-fifths rule; fairlearn demographic_parity_ratio",
    undefined=_NO_POSITIVE + "; no group is ever selected",
    needs={"positive"},
    instead="demographic_parity_difference",
)
def disparate_impact(counts: Counts) -> Floats:
    """Lowest over highest selection rate of the levels.

    (What Sinha and Groover call disparate impact is `ppv_ratio`.)

    Nearer to 1 is more even; in [0, 1]. NaN where no level is ever selected.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y, p, sex = [0, 1, 0, 1], [1, 1, 1, 0], ["f", "f", "m", "m"]
    >>> float(disparate_impact(count_arrays(y, p, sensitive_features=sex)))  # f: 2/2, m: 1/2
    0.5
    """
    return level_ratio(of_positive(rates.selection_rate(counts), counts))


def ppv_ratios(counts: Counts) -> Floats:
    """Each level's precision of the positive class over the highest one's, (..., L).

    This is the "disparate impact" of a group in Sinha and Groover, PPV_g / max_g PPV. NaN in every
    level if one level has no value, because it could be the highest.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y, p, sex = [1, 1, 0, 1], [1, 1, 1, 1], ["f", "f", "m", "m"]
    >>> ppv_ratios(count_arrays(y, p, sensitive_features=sex)).tolist()  # f: 2/2, m: 1/2
    [1.0, 0.5]
    """
    values = of_positive(rates.precision(counts), counts)
    if values.shape[-1] < 2:
        return np.full(values.shape, np.nan)
    return ratio(values, values.max(axis=-1, keepdims=True))


@of_column(
    by=("group", "grouping"),
    better="one",
    summary="precision of a group over the highest precision of any group",
    formula="by group: PPV_g / max_g PPV_g; of the column: min_g PPV_g / max_g PPV_g",
    source="Sinha and Groover, disparate impact",
    undefined=_NO_POSITIVE + "; all precisions are 0",
    needs={"positive"},
    per_level=ppv_ratios,
    instead="predictive_parity_difference",
)
def ppv_ratio(counts: Counts) -> Floats:
    """Lowest over highest precision of the positive class; `ppv_ratios` has it for every level.

    Nearer to 1 is more even; in [0, 1].

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y, p, sex = [1, 1, 0, 1], [1, 1, 1, 1], ["f", "f", "m", "m"]
    >>> float(ppv_ratio(count_arrays(y, p, sensitive_features=sex)))
    0.5
    """
    return level_ratio(of_positive(rates.precision(counts), counts))


@of_column(
    better="lower",
    summary="range of the groups' selection rates",
    formula="max_g selection_rate_g - min_g selection_rate_g",
    source="standard (fairlearn demographic_parity_difference)",
    undefined=_NO_POSITIVE,
    needs={"positive"},
    unit="share",
)
def demographic_parity_difference(counts: Counts) -> Floats:
    """Range over the levels of the share predicted as the positive class.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y, p, sex = [0, 1, 0, 1], [1, 1, 1, 0], ["f", "f", "m", "m"]
    >>> float(demographic_parity_difference(count_arrays(y, p, sensitive_features=sex)))
    0.5
    """
    return level_range(of_positive(rates.selection_rate(counts), counts))


@of_column(
    better="lower",
    summary="range of the groups' true positive rates",
    formula="max_g TPR_g - min_g TPR_g",
    source="Hardt et al. 2016; fairlearn equal_opportunity_difference",
    undefined=_NO_POSITIVE + " (a group without positives)",
    needs={"positive"},
    unit="share",
)
def equal_opportunity_difference(counts: Counts) -> Floats:
    """Range over the levels of the recall of the positive class.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y, p, sex = [1, 1, 1, 1, 0], [1, 1, 1, 0, 0], ["f", "f", "m", "m", "m"]
    >>> float(equal_opportunity_difference(count_arrays(y, p, sensitive_features=sex)))
    0.5
    """
    return level_range(of_positive(rates.recall(counts), counts))


@of_column(
    better="lower",
    label="equalised-odds difference",
    summary="the larger of the ranges of true and of false positive rates",
    formula="max(max_g TPR_g - min_g TPR_g, max_g FPR_g - min_g FPR_g)",
    source="Hardt et al. 2016; fairlearn equalized_odds_difference",
    undefined=_NO_POSITIVE + " (a group without positives or without negatives)",
    needs={"positive"},
    unit="share",
)
def equalized_odds_difference(counts: Counts) -> Floats:
    """The larger of the ranges over the levels of the true and of the false positive rate.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y, p, sex = [1, 0, 1, 0], [1, 0, 1, 1], ["f", "f", "m", "m"]
    >>> float(equalized_odds_difference(count_arrays(y, p, sensitive_features=sex)))  # FPR 0, 1
    1.0
    """
    return np.maximum(
        level_range(of_positive(rates.recall(counts), counts)),
        level_range(of_positive(rates.fpr(counts), counts)),
    )


@of_column(
    better="lower",
    summary="range of the groups' precisions of the positive class",
    formula="max_g PPV_g - min_g PPV_g",
    source="Chouldechova 2017 (predictive parity)",
    undefined=_NO_POSITIVE + " (a group that is never selected)",
    needs={"positive"},
    unit="share",
)
def predictive_parity_difference(counts: Counts) -> Floats:
    """Range over the levels of the precision of the positive class.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y, p, sex = [1, 1, 0, 1], [1, 1, 1, 1], ["f", "f", "m", "m"]
    >>> float(predictive_parity_difference(count_arrays(y, p, sensitive_features=sex)))
    0.5
    """
    return level_range(of_positive(rates.precision(counts), counts))
