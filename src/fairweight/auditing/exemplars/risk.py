"""How well the dense model alone finds the examples that compression changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import entr

from fairweight.auditing import schema
from fairweight.auditing.compare.comparison import MIN_CLUSTERS
from fairweight.auditing.exemplars.selection import FEWEST_EXEMPLARS, Key
from fairweight.auditing.exemplars.votes import distinct_answers
from fairweight.auditing.intervals.auc import auc_limits, placements
from fairweight.auditing.prediction_matrix import Answer, Answers
from fairweight.base.types import Floats, Mask
from fairweight.base.wording import counted

# Which examples the dense model is unsure of, by its own scores.

# The paper's limits, in the precision of scores: a score of exactly .9 is not below it.
NO, YES = np.float32(0.1), np.float32(0.9)


def mean_score(answers: Answers, variant: str) -> Floats | None:
    """Mean score over the members that have one; None without scores, NaN where nobody has one.

    Of the positive class where there are two, else of the answer each member gave.
    """
    if answers.score is None:
        return None
    score = answers.score[answers.rows(variant)]
    known = ~np.isnan(score)
    number = known.sum(axis=0)
    total = np.where(known, score, 0).sum(axis=0, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        mean: Floats = total / np.where(number, number, np.nan)
    return mean


def surest(answers: Answers) -> tuple[Floats, bool] | None:
    """What the baseline's scores say of every example; None without scores.

    The mean probability of the positive one of two classes (and True), or of several classes the
    largest entry of the mean probabilities of all (without those: the mean of the members' scores
    of their own answers; and False). NaN where nobody has a score.
    """
    span = answers.rows(answers.baseline)
    two = answers.n_label_classes == 2 and answers.score is not None
    if answers.scores is not None and not two:
        return np.mean(answers.scores[span], axis=0, dtype=np.float64).max(axis=-1), two
    score = mean_score(answers, answers.baseline)
    return None if score is None else (score, two)


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
    largest, two = found[0].astype(np.float32), found[1]
    return unsure_scores(largest, two), ~np.isnan(largest)


def unsure_scores(score: NDArray[np.float32], two: bool) -> Mask:
    """Which scores are those of somebody unsure; `two`: of the positive one of two classes."""
    unsure: Mask = (score > NO) & (score < YES) if two else score < YES
    return unsure


def uncertain_shares(found: tuple[Mask, Mask] | None, exemplar: Mask) -> tuple[float, float]:
    """Share of uncertain examples among exemplars and among the others; NaN where unknown."""
    if found is None:
        return float("nan"), float("nan")
    unsure, known = found
    among, others = (
        float(unsure[part].mean()) if part.any() else float("nan")
        for part in (known & exemplar, known & ~exemplar)
    )
    return among, others


# What the dense model alone says about how easily each of its answers would change.

DISAGREEMENT, LOW_CONFIDENCE, ENTROPY = "disagreement", "low_confidence", "entropy"
MEANINGS = {
    DISAGREEMENT: "share of the dense members that do not give the most frequent answer",
    LOW_CONFIDENCE: "1 minus the dense model's highest probability",
    ENTROPY: "entropy of the dense model's probabilities, as a share of the largest possible",
}
NO_SCORES = "one dense member and no scores"


def risk_scores(answers: Answers) -> dict[str, Floats]:
    """Scores of every example by name, larger where a change is more likely; NaN where unknown.

    `disagreement` needs two dense members, the others need scores, `entropy` all probabilities of
    more than two classes (of two it ranks as `low_confidence` does). Empty where nothing is known.
    """
    found: dict[str, Floats] = {}
    votes = answers.of(answers.baseline)
    if len(votes) > 1:
        found[DISAGREEMENT] = disagreement_among(votes)
    known = surest(answers)
    if known is not None and not np.isnan(known[0]).all():
        score, two = known
        probability = np.maximum(score, 1 - score) if two else score
        # Single precision would tell 0.3 and 1 − 0.7 apart, which are a tie.
        found[LOW_CONFIDENCE] = np.round(1 - probability, 7)
    if answers.scores is not None and answers.n_label_classes > 2:
        own: NDArray[np.float32] = answers.scores[answers.rows(answers.baseline)]
        mean = own.mean(axis=0, dtype=np.float64)
        found[ENTROPY] = entropy(mean) / np.log2(mean.shape[-1])
    return found


def disagreement_among(votes: Answer) -> Floats:
    """1 − the largest share of members with the same answer, (n,).

    >>> disagreement_among(np.array([[0, 0], [0, 1], [0, 2], [0, 1]], np.uint8)).tolist()
    [0.0, 0.5]
    """
    most = np.zeros(votes.shape[1], dtype=np.intp)
    for place, _, given in distinct_answers(votes.copy()):
        most[place] = np.maximum(most[place], given.sum(axis=0))
    share: Floats = 1 - most / len(votes)
    return share


def entropy(probability: Floats) -> Floats:
    """−Σ p log₂ p over the last axis.

    >>> entropy(np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])).tolist()
    [1.5, 0.0]
    """
    bits: Floats = np.maximum(entr(probability).sum(axis=-1) / np.log(2), 0.0)
    return bits


def risk(
    answers: Answers,
    masks: Mapping[Key, Mask],
    *,
    kind: str = "modal",
    percentile: float | None = None,
    alpha: float = 0.05,
    fewest: int = FEWEST_EXEMPLARS,
) -> pd.DataFrame:
    """The AUC of every risk score for finding a variant's exemplars, with its interval.

    Parameters
    ----------
    masks
        (variant, kind, percentile) → which examples are exemplars, as `find` gives them.
    kind, percentile
        Which of them to find.
    fewest
        Exemplars without which there is no AUC.

    Notes
    -----
    Ties count half. Limits are DeLong's on the logit, over examples or whole clusters; NaN where
    the AUC is 0 or 1. Exemplars are judged by the votes of the very dense members that the score is
    of, so it describes these models; what a score is worth on other data is the evidence of the
    pre-flight check.
    """
    scores = risk_scores(answers)
    rows = []
    for variant in answers.variants:
        mask = masks[variant, kind, percentile]
        place = {"variant": variant, "task": answers.task}
        for name, score in scores.items():
            rows.append({**place, "score": name, **_auc(answers, score, mask, alpha, fewest)})
        if not scores:
            told = {"n": answers.n_examples, "n_exemplars": int(mask.sum())}
            rows.append({**place, **told, "status": f"cannot tell: {NO_SCORES}"})
    return schema.frame("risk", rows)


def _auc(answers: Answers, score: Floats, mask: Mask, alpha: float, fewest: int) -> dict[str, Any]:
    """How well a score finds the exemplars: AUC, limits and status."""
    known = ~np.isnan(score)
    chosen = mask[known]
    row: dict[str, Any] = {"n": int(known.sum()), "n_exemplars": int(chosen.sum()), "status": "ok"}
    if not chosen.any() or chosen.all():
        which = "no exemplars" if not chosen.any() else "every example is an exemplar"
        return row | {"status": f"not_estimable: {which}"}
    if chosen.sum() < fewest:
        number = counted(int(chosen.sum()), "exemplar")
        return row | {"status": f"not_estimable: {number}, {fewest} are needed"}
    cluster = None if answers.cluster is None else answers.cluster[known]
    auc, low, high = auc_limits([placements(score[known], chosen)], cluster, alpha)
    if np.isnan(low):
        few = cluster is not None and len(np.unique(cluster)) < MIN_CLUSTERS
        told = f"fewer than {MIN_CLUSTERS} clusters" if few else "perfectly apart"
        row["status"] = f"no interval: {told}"
    return row | {"auc": auc, "auc_low": low, "auc_high": high}
