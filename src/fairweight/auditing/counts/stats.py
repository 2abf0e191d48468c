"""Counts of models in slices: what every metric is a function of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Counts:
    """How often each class is the label, is predicted, and is predicted rightly.

    The last axis is the class; every axis before it is free (replicates, members, slices), so one
    formula serves a single number and two thousand bootstrap replicates of ten thousand groups.
    Only classes that occur as labels have a place; a prediction of any other class is simply
    nobody's `correct` and nobody's `predicted`.
    """

    label: Floats  # (..., C)
    predicted: Floats  # (..., C)
    correct: Floats  # (..., C)
    abstained: Floats  # (...)
    classes: tuple[str, ...]
    positive: int | None = None  # index into classes; only ever set where there are two classes
    _made: dict[str, Floats] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def n(self) -> Floats:
        """Examples (or weight) in each slice."""
        return self.once("n", lambda: self.label.sum(axis=-1))

    def once(self, name: str, make: Callable[[], Floats]) -> Floats:
        """What several metrics need of the same counts (recall, FPR, ...) is computed once.

        The array is shared: whoever takes it must not change it.
        """
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    @property
    def binary(self) -> bool:
        return len(self.classes) == 2

    def averaged(self, weights: Floats | None = None) -> Counts:
        """The mean over members (third last axis) as one member.

        Label denominators are shared, so mean counts give mean rates. `weights`, (..., members),
        say how much each member counts; None: all alike.
        """
        if weights is None:
            return replace(
                self,
                label=self.label[..., :1, :, :],
                predicted=self.predicted.mean(axis=-3, keepdims=True),
                correct=self.correct.mean(axis=-3, keepdims=True),
                abstained=self.abstained.mean(axis=-2, keepdims=True),
            )

        def weighted(counts: Floats) -> Floats:
            made: Floats = np.einsum("...msc,...m->...sc", counts, weights)[..., None, :, :]
            return made

        return replace(
            self,
            label=np.broadcast_to(self.label[..., :1, :, :], weighted(self.correct).shape),
            predicted=weighted(self.predicted),
            correct=weighted(self.correct),
            abstained=weighted(self.abstained[..., None])[..., 0],
        )

    def others(self) -> Counts:
        """For every slice (second last axis), the counts of everyone outside it."""
        return replace(
            self,
            label=self.label.sum(axis=-2, keepdims=True) - self.label,
            predicted=self.predicted.sum(axis=-2, keepdims=True) - self.predicted,
            correct=self.correct.sum(axis=-2, keepdims=True) - self.correct,
            abstained=self.abstained.sum(axis=-1, keepdims=True) - self.abstained,
        )

    def levels(self, keep: NDArray[np.bool_]) -> Counts:
        """The slices (second last axis) where `keep` is true."""
        if keep.all():
            return self
        return replace(
            self,
            label=self.label[..., keep, :],
            predicted=self.predicted[..., keep, :],
            correct=self.correct[..., keep, :],
            abstained=self.abstained[..., keep],
        )


def counts_of(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    positive: object = None,
) -> Counts:
    """Counts of plain arrays: shape (C,), or (levels, C) with `sensitive_features`.

    >>> counts_of(["a", "a", "b"], ["a", "b", "b"]).correct.tolist()
    [1.0, 1.0]
    """
    from fairweight.auditing.counts.arrays import count_arrays

    return count_arrays(y_true, y_pred, sensitive_features, sample_weight, positive)
