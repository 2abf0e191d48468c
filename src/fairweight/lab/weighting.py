"""Weights of classes in the loss: all the same, or more for those that a network gets wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from fairweight.specs.training import Training

STEP = 1.0  # a class with an error of 1 in an epoch gains a factor of e on one without errors


class Weighting:
    """What an example weighs, by its class, or by its value of every attribute.

    Weights are (tasks, values), with a mean over the training examples of 1, so that a learning
    rate means what it means without them. A single label is one task. `worst-class` is the
    exponentiated update of group DRO (Sagawa et al. 2020) with classes as groups, once per epoch,
    on the errors that the network made while it trained.
    """

    def __init__(self, kind: Literal["class-balanced", "worst-class"], labels: Tensor) -> None:
        self._follows = kind == "worst-class"
        self._counts = counted(labels)
        first = torch.ones_like(self._counts) if self._follows else 1 / self._counts.clamp(min=1)
        self.weights = scaled(first, self._counts)
        self._seen = torch.zeros_like(self._counts)
        self._wrong = torch.zeros_like(self._counts)

    def before_epoch(self) -> None:
        """Take account of the errors of the epoch before; then count anew."""
        if not self._follows:
            return
        error = self._wrong / self._seen.clamp(min=1)
        self.weights = scaled(self.weights * torch.exp(STEP * error), self._counts)
        self._seen.zero_()
        self._wrong.zero_()

    def loss(self, output: Tensor, labels: Tensor) -> Tensor:
        """The weighted mean loss of one batch."""
        if labels.dim() == 1:
            each = functional.cross_entropy(output, labels, reduction="none")[:, None]
            answer = output.argmax(dim=1)
        else:
            each = functional.binary_cross_entropy_with_logits(
                output, labels.to(output.dtype), reduction="none"
            )
            answer = (output > 0).long()
        values = labels.reshape(len(labels), -1)
        if self._follows:
            self._count(values.cpu(), (answer != labels).reshape(values.shape).cpu())
        weights = self.weights.to(output.device, output.dtype)
        tasks = torch.arange(values.shape[1], device=values.device)
        return (weights[tasks, values] * each).mean()

    def state_dict(self) -> dict[str, Tensor]:
        """What the next epoch depends on."""
        return {"weights": self.weights, "seen": self._seen, "wrong": self._wrong}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.weights = state["weights"].clone()
        self._seen, self._wrong = state["seen"].clone(), state["wrong"].clone()

    def _count(self, values: Tensor, wrong: Tensor) -> None:
        for task, (given, missed) in enumerate(zip(values.T, wrong.T, strict=True)):
            n = self._counts.shape[1]
            self._seen[task] += torch.bincount(given, minlength=n)
            self._wrong[task] += torch.bincount(given[missed], minlength=n)


def weighting_of(spec: Training, labels: Tensor) -> Weighting | None:
    """The weighting that a training asks for; None where all examples weigh the same."""
    return None if spec.weighting == "none" else Weighting(spec.weighting, labels)


def counted(labels: Tensor) -> Tensor:
    """Examples by task and value: (1, classes), or (attributes, 2).

    >>> counted(torch.tensor([0, 2, 2])).tolist()
    [[1.0, 0.0, 2.0]]
    >>> counted(torch.tensor([[0, 1], [0, 0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    values = int(labels.max()) + 1 if labels.dim() == 1 else 2
    columns = labels.reshape(len(labels), -1).T
    return torch.stack([torch.bincount(column, minlength=values) for column in columns]).double()


def scaled(weights: Tensor, counts: Tensor) -> Tensor:
    """The same weights with a mean over the examples of 1 in every task.

    >>> scaled(torch.tensor([[1.0, 3.0]]), torch.tensor([[3.0, 1.0]])).tolist()  # mean 6 / 4
    [[0.6666666865348816, 2.0]]
    """
    n = counts.sum(dim=1, keepdim=True)
    return weights * n / (weights * counts).sum(dim=1, keepdim=True)
