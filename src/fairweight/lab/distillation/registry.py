"""The registry of distillation losses: a name to one function (or class) of two sets of features.

A loss is a function of the student's and the teacher's features, both by name and in the network's
order, the teacher's without gradients; keyword-only arguments are options that users may set. A
loss with a state of its own (memory banks, projections) is a class: a module that is built once per
training from its `LossSetting` and called with the `BatchPositions` as well.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from torch import Tensor

from fairweight.base.registry import Registry
from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.training import Distillation

ENTRY_POINTS = "fairweight.losses"
Features: TypeAlias = Mapping[str, Tensor]
Reads: TypeAlias = Literal[
    "logits", "pooled", "blocks", "last-block", "stem-and-blocks", "max-pools"
]
LossT = TypeVar("LossT", bound=Callable[..., Any])


@dataclass(frozen=True)
class LossSetting:
    """The networks and data for which a loss with a state is built.

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
class BatchPositions:
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


LOSSES: Registry[DistillationLoss] = Registry(
    "loss", group=ENTRY_POINTS, unknown="Distillation loss"
)
loss = LOSSES.__getitem__
unregister = LOSSES.remove


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
    if not name or set("+.") & set(name) or name == "ce":
        raise InputError(
            f"A loss cannot be named '{name}': '+' joins several, 'ce' is the cross-entropy, and "
            "points are left out; choose another name."
        )
    if reads not in get_args(Reads):
        raise UnknownNameError("reads", reads, get_args(Reads))

    def add(function: LossT) -> LossT:
        entry = DistillationLoss(
            name, function, reads, weight, ce, initial, relates, summary, source
        )
        LOSSES.add(name, entry)
        return function

    return add


def losses() -> tuple[DistillationLoss, ...]:
    """Every registered loss, in order of registration; those of other packages last."""
    return tuple(LOSSES.values())


# From a spec to the terms of a loss: which losses, with which weights and options.

CE, KD = "ce", "kd"


@dataclass(frozen=True)
class LossTerm:
    """One loss of a sum, its weight, and its options where they are not the published ones."""

    loss: DistillationLoss
    weight: float
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Terms:
    """The sum of one stage of a training; `ce` is the weight of the cross-entropy."""

    ce: float
    terms: tuple[LossTerm, ...]


def terms_of(spec: Distillation) -> Terms:
    """The sum that a training minimises.

    A loss alone has the weights that were published for it; in a sum with `kd` that and the
    cross-entropy weigh 1 (Simon Says).

    >>> sums = [terms_of(Distillation(losses=name)) for name in ("kd", "at", "at+kd")]
    >>> [(one.ce, *(term.weight for term in one.terms)) for one in sums]
    [(0.1, 0.9), (1.0, 1000.0), (1.0, 1000.0, 1.0)]
    """
    found = _named(spec)
    ce = found[0].ce if len(found) == 1 else 1.0
    return Terms(spec.weights.get(CE, ce), _weighted(spec, [o for o in found if not o.initial]))


def initial_terms_of(spec: Distillation) -> Terms | None:
    """The sum of the stage before the training, if a loss asks for one."""
    found = [one for one in _named(spec) if one.initial]
    return Terms(0.0, _weighted(spec, found)) if found else None


def _weighted(spec: Distillation, found: list[DistillationLoss]) -> tuple[LossTerm, ...]:
    in_sum = len(_named(spec)) > 1
    return tuple(
        LossTerm(
            one,
            spec.weights.get(one.name, 1.0 if in_sum and one.name == KD else one.weight),
            dict(spec.options.get(one.name, {})),
        )
        for one in found
    )


