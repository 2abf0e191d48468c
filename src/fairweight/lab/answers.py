"""What a model's outputs say: predictions, probabilities and the rank of the true label.

Predictions and ranks break ties by position, as argmax does: int8 models often give two classes
the same logit, and a prediction of rank 2 would contradict itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.errors import InputError
from fairweight.lab.card import Outputs

SUM_TOLERANCE = 1e-3
REMEDY = "say outputs='logits' or outputs='probabilities'"


@dataclass(frozen=True)
class Answers:
    """For each example (and task) of a batch.

    predicted      places of classes (N,), or 0 and 1 (N, tasks); or values as the model gave them
    probabilities  (N, classes), or of the positive value (N, tasks); None if the model gives none
    """

    predicted: NDArray[Any]
    probabilities: NDArray[np.float64] | None


def kind_of_outputs(outputs: NDArray[Any], *, tasks: bool, shown: str) -> Outputs:
    """Logits or probabilities, as the first outputs look.

    Rows that lie in [0, 1] and sum to 1 are probabilities. Single outputs in [0, 1] could be
    both, and taking one for the other would call every example positive: that is an error.
    """
    inside = bool(((outputs >= 0) & (outputs <= 1)).all())
    if outputs.ndim == 2 and outputs.shape[1] > 1 and not tasks:
        sums = outputs.sum(axis=1, dtype=np.float64)
        ones = bool((np.abs(sums - 1) <= SUM_TOLERANCE).all())
        return "probabilities" if inside and ones else "logits"
    if inside:
        raise InputError(
            f"{shown} gives values between 0 and 1 that could be logits or probabilities; {REMEDY}."
        )
    return "logits"


def read_outputs(
    outputs: NDArray[Any], *, n: int, tasks: int | None, kind: Outputs | None, shown: str
) -> tuple[Answers, Outputs | None]:
    """The answers of one batch of `n` examples, and what the outputs were taken for.

    Parameters
    ----------
    tasks
        Number of binary tasks, or None for one label per example.
    kind
        What the outputs are; None to find out.
    """
    if not outputs.ndim or len(outputs) != n:
        raise InputError(
            f"{shown} gives outputs of shape {outputs.shape} for {n} examples; it must give one "
            "row per example."
        )
    if tasks is not None and outputs.ndim == 1:
        outputs = outputs[:, None]
    if outputs.ndim > 2 or (tasks is not None and outputs.shape[1:] != (tasks,)):
        wanted = f"({n}, {tasks})" if tasks is not None else f"({n}, classes)"
        raise InputError(
            f"{shown} gives outputs of shape {outputs.shape}, which do not fit the labels; they "
            f"must be {wanted}."
        )
    if outputs.dtype.kind != "f":
        return _decided(outputs, tasks, shown), kind
    if not np.isfinite(outputs).all():
        row = int(np.flatnonzero(~np.isfinite(outputs.reshape(n, -1)).all(axis=1))[0])
        raise InputError(
            f"{shown} gives outputs that are not finite (NaN or infinite), first in row {row} of "
            "a batch; check the model and the scaling of its inputs."
        )
    kind = kind or kind_of_outputs(outputs, tasks=tasks is not None, shown=shown)
    if kind == "probabilities" and not bool(((outputs > -1e-6) & (outputs < 1 + 1e-6)).all()):
        raise InputError(
            f"{shown} gives values outside [0, 1] where probabilities were expected; {REMEDY}."
        )
    values = outputs.astype(np.float64)
    if tasks is not None:
        positive = values if kind == "probabilities" else _sigmoid(values)
        cut = 0.5 if kind == "probabilities" else 0.0
        return Answers((values > cut).astype(np.int64), positive), kind
    if values.ndim == 1 or values.shape[1] == 1:
        single = values.reshape(-1)
        positive = single if kind == "probabilities" else _sigmoid(single)
        cut = 0.5 if kind == "probabilities" else 0.0
        both = np.stack([1 - positive, positive], axis=1)
        return Answers((single > cut).astype(np.int64), both), kind
    shares = values if kind == "probabilities" else _softmax(values)
    return Answers(values.argmax(axis=1).astype(np.int64), shares), kind


def label_ranks(
    probabilities: NDArray[np.float64], labels: NDArray[np.int64], predicted: NDArray[Any]
) -> NDArray[np.int64]:
    """The place of each true label, 1 = predicted; ties go by position, the prediction first.

    Rounding in the softmax can tie what the logits kept apart, so the prediction itself is
    always first.

    >>> shares = np.array([[0.25, 0.5, 0.25]] * 3)
    >>> label_ranks(shares, np.array([0, 1, 2]), np.array([1, 1, 1])).tolist()
    [2, 1, 3]
    """
    rows = np.arange(len(labels))
    own = probabilities[rows, labels][:, None]
    before = np.arange(probabilities.shape[1]) < labels[:, None]
    ahead = (probabilities > own) | ((probabilities == own) & before)
    ahead[rows, predicted] = predicted != labels
    ahead[rows, labels] = False
    right = predicted == labels
    return np.where(right, 1, 1 + ahead.sum(axis=1))


def _decided(outputs: NDArray[Any], tasks: int | None, shown: str) -> Answers:
    """Outputs that are predictions already: whole numbers, truth values or text."""
    if outputs.dtype.kind not in "iubUO" or (tasks is None and outputs.ndim != 1):
        raise InputError(
            f"{shown} gives {outputs.dtype} of shape {outputs.shape}; give logits (N, classes), "
            "or one predicted class per example."
        )
    if outputs.dtype.kind == "b":
        outputs = outputs.astype(np.int64)
    return Answers(outputs, None)


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    # exp of a negative number only: no overflow on either side
    small = np.exp(-np.abs(values))
    positive: NDArray[np.float64] = np.where(values >= 0, 1.0, small) / (1 + small)
    return positive


def _softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    raised = np.exp(values - values.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = raised / raised.sum(axis=1, keepdims=True)
    return shares
