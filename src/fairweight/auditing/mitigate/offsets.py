"""Offsets of several classes, so that each is predicted as often as it is true.

The answer is the class of the highest log-probability plus offset. With two classes this is a
threshold, so offsets are what thresholds become with more of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answer
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.mitigate.smoothed_quantile import quantile_weights

LEAST = 1e-12  # a probability of 0 has no logarithm
ROUNDS = 100
CLOSE = 1e-6  # of a logit


def fit_offsets(probabilities: NDArray[np.float32], label: Answer, *, smooth: bool) -> Floats:
    """One offset per class, with mean 0.

    Parameters
    ----------
    probabilities
        (n, classes).
    label
        (n,) into them. Every class must occur.
    smooth
        Lean on many margins near the one in question instead of on two (Harrell and Davis'
        quantile): offsets move less with single examples.

    Notes
    -----
    Classes take turns. An example chooses a class whose offset exceeds its margin, by how much the
    others lead, so each class is given the quantile of its margins at which as many examples choose
    it as have its label. Plain, the best round is kept, because ties between turns need not end.
    Smoothed, rounds come nearer to each other: no offset moves more than the largest move before.
    """
    classes = probabilities.shape[1]
    logs = np.log(np.maximum(probabilities.astype(np.float64), LEAST))
    wanted = np.bincount(label, minlength=classes).astype(np.float64)
    return _smoothed(logs, wanted) if smooth else _counted(logs, wanted)


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
            margin = _margins(logs, offsets, c)
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


def _smoothed(logs: Floats, wanted: Floats) -> Floats:
    n, classes = logs.shape
    weights = [quantile_weights(n, k / n) for k in wanted]
    offsets = np.zeros(classes)
    for _ in range(ROUNDS):
        before = offsets.copy()
        for c in range(classes):
            offsets[c] = weights[c] @ _margins(logs, offsets, c)
        offsets -= offsets.mean()
        if np.abs(offsets - before).max() < CLOSE:
            break
    return offsets


def _margins(logs: Floats, offsets: Floats, c: int) -> Floats:
    """By how much the best other class leads, in order; chosen where the offset is larger."""
    shifted = logs + offsets
    shifted[:, c] = -np.inf
    return np.asarray(np.sort(shifted.max(axis=1) - logs[:, c]))
