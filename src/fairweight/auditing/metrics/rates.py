"""Rates: shares of examples to which one yes-or-no event happened."""

from __future__ import annotations

import numpy as np

from fairweight.auditing.counts.counts import Counts, ratio
from fairweight.auditing.metrics.registry import (
    Event,
    Harm,
    Level,
    Metric,
    mean_fpr_loss,
    mean_recall_loss,
    register,
)
from fairweight.base.types import Floats

EVERYWHERE: tuple[Level, ...] = ("overall", "class", "group", "group*class")


@register(
    kind="rate",
    by=EVERYWHERE,
    better="higher",
    low=0,
    high=1,
    summary="share of examples predicted rightly; by class this is recall",
    formula="N(prediction = label) / n",
    source="standard; by class as in Paganini 2020: recall, never (TP + TN) / N",
    undefined="no examples",
    event=Event("correct"),
    unit="share",
    in_class="recall",
    confirmatory=("overall", "group", "intersection"),
)
def accuracy(counts: Counts) -> Floats:
    """Share of examples predicted rightly, N(prediction = label) / n.

    Higher is better; in [0, 1]. An abstention is not right. NaN without examples.

    >>> from fairweight.auditing.counts.counts import counts_of
    >>> float(accuracy(counts_of([0, 0, 1, 1], [0, 1, 1, 1])))
    0.75
    """
    return counts.once("accuracy", lambda: ratio(counts.correct.sum(axis=-1), counts.n))


@register(
    kind="rate",
    by=EVERYWHERE,
    better="lower",
    low=0,
    high=1,
    summary="share of examples predicted wrongly (abstentions too)",
    formula="1 - N(prediction = label) / n",
    source="Hooker et al. 2020, Table 3",
    undefined="no examples",
    event=Event("wrong"),
    unit="share",
)
def error_rate(counts: Counts) -> Floats:
    """Share of examples not predicted rightly, 1 - accuracy.

    Lower is better; in [0, 1]. NaN without examples.

    >>> from fairweight.auditing.counts.counts import counts_of
    >>> float(error_rate(counts_of([0, 0, 1, 1], [0, 1, 1, None])))
    0.5
    """
    return ratio(counts.n - counts.correct.sum(axis=-1), counts.n)


@register(
    kind="rate",
    by=EVERYWHERE,
    better="higher",
    low=0,
    high=1,
    summary="of a class's examples, the share predicted as it",
    formula="TP / (TP + FN)",
    source="standard; Blakeney et al. 2021 (1 - FNR), Paganini 2020 class accuracy",
    undefined="no examples of the class; overall: binary labels without a positive class",
    per_class=True,
    event=Event("correct", given="label"),
    harm=Harm(mean_recall_loss, "correct"),
    unit="share",
    crossed=True,
    confirmatory=("class",),
)
def recall(counts: Counts) -> Floats:
    """Of the examples of each class, the share predicted as it: TP / (TP + FN), (..., C).

    Higher is better; in [0, 1]. NaN for a class without examples.

    >>> from fairweight.auditing.counts.counts import counts_of
    >>> recall(counts_of([0, 0, 1, 1], [0, 1, 1, 1])).tolist()
    [0.5, 1.0]
    """
    return counts.once("recall", lambda: ratio(counts.correct, counts.label))


@register(
    kind="rate",
    by=EVERYWHERE,
    better="lower",
    low=0,
    high=1,
    label="FNR",
    summary="false negative rate: of a class's examples, the share predicted otherwise",
    formula="FN / (FN + TP)",
    source="Blakeney et al. 2021, FNR_i one-vs-rest; Hooker et al. 2020, Table 3",
    undefined="no examples of the class; overall: binary labels without a positive class",
    per_class=True,
    event=Event("wrong", given="label"),
    harm=Harm(mean_recall_loss, "correct"),
    unit="share",
)
def fnr(counts: Counts) -> Floats:
    """False negative rate per class, one-vs-rest: FN / (FN + TP), (..., C).

    Lower is better; in [0, 1]. NaN for a class without examples.

    >>> from fairweight.auditing.counts.counts import counts_of
    >>> fnr(counts_of([0, 0, 1, 1], [0, 1, 1, 1])).tolist()
    [0.5, 0.0]
    """
    missed: Floats = 1 - recall(counts)
    return missed


