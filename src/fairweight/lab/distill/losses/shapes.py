"""Whether the features of a student and a teacher can be compared: a sentence where they cannot."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from fairweight.errors import InputError
from fairweight.lab.distill.registry import Features


class Pair(NamedTuple):
    """A feature of both networks."""

    name: str
    student: Tensor
    teacher: Tensor


def pairs_of(loss: str, student: Features, teacher: Features) -> list[Pair]:
    """Features in the networks' order, of the same examples in both."""
    if not student or len(student) != len(teacher):
        raise InputError(
            f"The loss '{loss}' compares features one by one, and the student gives "
            f"{_listed(student)}, the teacher {_listed(teacher)}; give the same number of both."
        )
    pairs = [
        Pair(name, mine, theirs)
        for (name, mine), theirs in zip(student.items(), teacher.values(), strict=True)
    ]
    for pair in pairs:
        if min(pair.student.dim(), pair.teacher.dim()) < 2 or _n(pair.student) != _n(pair.teacher):
            raise unlike(loss, pair, "both need the same examples in rows")
    return pairs


def one_pair(loss: str, student: Features, teacher: Features) -> Pair:
    """The one feature that a loss reads."""
    pairs = pairs_of(loss, student, teacher)
    if len(pairs) != 1:
        raise InputError(
            f"The loss '{loss}' compares one feature, and got {_listed(student)}; give it one."
        )
    return pairs[0]


def require_several_examples(loss: str, pair: Pair) -> None:
    """Of one example alone there is nothing to compare: the loss would be 0 whatever it is."""
    if _n(pair.student) < 2:
        raise InputError(
            f"The loss '{loss}' compares the examples of a batch with each other, and a batch has "
            f"{_n(pair.student)}; choose a batch_size of 2 or more."
        )


def require_same_shape(loss: str, pair: Pair) -> None:
    """Nothing is broadcast in silence."""
    mine, theirs = pair.student.shape, pair.teacher.shape
    if len(mine) == len(theirs) and mine[1] != theirs[1]:
        raise unlike(loss, pair, "both need the same number of channels")
    if mine != theirs:
        raise unlike(loss, pair, "both need the same size")


def require_maps(loss: str, pair: Pair) -> None:
    """Maps are (examples, channels, height, width)."""
    if pair.student.dim() != 4 or pair.teacher.dim() != 4:
        raise unlike(loss, pair, "it needs maps (examples, channels, height, width)")


def unlike(loss: str, pair: Pair, need: str) -> InputError:
    """The sentence about a feature whose shapes do not suit a loss."""
    return InputError(
        f"The loss '{loss}' cannot compare feature '{pair.name}', which is "
        f"{tuple(pair.student.shape)} in the student and {tuple(pair.teacher.shape)} in the "
        f"teacher: {need}; choose other features or another loss."
    )


def _n(values: Tensor) -> int:
    return values.shape[0] if values.dim() else 0


def _listed(features: Features) -> str:
    return ", ".join(f"'{name}'" for name in features) or "none"
