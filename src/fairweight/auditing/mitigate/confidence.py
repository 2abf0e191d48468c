"""How sure a member is of its answers, by its own scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.prediction_matrix import Answers
from fairweight.base.types import Floats
from fairweight.errors import InputError


def positive_scores(answers: Answers, variant: str) -> NDArray[np.float32]:
    """Probability of the positive class, (members, n), of two classes."""
    if answers.positive is None:
        raise InputError(
            f"Which of the two classes {_classes(answers)} is the positive one is not known; "
            "name it (--positive)."
        )
    rows = answers.rows(variant)
    if answers.score is not None:
        return _complete(answers.score[rows], answers, variant)
    return np.ascontiguousarray(_vectors(answers, variant)[..., _column(answers)])


def class_scores(answers: Answers, variant: str, names: Sequence[str]) -> NDArray[np.float32]:
    """Probabilities of these classes, (members, n, classes)."""
    vectors = _vectors(answers, variant)
    lacking = [name for name in names if name not in answers.score_classes]
    if lacking:
        raise InputError(
            f"The score vectors have no entry for the class '{lacking[0]}'; name the class of "
            "each entry (--score-classes)."
        )
    return np.ascontiguousarray(vectors[..., [answers.score_classes.index(n) for n in names]])


def confidence(answers: Answers, variant: str) -> Floats:
    """From 0 (undecided) to 1 (sure), (members, n).

    Two classes: twice the distance of the positive class's probability from one half. More: the
    highest probability, or the score of the answer where there are no vectors.
    """
    if answers.score is not None and answers.n_label_classes <= 2:
        return sureness(_answer_scores(answers, variant))
    if answers.scores is not None:
        highest = np.asarray(_vectors(answers, variant).max(axis=-1), dtype=np.float64)
        return sureness(highest) if len(answers.score_classes) == 2 else highest
    return _answer_scores(answers, variant)


def mean_confidence(answers: Answers, variant: str) -> Floats:
    """The confidence of the members' mean probability, (n,)."""
    if answers.score is not None and answers.n_label_classes <= 2:
        return sureness(_answer_scores(answers, variant).mean(axis=0))
    if answers.scores is not None:
        highest = _vectors(answers, variant).mean(axis=0, dtype=np.float64).max(axis=-1)
        return sureness(highest) if len(answers.score_classes) == 2 else np.asarray(highest)
    return np.asarray(_answer_scores(answers, variant).mean(axis=0))


def sureness(probability: Floats) -> Floats:
    """
    >>> sureness(np.array([0.5, 0.9, 0.0])).round(9).tolist()
    [0.0, 0.8, 1.0]
    """
    return np.asarray(np.abs(2 * probability - 1))


def _answer_scores(answers: Answers, variant: str) -> Floats:
    if answers.score is None:
        raise _missing(answers, variant)
    return _complete(answers.score[answers.rows(variant)], answers, variant).astype(np.float64)


def _vectors(answers: Answers, variant: str) -> NDArray[np.float32]:
    if answers.scores is None:
        raise _missing(answers, variant)
    found: NDArray[np.float32] = answers.scores[answers.rows(variant)]
    return _complete(found, answers, variant)


def _column(answers: Answers) -> int:
    assert answers.positive is not None
    return answers.score_classes.index(answers.classes[answers.positive])


def _complete(found: NDArray[np.float32], answers: Answers, variant: str) -> NDArray[np.float32]:
    lacking = np.isnan(found).reshape(found.shape[0], answers.n_examples, -1).any(axis=(0, 2))
    if lacking.all():
        raise _missing(answers, variant)
    if lacking.any():
        raise InputError(
            f"{int(lacking.sum()):,} of {answers.n_examples:,} examples have no score of "
            f"'{variant}'{_of_task(answers)}; give every row one."
        )
    return found


def _missing(answers: Answers, variant: str) -> InputError:
    need = (
        "a column `score` with the probability of the positive class"
        if answers.n_label_classes == 2
        else "a column `scores` with the probabilities of all classes"
    )
    return InputError(
        f"Scores of '{variant}' are missing{_of_task(answers)}; this mitigation needs {need}."
    )


def _of_task(answers: Answers) -> str:
    return "" if answers.task is None else f" in the task '{answers.task}'"


def _classes(answers: Answers) -> str:
    return " and ".join(f"'{name}'" for name in answers.classes[: answers.n_label_classes])