def _named(spec: Distillation) -> list[DistillationLoss]:
    """The losses of a spec, after all names and options were checked."""
    names = [name.strip() for name in spec.losses.lower().split("+")]
    found = [LOSSES[name] for name in names]
    if len(set(names)) != len(names):
        raise InputError(f"The distillation '{spec.losses}' names a loss twice; name each once.")
    for name in spec.weights:
        if name not in (CE, *names):
            raise UnknownNameError("Distillation: the weight", name, (CE, *names))
    for name, options in spec.options.items():
        if name not in names:
            raise UnknownNameError("Distillation: options of the loss", name, names)
        for option in options:
            known = LOSSES[name].options
            if option not in known:
                raise UnknownNameError(f"Distillation: the option of {name}", option, known)
    return found


# Options of losses that users set: a sentence for every value that cannot be used.


NUMBERS: dict[str, Callable[[float], bool]] = {
    "a number above 0": lambda value: value > 0,
    "a number from 0 to 1": lambda value: 0 <= value <= 1,
    "a whole number from 1": lambda value: value >= 1 and value == int(value),
}


def number(loss: str, option: str, value: Any, need: str) -> float:
    """The value of an option that must be one of `NUMBERS`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not NUMBERS[need](value):
        raise InputError(
            f"The option {option} of the loss '{loss}' must be {need}, not {value!r}: "
            f"options = {{{loss} = {{{option} = …}}}}."
        )
    return float(value)


# Whether the features of a student and a teacher can be compared: a sentence where they cannot.


class FeaturePair(NamedTuple):
    """A feature of both networks."""

    name: str
    student: Tensor
    teacher: Tensor


def pairs_of(loss: str, student: Features, teacher: Features) -> list[FeaturePair]:
    """Features in the networks' order, of the same examples in both."""
    if not student or len(student) != len(teacher):
        raise InputError(
            f"The loss '{loss}' compares features one by one, and the student gives "
            f"{_listed(student)}, the teacher {_listed(teacher)}; give the same number of both."
        )
    pairs = [
        FeaturePair(name, mine, theirs)
        for (name, mine), theirs in zip(student.items(), teacher.values(), strict=True)
    ]
    for pair in pairs:
        flat = min(pair.student.dim(), pair.teacher.dim()) < 2
        if flat or len(pair.student) != len(pair.teacher):
            raise unlike(loss, pair, "both need the same examples in rows")
    return pairs


def one_pair(loss: str, student: Features, teacher: Features) -> FeaturePair:
    """The one feature that a loss reads."""
    pairs = pairs_of(loss, student, teacher)
    if len(pairs) != 1:
        raise InputError(
            f"The loss '{loss}' compares one feature, and got {_listed(student)}; give it one."
        )
    return pairs[0]


def require_several_examples(loss: str, pair: FeaturePair) -> None:
    """Refuse a batch of one example: these losses compare examples and would be 0."""
    if len(pair.student) < 2:
        raise InputError(
            f"The loss '{loss}' compares the examples of a batch with each other, and a batch has "
            f"{len(pair.student)}; choose a batch_size of 2 or more."
        )


def require_same_shape(loss: str, pair: FeaturePair) -> None:
    """Refuse features of different shapes, which torch would broadcast."""
    mine, theirs = pair.student.shape, pair.teacher.shape
    if len(mine) == len(theirs) and mine[1] != theirs[1]:
        raise unlike(loss, pair, "both need the same number of channels")
    if mine != theirs:
        raise unlike(loss, pair, "both need the same size")


def require_maps(loss: str, pair: FeaturePair) -> None:
    """Maps are (examples, channels, height, width)."""
    if pair.student.dim() != 4 or pair.teacher.dim() != 4:
        raise unlike(loss, pair, "it needs maps (examples, channels, height, width)")


def unlike(loss: str, pair: FeaturePair, need: str) -> InputError:
    """The sentence about a feature whose shapes do not suit a loss."""
    return InputError(
        f"The loss '{loss}' cannot compare feature '{pair.name}', which is "
        f"{tuple(pair.student.shape)} in the student and {tuple(pair.teacher.shape)} in the "
        f"teacher: {need}; choose other features or another loss."
    )


def _listed(features: Features) -> str:
    return ", ".join(f"'{name}'" for name in features) or "none"
