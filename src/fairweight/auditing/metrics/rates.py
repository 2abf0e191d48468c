"""Rates of yes-or-no events, and the agreement of labels and predictions: precision, kappa."""

from __future__ import annotations

from functools import partial

import numpy as np

from fairweight.auditing.counts.counts import Counts, ratio
from fairweight.auditing.metrics.registry import (
    Event,
    Harm,
    Level,
    Metric,
    f1_loss,
    kappa_loss,
    mean_fpr_loss,
    mean_recall_loss,
    precision_loss,
    register,
    summary_f1_loss,
    summary_precision_loss,
)
from fairweight.base.types import Floats

EVERYWHERE: tuple[Level, ...] = ("overall", "class", "group", "group*class")
rate = partial(register, kind="rate", by=EVERYWHERE, low=0, high=1, unit="share")


@rate(
    better="higher",
    summary="share of examples predicted rightly; by class this is recall",
    formula="N(prediction = label) / n",
    source="standard; by class as in Paganini 2020: recall, never (TP + TN) / N",
    undefined="no examples",
    event=Event("correct"),
    in_class="recall",
    confirmatory=("overall", "group", "intersection"),
)
def accuracy(counts: Counts) -> Floats:
    """Share of examples predicted rightly, N(prediction = label) / n.

    Higher is better; in [0, 1]. An abstention is not right. NaN without examples.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> float(accuracy(count_arrays([0, 0, 1, 1], [0, 1, 1, 1])))
    0.75
    """
    return counts.once("accuracy", lambda: ratio(counts.correct.sum(axis=-1), counts.n))


@rate(
    better="lower",
    summary="share of examples predicted wrongly (abstentions too)",
    formula="1 - N(prediction = label) / n",
    source="Hooker et al. 2020, Table 3",
    undefined="no examples",
    event=Event("wrong"),
)
def error_rate(counts: Counts) -> Floats:
    """Share of examples not predicted rightly, 1 - accuracy.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> float(error_rate(count_arrays([0, 0, 1, 1], [0, 1, 1, None])))
    0.5
    """
    return ratio(counts.n - counts.correct.sum(axis=-1), counts.n)


@rate(
    better="higher",
    summary="of a class's examples, the share predicted as it",
    formula="TP / (TP + FN)",
    source="standard; Blakeney et al. 2021 (1 - FNR), Paganini 2020 class accuracy",
    undefined="no examples of the class; overall: binary labels without a positive class",
    per_class=True,
    event=Event("correct", given="label"),
    harm=Harm(mean_recall_loss, "correct"),
    crossed=True,
    confirmatory=("class",),
)
def recall(counts: Counts) -> Floats:
    """Of the examples of each class, the share predicted as it: TP / (TP + FN), (..., C).

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> recall(count_arrays([0, 0, 1, 1], [0, 1, 1, 1])).tolist()
    [0.5, 1.0]
    """
    return counts.once("recall", lambda: ratio(counts.correct, counts.label))


@rate(
    better="lower",
    label="FNR",
    summary="false negative rate: of a class's examples, the share predicted otherwise",
    formula="FN / (FN + TP)",
    source="Blakeney et al. 2021, FNR_i one-vs-rest; Hooker et al. 2020, Table 3",
    undefined="no examples of the class; overall: binary labels without a positive class",
    per_class=True,
    event=Event("wrong", given="label"),
    harm=Harm(mean_recall_loss, "correct"),
)
def fnr(counts: Counts) -> Floats:
    """False negative rate per class, one-vs-rest: FN / (FN + TP), (..., C).

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> fnr(count_arrays([0, 0, 1, 1], [0, 1, 1, 1])).tolist()
    [0.5, 0.0]
    """
    missed: Floats = 1 - recall(counts)
    return missed


@rate(
    better="lower",
    label="FPR",
    summary="false positive rate: of the other classes' examples, the share predicted as this one",
    formula="FP / (FP + TN)",
    source="Blakeney et al. 2021, FPR_i one-vs-rest; Hooker et al. 2020, Table 3",
    undefined="every example is of the class; overall: binary labels without a positive class",
    per_class=True,
    event=Event("predicted", given="not_label"),
    harm=Harm(mean_fpr_loss),
    crossed=True,
)
def fpr(counts: Counts) -> Floats:
    """False positive rate per class, one-vs-rest: FP / (FP + TN), (..., C).

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> fpr(count_arrays([0, 0, 1, 1], [0, 1, 1, 1])).tolist()
    [0.0, 0.5]
    """
    return counts.once(
        "fpr",
        lambda: ratio(counts.predicted - counts.correct, counts.n[..., None] - counts.label),
    )


@rate(
    better="none",
    summary="share of examples predicted as the positive class (by class: as that class)",
    formula="N(prediction = class) / n",
    source="standard (fairlearn selection_rate)",
    undefined="no examples; overall and by group: no positive class, or more than two classes",
    per_class=True,
    event=Event("predicted"),
    needs={"positive"},
    instead="selection_rate_group_gap",
)
def selection_rate(counts: Counts) -> Floats:
    """Share of examples predicted as each class, N(prediction = class) / n, (..., C).

    Neither direction is better; in [0, 1]. NaN without examples.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> selection_rate(count_arrays([0, 0, 1, 1], [0, 1, 1, 1])).tolist()
    [0.25, 0.75]
    """
    return ratio(counts.predicted, counts.n[..., None])