@register(
    kind="rate",
    by=EVERYWHERE,
    better="lower",
    low=0,
    high=1,
    label="FPR",
    summary="false positive rate: of the other classes' examples, the share predicted as this one",
    formula="FP / (FP + TN)",
    source="Blakeney et al. 2021, FPR_i one-vs-rest; Hooker et al. 2020, Table 3",
    undefined="every example is of the class; overall: binary labels without a positive class",
    per_class=True,
    event=Event("predicted", given="not_label"),
    harm=Harm(mean_fpr_loss),
    unit="share",
    crossed=True,
)
def fpr(counts: Counts) -> Floats:
    """False positive rate per class, one-vs-rest: FP / (FP + TN), (..., C).

    Lower is better; in [0, 1]. NaN for a class that every example belongs to.

    >>> from fairweight.auditing.counts.counts import counts_of
    >>> fpr(counts_of([0, 0, 1, 1], [0, 1, 1, 1])).tolist()
    [0.0, 0.5]
    """
    return counts.once(
        "fpr",
        lambda: ratio(counts.predicted - counts.correct, counts.n[..., None] - counts.label),
    )


@register(
    kind="rate",
    by=EVERYWHERE,
    better="none",
    low=0,
    high=1,
    summary="share of examples predicted as the positive class (by class: as that class)",
    formula="N(prediction = class) / n",
    source="standard (fairlearn selection_rate)",
    undefined="no examples; overall and by group: no positive class, or more than two classes",
    per_class=True,
    event=Event("predicted"),
    needs={"positive"},
    unit="share",
    instead="selection_rate_group_gap",
)
def selection_rate(counts: Counts) -> Floats:
    """Share of examples predicted as each class, N(prediction = class) / n, (..., C).

    Neither direction is better; in [0, 1]. NaN without examples.

    >>> from fairweight.auditing.counts.counts import counts_of
    >>> selection_rate(counts_of([0, 0, 1, 1], [0, 1, 1, 1])).tolist()
    [0.25, 0.75]
    """
    return ratio(counts.predicted, counts.n[..., None])


@register(
    kind="rate",
    by=EVERYWHERE,
    better="lower",
    low=0,
    high=1,
    summary="share of examples without a prediction",
    formula="N(no prediction) / n",
    source="fairweight: a null prediction is an abstention and counts as not right",
    undefined="no examples",
    event=Event("abstained"),
    unit="share",
    one_row_if_zero=True,
)
def abstention_rate(counts: Counts) -> Floats:
    """Share of examples for which the model gave no prediction.

    Lower is better; in [0, 1]. NaN without examples.

    >>> from fairweight.auditing.counts.counts import counts_of
    >>> float(abstention_rate(counts_of([0, 0, 1, 1], [0, None, 1, 1])))
    0.25
    """
    return ratio(counts.abstained, counts.n)


def is_uncertain(score: Floats, *, binary: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Whether each score is uncertain: |p - .5| < .4 (strict), p the positive class's probability.

    That is: neither class reaches .9. With more classes the same is asked of the predicted one's
    probability, p < .9.

    >>> is_uncertain(np.array([0.05, 0.1, 0.5, 0.89, 0.9]), binary=True).tolist()
    [False, False, True, True, False]
    """
    score = np.asarray(score, dtype=np.float64)
    return np.abs(score - 0.5) < 0.4 if binary else score < 0.9


@register(
    kind="rate",
    by=EVERYWHERE,
    better="lower",
    low=0,
    high=1,
    label="uncertain answers",
    summary="share of examples whose score is far from certain",
    formula="N(|p - .5| < .4) / n; more than two classes: N(p of the predicted class < .9) / n",
    source="Iofinova et al. 2023, uncertainty (strict inequality as in its code)",
    undefined="no examples, no scores",
    event=Event("uncertain"),
    needs={"score"},
    unit="share",
    signature="uncertain",
)
def uncertainty(uncertain: Floats, n: Floats) -> Floats:
    """Share of uncertain examples, from their number (see `is_uncertain`) and that of all.

    Lower is better; in [0, 1]. NaN without examples.

    >>> float(uncertainty(np.array(3.0), np.array(12.0)))
    0.25
    """
    return ratio(uncertain, n)


@register(
    kind="rate",
    by=EVERYWHERE,
    better="higher",
    low=0,
    high=1,
    summary="share of examples whose label is among the five highest scores",
    formula="N(label_rank <= 5) / n",
    source="standard (scikit-learn top_k_accuracy_score, k = 5)",
    undefined="no examples, no label_rank",
    event=Event("top5"),
    needs={"label_rank"},
    unit="share",
    signature="ranks",
)
def top5_accuracy(in_top5: Floats, n: Floats) -> Floats:
    """Share of examples whose label has rank 5 or better, from their number and that of all.

    Higher is better; in [0, 1]. NaN without examples.

    >>> float(top5_accuracy(np.array(9.0), np.array(12.0)))
    0.75
    """
    return ratio(in_top5, n)


# One number from the values of several classes.


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
