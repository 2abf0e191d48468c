"""The rows of a prediction table: predictions of several models for one batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fairweight.errors import InputError
from fairweight.lab.artifacts import Outputs
from fairweight.lab.batches import Batch
from fairweight.lab.loaders import Loaded
from fairweight.lab.prediction_file import stacked

# What a model's outputs say: predictions, probabilities and the rank of the true label.
#
# Predictions and ranks break ties by position, as argmax does: int8 models often give two classes
# the same logit, and a prediction of rank 2 would contradict itself.

SUM_TOLERANCE = 1e-3
REMEDY = "say outputs='logits' or outputs='probabilities'"


@dataclass(frozen=True)
class BatchPredictions:
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
) -> tuple[BatchPredictions, Outputs | None]:
    """Predictions for a batch of `n` examples, and whether outputs are logits or probabilities.

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
    if outputs.dtype.kind != "f":  # predictions already: whole numbers, truth values or text
        if outputs.dtype.kind not in "iubUO" or (tasks is None and outputs.ndim != 1):
            raise InputError(
                f"{shown} gives {outputs.dtype} of shape {outputs.shape}; give logits (N, "
                "classes), or one predicted class per example."
            )
        truths = outputs.dtype.kind == "b"
        return BatchPredictions(outputs.astype(np.int64) if truths else outputs, None), kind
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
        return BatchPredictions((values > cut).astype(np.int64), positive), kind
    if values.ndim == 1 or values.shape[1] == 1:
        single = values.reshape(-1)
        positive = single if kind == "probabilities" else _sigmoid(single)
        cut = 0.5 if kind == "probabilities" else 0.0
        both = np.stack([1 - positive, positive], axis=1)
        return BatchPredictions((single > cut).astype(np.int64), both), kind
    shares = values
    if kind != "probabilities":
        raised = np.exp(values - values.max(axis=1, keepdims=True))
        shares = raised / raised.sum(axis=1, keepdims=True)
    return BatchPredictions(values.argmax(axis=1).astype(np.int64), shares), kind


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


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    # exp of a negative number only: no overflow on either side
    small = np.exp(-np.abs(values))
    positive: NDArray[np.float64] = np.where(values >= 0, 1.0, small) / (1 + small)
    return positive


CLASSES_KEY = b"fairweight_classes"
POSITIVE_NAMES = frozenset({"1", "true", "yes"})


@dataclass
class OpenModel:
    """One model and its state while it predicts batch by batch."""

    variant: str
    seed: int
    model: Loaded
    outputs: Outputs | None  # decided at the first batch where the model does not say

    @property
    def shown(self) -> str:
        return f"The model '{self.variant}' (seed {self.seed})"


