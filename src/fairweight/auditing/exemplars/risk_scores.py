"""What the dense model alone says about how easily each of its answers would change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answer, Answers
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.uncertain import mean_score
from fairweight.auditing.exemplars.votes import distinct_answers

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
    probability = _highest_probability(answers)
    if probability is not None and not np.isnan(probability).all():
        # Single precision would tell 0.3 and 1 − 0.7 apart, which are a tie.
        found[LOW_CONFIDENCE] = np.round(1 - probability, 7)
    if answers.scores is not None and answers.n_label_classes > 2:
        mean = _mean_probabilities(answers)
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
    from scipy.special import entr

    bits: Floats = np.maximum(entr(probability).sum(axis=-1) / np.log(2), 0.0)
    return bits


def _mean_probabilities(answers: Answers) -> Floats:
    assert answers.scores is not None
    own: NDArray[np.float32] = answers.scores[answers.rows(answers.baseline)]
    mean: Floats = own.mean(axis=0, dtype=np.float64)
    return mean


def _highest_probability(answers: Answers) -> Floats | None:
    """Of two classes the probability of the likelier one, after averaging over members."""
    if answers.n_label_classes == 2 and answers.score is not None:
        score = mean_score(answers, answers.baseline)
        assert score is not None
        likelier: Floats = np.maximum(score, 1 - score)
        return likelier
    if answers.scores is not None:
        highest: Floats = _mean_probabilities(answers).max(axis=-1)
        return highest
    return mean_score(answers, answers.baseline)
