"""Which examples the dense model is unsure of, by its own scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.modal import Mask

# The paper's limits, in the precision of scores: a score of exactly .9 is not below it.
NO, YES = np.float32(0.1), np.float32(0.9)


def mean_score(answers: Answers, variant: str) -> Floats | None:
    """Mean score over the members that have one; None without scores, NaN where nobody has one.

    Of the positive class where there are two, else of the answer each member gave.
    """
    if answers.score is None:
        return None
    return _mean(answers.score[answers.rows(variant)])


def surest(answers: Answers) -> tuple[NDArray[np.float32], bool] | None:
    """What the baseline's scores say of every example; None without scores.

    The mean probability of the positive one of two classes (and True), or of several classes the
    largest entry of the mean probabilities of all (without those: the mean of the members' scores
    of their own answers; and False). NaN where nobody has a score.
    """
    span = answers.rows(answers.baseline)
    two = answers.n_label_classes == 2 and answers.score is not None
    if answers.scores is not None and not two:
        mean = np.mean(answers.scores[span], axis=0, dtype=np.float64)  # (n, classes)
        return mean.max(axis=-1).astype(np.float32), two
    if answers.score is not None:
        return _mean(answers.score[span]).astype(np.float32), two
    return None


def uncertain(answers: Answers) -> tuple[Mask, Mask] | None:
    """Which examples are uncertain, and of which it is known; None without scores.

    Two classes: the mean probability of the positive one lies strictly between .1 and .9. More:
    the largest entry of the mean probabilities of all classes is below .9 (without those: the
    mean of the members' scores of their own answers).

    Source: Iofinova et al., Bias in Pruned Vision Models.
    """
    found = surest(answers)
    if found is None:
        return None
    largest, two = found
    unsure: Mask = unsure_scores(largest, two)
    return unsure, ~np.isnan(largest)


def unsure_scores(score: NDArray[np.float32], two: bool) -> Mask:
    """Which scores are those of somebody unsure; `two`: of the positive one of two classes."""
    unsure: Mask = (score > NO) & (score < YES) if two else score < YES
    return unsure


def uncertain_shares(found: tuple[Mask, Mask] | None, exemplar: Mask) -> tuple[float, float]:
    """Share of uncertain examples among exemplars and among the others; NaN where unknown."""
    if found is None:
        return float("nan"), float("nan")
    unsure, known = found
    return _share(unsure, known & exemplar), _share(unsure, known & ~exemplar)


def _share(what: Mask, of: Mask) -> float:
    n = int(np.count_nonzero(of))
    return int(np.count_nonzero(what & of)) / n if n else float("nan")


def _mean(score: NDArray[np.float32]) -> Floats:
    known = ~np.isnan(score)
    number = known.sum(axis=0)
    total = np.where(known, score, 0).sum(axis=0, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        mean: Floats = total / np.where(number, number, np.nan)
    return mean
