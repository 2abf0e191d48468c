"""Agreement of labels and predictions beyond one rate: precision, balanced accuracy, kappa."""

from __future__ import annotations

from fairweight.auditing.counts.counts import Counts, ratio
from fairweight.auditing.metrics.rates import EVERYWHERE, mean_over_present, recall
from fairweight.auditing.metrics.registry import (
    Event,
    Harm,
    kappa_loss,
    mean_recall_loss,
    precision_loss,
    register,
    summary_precision_loss,
)
from fairweight.base.types import Floats


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

    Higher is better; in [0, 1]. NaN for a class that is never predicted (scikit-learn says 0).

    >>> from fairweight.auditing.counts.counts import counts_of
    >>> precision(counts_of([0, 0, 1, 1], [0, 1, 1, 1])).round(3).tolist()
    [1.0, 0.667]
    """
    return counts.once("precision", lambda: ratio(counts.correct, counts.predicted))


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

    Higher is better; in [0, 1]. NaN without examples.

    >>> from fairweight.auditing.counts.counts import counts_of
    >>> float(balanced_accuracy(counts_of([0, 0, 1, 1], [0, 1, 1, 1])))
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

    >>> from fairweight.auditing.counts.counts import counts_of
    >>> float(kappa(counts_of([0, 0, 1, 1], [0, 1, 1, 1])))  # p_o = 3/4, p_e = 2*1/16 + 2*3/16
    0.5
    """
    return counts.once("kappa", lambda: _kappa(counts))


def _kappa(counts: Counts) -> Floats:
    observed = ratio(counts.correct.sum(axis=-1), counts.n)
    expected = ratio((counts.label * counts.predicted).sum(axis=-1), counts.n**2)
    return ratio(observed - expected, 1.0 - expected)
