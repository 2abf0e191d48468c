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
        names = " and ".join(f"'{name}'" for name in answers.classes[: answers.n_label_classes])
        raise InputError(
            f"Which of the two classes {names} is the positive one is not known; name it "
            "(--positive)."
        )
    if answers.score is not None:
        return _complete(answers.score[answers.rows(variant)], answers, variant)
    return class_scores(answers, variant, [answers.classes[answers.positive]])[..., 0]


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


def confidence(answers: Answers, variant: str, *, of_mean: bool = False) -> Floats:
    """From 0 (undecided) to 1 (sure), (members, n); `of_mean`: of their mean probability, (n,).

    Two classes: twice the distance of the positive class's probability from one half. More: the
    highest probability, or the score of the answer where there are no vectors.
    """
    two = answers.score is not None and answers.n_label_classes <= 2
    if answers.scores is not None and not two:
        vectors = _vectors(answers, variant)
        mean = vectors.mean(axis=0, dtype=np.float64) if of_mean else vectors
        found = np.asarray(mean.max(axis=-1), dtype=np.float64)
        two = len(answers.score_classes) == 2
    elif answers.score is not None:
        score = _complete(answers.score[answers.rows(variant)], answers, variant)
        found = score.astype(np.float64)
        found = np.asarray(found.mean(axis=0)) if of_mean else found
    else:
        raise _missing(answers, variant)
    return sureness(found) if two else found


def sureness(probability: Floats) -> Floats:
    """How far a probability is from one half, from 0 to 1.

    >>> sureness(np.array([0.5, 0.9, 0.0])).round(9).tolist()
    [0.0, 0.8, 1.0]
    """
    return np.asarray(np.abs(2 * probability - 1))


def _vectors(answers: Answers, variant: str) -> NDArray[np.float32]:
    if answers.scores is None:
        raise _missing(answers, variant)
    found: NDArray[np.float32] = answers.scores[answers.rows(variant)]
    return _complete(found, answers, variant)


def _complete(found: NDArray[np.float32], answers: Answers, variant: str) -> NDArray[np.float32]:
    """The scores, if every example has one; else an error."""
    lacking = np.isnan(found).reshape(found.shape[0], answers.n_examples, -1).any(axis=(0, 2))
    if lacking.all():
        raise _missing(answers, variant)
    if lacking.any():
        raise InputError(
            f"{int(lacking.sum()):,} of {answers.n_examples:,} examples have no score of "
            f"'{variant}'{in_task(answers.task)}; give every row one."
        )
    return found


def _missing(answers: Answers, variant: str) -> InputError:
    """The error where there are no scores."""
    need = (
        "a column `score` with the probability of the positive class"
        if answers.n_label_classes == 2
        else "a column `scores` with the probabilities of all classes"
    )
    return InputError(
        f"Scores of '{variant}' are missing{in_task(answers.task)}; this mitigation needs {need}."
    )


def in_task(task: str | None) -> str:
    """Where something is so, as a sentence goes on; nothing where there is one task."""
    return "" if task is None else f" in the task '{task}'"