class PredictionRows:
    """The rows of a batch: every model's answers, one block after the other."""

    def __init__(
        self,
        members: Sequence[OpenModel],
        names: tuple[str, ...] | None,
        *,
        scores: bool,
        ranks: bool,
    ) -> None:
        self.members = members
        self.names = names
        self.scores = scores
        self.ranks = ranks
        self._classes: int | None = None  # how many, as the first model with probabilities says

    def of(self, batch: Batch) -> pa.Table:
        """All models' rows for one batch."""
        if batch.labels.ndim == 1 and any(member.model.tasks for member in self.members):
            batch = replace(batch, labels=batch.labels[:, None])  # one attribute by itself
        several = batch.labels.ndim == 2
        if any(m.model.tasks is not None and m.model.tasks != several for m in self.members):
            raise InputError(
                f"The labels have the shape {batch.labels.shape}, which does not fit the models: "
                "some were made for " + ("one label" if several else "several binary tasks") + "."
            )
        if several and not np.isin(batch.labels, (0, 1)).all():
            raise InputError("Labels of several tasks must be 0 or 1; give one column per task.")
        if several and self.names is not None and len(self.names) != batch.labels.shape[1]:
            raise InputError(
                f"The labels have {batch.labels.shape[1]} tasks, but {len(self.names)} are named "
                "(classes=)."
            )
        labels = batch.labels if several else self._places(batch.labels)
        blocks = []
        for member in self.members:
            answers, member.outputs = read_outputs(
                member.model.run(batch.inputs),
                n=len(batch),
                tasks=batch.labels.shape[1] if several else None,
                kind=member.outputs,
                shown=member.shown,
            )
            answers = self._in_common_order(member, answers, several)
            make = self._task_block if several else self._block
            blocks.append(make(member, batch, labels, answers))
        table = stacked(blocks)
        if self.scores:
            numbers = tuple(str(number) for number in range(self._classes or 0))
            order = ("0", "1") if several else self.names or numbers
            table = table.replace_schema_metadata({CLASSES_KEY: json.dumps(order)})
        return table

    def _in_common_order(
        self, member: OpenModel, answers: BatchPredictions, several: bool
    ) -> BatchPredictions:
        """Predictions in the order of the common classes, where the model's order differs."""
        held = answers.probabilities
        own = member.model.classes or self.names
        if several or held is None:
            if several and own is not None and self.names is not None and own != self.names:
                places = [own.index(name) for name in self.names]
                held = None if held is None else held[:, places]
                return BatchPredictions(answers.predicted[:, places], held)
            return answers
        wanted = len(own) if own is not None else self._classes or held.shape[1]
        if held.shape[1] != wanted:
            raise InputError(
                f"{member.shown} gives {held.shape[1]} outputs, but there are {wanted} classes; "
                "its output does not fit the labels."
            )
        self._classes = held.shape[1]
        if own is None or own == self.names or self.names is None:
            return answers
        theirs = np.array([self.names.index(name) for name in own])
        back = np.array([own.index(name) for name in self.names])
        return replace(answers, predicted=theirs[answers.predicted], probabilities=held[:, back])

    def _places(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Labels as places of classes; text stays text where no classes are known."""
        if labels.dtype.kind in "iu" and any(member.model.by_value for member in self.members):
            labels = labels.astype(str)
        if labels.dtype.kind in "iu":
            least, most = int(labels.min(initial=0)), int(labels.max(initial=0))
            if least < 0 or (self.names is not None and most >= len(self.names)):
                known = "" if self.names is None else f", and there are {len(self.names)} classes"
                raise InputError(
                    f"The labels have the value {least if least < 0 else most}{known}; labels are "
                    "places of classes, from 0."
                )
            return labels.astype(np.int64)
        texts = np.array([None if value is None else str(value) for value in labels.tolist()])
        if self.names is None:
            return texts
        places = {name: place for place, name in enumerate(self.names)}
        unknown = next((text for text in texts.tolist() if text not in places), None)
        if unknown is not None or None in texts.tolist():
            raise InputError(
                f"The label {unknown!r} is not among the models' classes "
                f"({', '.join(self.names[:10])}); give labels by these names, or classes=."
            )
        return np.array([places[text] for text in texts.tolist()], dtype=np.int64)

    def _block(
        self, member: OpenModel, batch: Batch, labels: NDArray[Any], answers: BatchPredictions
    ) -> pa.Table:
        held = answers.probabilities
        if held is not None:
            if labels.dtype.kind != "i":
                raise InputError(
                    f"The labels are text, but {member.shown[0].lower()}{member.shown[1:]} gives "
                    "one output per class and the classes' names are not known; give classes=."
                )
            most = int(labels.max(initial=0))
            if most >= held.shape[1]:
                raise InputError(
                    f"{member.shown} gives {held.shape[1]} outputs, but there are labels up to "
                    f"{most}; its output does not fit the labels."
                )
        columns = {
            "example_id": pa.array(batch.ids),
            "variant": pa.array([member.variant] * len(batch), pa.string()),
            "seed": pa.array(np.full(len(batch), member.seed, dtype=np.int64)),
            "label": self._named(labels, f"The label of {member.shown}"),
            "prediction": self._named(answers.predicted, member.shown),
            "score": _floats(None if held is None else self._score(held, answers), len(batch)),
        }
        if self.scores:
            columns["scores"] = _lists(held, len(batch))
        if self.ranks:
            columns["label_rank"] = (
                pa.nulls(len(batch), pa.int64())
                if held is None
                else pa.array(label_ranks(held, labels, answers.predicted), pa.int64())
            )
        return pa.table(columns | _groups(batch, 1))

    def _task_block(
        self, member: OpenModel, batch: Batch, labels: NDArray[Any], answers: BatchPredictions
    ) -> pa.Table:
        """One row per example and task, an example's tasks together."""
        n, tasks = labels.shape
        held = None if answers.probabilities is None else answers.probabilities.reshape(-1)
        names = self.names or tuple(str(task) for task in range(tasks))
        columns = {
            "example_id": pa.array(np.repeat(batch.ids, tasks)),
            "task": pa.array(list(names) * n, pa.string()),
            "variant": pa.array([member.variant] * (n * tasks), pa.string()),
            "seed": pa.array(np.full(n * tasks, member.seed, dtype=np.int64)),
            "label": pa.array(labels.reshape(-1).astype(np.int64)),
            "prediction": pa.array(answers.predicted.reshape(-1).astype(np.int64)),
            "score": _floats(held, n * tasks),
        }
        if self.scores:
            both = None if held is None else np.stack([1 - held, held], axis=1)
            columns["scores"] = _lists(both, n * tasks)
        if self.ranks:
            right = labels.reshape(-1) == answers.predicted.reshape(-1)
            columns["label_rank"] = pa.array(np.where(right, 1, 2).astype(np.int64))
        return pa.table(columns | _groups(batch, tasks))

    def _score(self, held: NDArray[np.float64], answers: BatchPredictions) -> NDArray[np.float64]:
        if held.shape[1] == 2:
            called = [name.casefold() in POSITIVE_NAMES for name in self.names or ()]
            return held[:, 0 if called == [True, False] else 1]
        chosen: NDArray[np.float64] = held[np.arange(len(held)), answers.predicted]
        return chosen

    def _named(self, places: NDArray[Any], shown: str) -> pa.Array:
        """Classes by name where names are known, else as they are."""
        if self.names is None or places.dtype.kind not in "iu":
            if places.dtype.kind in "iu":
                return pa.array(places.astype(np.int64))
            return pa.array([None if v is None else str(v) for v in places.tolist()], pa.string())
        if len(places) and not 0 <= int(places.min()) <= int(places.max()) < len(self.names):
            raise InputError(
                f"{shown} predicts class {int(places.max())}, but there are {len(self.names)} "
                "classes; its output does not fit the labels."
            )
        return pa.array(self.names, pa.string()).take(pa.array(places.astype(np.int64)))


def _floats(values: NDArray[np.float64] | None, n: int) -> pa.Array:
    return pa.nulls(n, pa.float64()) if values is None else pa.array(values, pa.float64())


def _lists(values: NDArray[np.float64] | None, n: int) -> pa.Array:
    """Lists of probabilities, in single precision: they are most of the file."""
    kind = pa.list_(pa.float32())
    if values is None:
        return pa.nulls(n, kind)
    flat = pa.array(values.astype(np.float32).reshape(-1))
    offsets = pa.array(np.arange(0, values.size + 1, values.shape[1], dtype=np.int32))
    return pa.ListArray.from_arrays(offsets, flat)


def _groups(batch: Batch, repeats: int) -> dict[str, pa.Array]:
    columns = {}
    for name, values in batch.groups.items():
        try:
            columns[name] = pa.array(np.repeat(values, repeats), from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise InputError(
                f"The group column '{name}' holds values of different types; give text or numbers."
            ) from None
    return columns
