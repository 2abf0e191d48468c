"""The registry of distillation losses: a name to one function (or class) of two sets of features.

A loss is a function of the student's and the teacher's features, both by name and in the network's
order, the teacher's without gradients; keyword-only arguments are options that users may set. A
loss with a state of its own (memory banks, projections) is a class: a module that is built once per
training from its `Setting` and called with the `Batch` as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from torch import Tensor

from fairweight.errors import InputError, UnknownNameError
from fairweight.other_packages import load_entry_points

ENTRY_POINTS = "fairweight.losses"
Features: TypeAlias = Mapping[str, Tensor]
Reads: TypeAlias = Literal[
    "logits", "pooled", "blocks", "last-block", "stem-and-blocks", "max-pools"
]
LossT = TypeVar("LossT", bound=Callable[..., Any])


@dataclass(frozen=True)
class Setting:
    """What a loss with a state is built for.

    Parameters
    ----------
    labels
        Of all training examples, in their order.
    student, teacher
        The features of one batch, for their shapes.
    seed
        Of everything that is drawn.
    batch_size
        How many examples a step has at most.
    """

    labels: Tensor
    student: Features
    teacher: Features
    seed: int
    batch_size: int


@dataclass(frozen=True)
class Batch:
    """Which training examples a batch holds (positions among all of them), and their labels."""

    index: Tensor
    labels: Tensor


@dataclass(frozen=True)
class DistillationLoss:
    """A loss, what it reads, and the weights that were published for it.

    Parameters
    ----------
    reads
        Which features of the networks it compares.
    weight, ce
        Its own weight and that of the cross-entropy beside it.
    initial
        Whether it acts only in a stage of its own before the training.
    relates
        Whether it compares the examples of a batch with one another, so that its size depends on
        how many there are.
    """

    name: str
    function: Callable[..., Any]
    reads: Reads
    weight: float
    ce: float
    initial: bool
    relates: bool
    summary: str  # one line, for listings
    source: str

    @property
    def has_state(self) -> bool:
        return inspect.isclass(self.function)

    @property
    def options(self) -> dict[str, Any]:
        """Options with the values that they have if nobody gives others."""
        return {
            name: parameter.default
            for name, parameter in inspect.signature(self.function).parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }


_LOSSES: dict[str, DistillationLoss] = {}


def distillation_loss(
    name: str,
    *,
    reads: Reads,
    weight: float,
    summary: str,
    source: str,
    ce: float = 1.0,
    initial: bool = False,
    relates: bool = False,
) -> Callable[[LossT], LossT]:
    """Register a loss under a name; the decorated function stays usable as it is.

    Examples
    --------
    >>> @distillation_loss("mine", reads="pooled", weight=1.0, summary="squares", source="mine")
    ... def mine(student, teacher):
    ...     return sum(((student[n] - teacher[n]) ** 2).mean() for n in student)
    >>> loss("mine").weight
    1.0
    >>> unregister("mine")
    """
    if name in _LOSSES:
        raise InputError(f"A loss named '{name}' is registered already; choose another name.")
    if not name or set("+.") & set(name) or name == "ce":
        raise InputError(
            f"A loss cannot be named '{name}': '+' joins several, 'ce' is the cross-entropy, and "
            "points are left out; choose another name."
        )
    if reads not in get_args(Reads):
        raise UnknownNameError("reads", reads, get_args(Reads))

    def add(function: LossT) -> LossT:
        _LOSSES[name] = DistillationLoss(
            name, function, reads, weight, ce, initial, relates, summary, source
        )
        return function

    return add


def unregister(name: str) -> None:
    """Remove a loss (for tests and notebooks that define one again)."""
    _LOSSES.pop(name)


def losses() -> tuple[DistillationLoss, ...]:
    """Every registered loss, in order of registration; those of other packages last."""
    _load_others()
    return tuple(_LOSSES.values())


def loss(name: str) -> DistillationLoss:
    """The loss of this name."""
    if name not in _LOSSES:
        _load_others()
    if name not in _LOSSES:
        raise UnknownNameError("Distillation loss", name, _LOSSES)
    return _LOSSES[name]


@cache
def _load_others() -> None:
    load_entry_points(ENTRY_POINTS, "loss")