@rate(
    better="lower",
    summary="share of examples without a prediction",
    formula="N(no prediction) / n",
    source="fairweight: a null prediction is an abstention and counts as not right",
    undefined="no examples",
    event=Event("abstained"),
    one_row_if_zero=True,
)
def abstention_rate(counts: Counts) -> Floats:
    """Share of examples for which the model gave no prediction.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> float(abstention_rate(count_arrays([0, 0, 1, 1], [0, None, 1, 1])))
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


@rate(
    better="lower",
    label="uncertain answers",
    summary="share of examples whose score is far from certain",
    formula="N(|p - .5| < .4) / n; more than two classes: N(p of the predicted class < .9) / n",
    source="Iofinova et al. 2023, uncertainty (strict inequality as in its code)",
    undefined="no examples, no scores",
    event=Event("uncertain"),
    needs={"score"},
    signature="uncertain",
)
def uncertainty(uncertain: Floats, n: Floats) -> Floats:
    """Share of uncertain examples, from their number (see `is_uncertain`) and that of all.

    >>> float(uncertainty(np.array(3.0), np.array(12.0)))
    0.25
    """
    return ratio(uncertain, n)


@rate(
    better="higher",
    summary="share of examples whose label is among the five highest scores",
    formula="N(label_rank <= 5) / n",
    source="standard (scikit-learn top_k_accuracy_score, k = 5)",
    undefined="no examples, no label_rank",
    event=Event("top5"),
    needs={"label_rank"},
    signature="ranks",
)
def top5_accuracy(in_top5: Floats, n: Floats) -> Floats:
    """Share of examples whose label has rank 5 or better, from their number and that of all.

    >>> float(top5_accuracy(np.array(9.0), np.array(12.0)))
    0.75
    """
    return ratio(in_top5, n)


# Agreement of labels and predictions beyond one rate.


@register(
    kind="value",
    by=EVERYWHERE,
    better="higher",
    low=0,
    high=1,
    summary="of the examples predicted as a class, the share that belong to it",
    formula="TP / (TP + FP)",
    source="standard; Sinha and Groover for both genders",
    undefined="the class is never predicted (then the mean over classes too); "
    "overall: binary labels without a positive class",
    per_class=True,
    harm=Harm(summary_precision_loss, of_class=precision_loss),
    changed=Event("predicted"),
    unit="share",
)
def precision(counts: Counts) -> Floats:
    """Of the examples predicted as each class, the share that belong to it: (..., C).

    TP / (TP + FP).

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> precision(count_arrays([0, 0, 1, 1], [0, 1, 1, 1])).round(3).tolist()
    [1.0, 0.667]
    """
    return counts.once("precision", lambda: ratio(counts.correct, counts.predicted))


@register(
    kind="value",
    by=EVERYWHERE,
    better="higher",
    label="F1",
    low=0,
    high=1,
    summary="harmonic mean of a class's precision and recall",
    formula="2 TP / (2 TP + FP + FN)",
    source="standard (scikit-learn f1_score; the mean over classes is average='macro' over the "
    "classes that have examples)",
    undefined="the class has no examples and is never predicted; "
    "overall: binary labels without a positive class",
    per_class=True,
    harm=Harm(summary_f1_loss, of_class=f1_loss),
    changed=Event("predicted"),
    unit="share",
)
def f1(counts: Counts) -> Floats:
    """Harmonic mean of each class's precision and recall, 2 TP / (2 TP + FP + FN): (..., C).

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> f1(count_arrays([0, 0, 1, 1], [0, 1, 1, 1])).round(3).tolist()  # 2 / 3 and 4 / 5
    [0.667, 0.8]
    """
    return counts.once("f1", lambda: ratio(2 * counts.correct, counts.predicted + counts.label))


@register(
    kind="value",
    by=("overall", "group"),
    better="higher",
    low=0,
    high=1,
    summary="mean of the classes' recalls",
    formula="mean over classes with examples of TP / (TP + FN)",
    source="standard (scikit-learn balanced_accuracy_score); binary: AUC of hard predictions, "
    "which an early version of the code of Iofinova et al. 2023 reports as AUC",
    undefined="no examples",
    harm=Harm(mean_recall_loss, "correct"),
    changed=Event("correct", "label"),
    unit="share",
)
def balanced_accuracy(counts: Counts) -> Floats:
    """Unweighted mean of the recalls of the classes that have examples.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> float(balanced_accuracy(count_arrays([0, 0, 1, 1], [0, 1, 1, 1])))
    0.75
    """
    return counts.once("balanced", lambda: mean_over_present(recall(counts), counts))


@register(
    kind="value",
    by=("overall", "group"),
    better="higher",
    low=-1,
    high=1,
    summary="Cohen's kappa of label and prediction: agreement beyond chance",
    formula="(p_o - p_e) / (1 - p_e), p_o = accuracy, p_e = sum_c N(label = c) N(pred = c) / n^2",
    source="Cohen 1960; Sinha and Groover",
    undefined="no examples; labels and predictions are all one class (p_e = 1)",
    harm=Harm(kappa_loss),
)
def kappa(counts: Counts) -> Floats:
    """Cohen's kappa of label and prediction, (p_o - p_e) / (1 - p_e).

    Higher is better; in [-1, 1], 0 is chance. NaN where all labels and predictions are one class.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> float(kappa(count_arrays([0, 0, 1, 1], [0, 1, 1, 1])))  # p_o = 3/4, p_e = 2*1/16 + 2*3/16
    0.5
    """
    return counts.once("kappa", lambda: _kappa(counts))


def _kappa(counts: Counts) -> Floats:
    observed = ratio(counts.correct.sum(axis=-1), counts.n)
    expected = ratio((counts.label * counts.predicted).sum(axis=-1), counts.n**2)
    return ratio(observed - expected, 1.0 - expected)


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
    present, number = counts.present, counts.n_present
    if (number < present.shape[-1]).any():
        values = np.where(present, values, 0.0)
    return ratio(values.sum(axis=-1), number)


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
