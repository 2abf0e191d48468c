"""Offsets of several classes, so that each is predicted as often as it is true.

The answer is the class of the highest log-probability plus offset. With two classes this is a
threshold, so offsets are what thresholds become with more of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answer
from fairweight.auditing.counts.stats import Floats

LEAST = 1e-12  # a probability of 0 has no logarithm
ROUNDS = 100
CLOSE = 1e-9


def fit_offsets(probabilities: NDArray[np.float32], label: Answer, *, smooth: bool) -> Floats:
    """One offset per class, with mean 0.

    Parameters
    ----------
    probabilities
        (n, classes).
    label
        (n,) into them. Every class must occur.
    smooth
        Match expected numbers (sums of probabilities) instead of numbers of answers: these move
        less with single examples.

    Notes
    -----
    Answers: classes take turns, and each is given the offset at which as many examples choose it
    as have its label, between the two margins in question. The best round is kept, because ties
    between turns need not end.
    """
    classes = probabilities.shape[1]
    logs = np.log(np.maximum(probabilities.astype(np.float64), LEAST))
    wanted = np.bincount(label, minlength=classes).astype(np.float64)
    return _expected(logs, wanted) if smooth else _counted(logs, wanted)


def with_offsets(
    probabilities: NDArray[np.float32], offsets: Floats
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """The answers and the probability of each, (…, n) of probabilities (…, n, classes).

    >>> answer, score = with_offsets(np.array([[0.6, 0.3, 0.1]], np.float32), np.array([0, 1, 0.0]))
    >>> answer.tolist(), score.round(3).tolist()
    ([1], [0.30000001192092896])
    """
    logs = np.log(np.maximum(probabilities.astype(np.float64), LEAST))
    answer: NDArray[np.intp] = np.argmax(logs + offsets, axis=-1)
    score = np.take_along_axis(probabilities, answer[..., None], axis=-1)[..., 0]
    return answer, score


def _counted(logs: Floats, wanted: Floats) -> Floats:
    n, classes = logs.shape
    offsets = np.zeros(classes)
    best, least = offsets, _distance(logs, offsets, wanted)
    for _ in range(ROUNDS):
        for c in range(classes):
            shifted = logs + offsets
            shifted[:, c] = -np.inf
            margin = np.sort(shifted.max(axis=1) - logs[:, c])  # chosen where offset > margin
            k = int(wanted[c])
            upper = margin[k] if k < n else margin[-1] + 2
            offsets[c] = (margin[k - 1] + upper) / 2
        offsets = offsets - offsets.mean()
        found = _distance(logs, offsets, wanted)
        if found < least:
            best, least = offsets.copy(), found
        if least == 0:
            break
    return np.asarray(best - best.mean())


def _distance(logs: Floats, offsets: Floats, wanted: Floats) -> float:
    answer = np.argmax(logs + offsets, axis=1)
    return float(np.abs(np.bincount(answer, minlength=len(wanted)) - wanted).sum())


def _expected(logs: Floats, wanted: Floats) -> Floats:
    """The sums are those of a convex function's gradient, so plain scaling converges."""
    offsets = np.zeros(len(wanted))
    for _ in range(10 * ROUNDS):
        shifted = logs + offsets
        shifted -= shifted.max(axis=1, keepdims=True)
        shares = np.exp(shifted)
        shares /= shares.sum(axis=1, keepdims=True)
        step = np.log(wanted) - np.log(shares.sum(axis=0))
        offsets += step
        if np.abs(step).max() < CLOSE:
            break
    return np.asarray(offsets - offsets.mean())
