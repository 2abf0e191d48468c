"""From a spec to the terms of a loss: which losses, with which weights and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.distill.registry import DistillationLoss, loss
from fairweight.specs.distillation import Distillation

CE, KD = "ce", "kd"


@dataclass(frozen=True)
class Term:
    """One loss of a sum, its weight, and its options where they are not the published ones."""

    loss: DistillationLoss
    weight: float
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Terms:
    """The sum of one stage of a training; `ce` is the weight of the cross-entropy."""

    ce: float
    terms: tuple[Term, ...]


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


def _weighted(spec: Distillation, found: list[DistillationLoss]) -> tuple[Term, ...]:
    in_sum = len(_named(spec)) > 1
    return tuple(
        Term(
            one,
            spec.weights.get(one.name, 1.0 if in_sum and one.name == KD else one.weight),
            dict(spec.options.get(one.name, {})),
        )
        for one in found
    )


def _named(spec: Distillation) -> list[DistillationLoss]:
    """The losses of a spec, after a look at everything that names one."""
    names = [name.strip() for name in spec.losses.lower().split("+")]
    found = [loss(name) for name in names]
    if len(set(names)) != len(names):
        raise InputError(f"The distillation '{spec.losses}' names a loss twice; name each once.")
    for name in spec.weights:
        if name not in (CE, *names):
            raise UnknownNameError("Distillation: the weight", name, (CE, *names))
    for name, options in spec.options.items():
        if name not in names:
            raise UnknownNameError("Distillation: options of the loss", name, names)
        for option in options:
            known = loss(name).options
            if option not in known:
                raise UnknownNameError(f"Distillation: the option of {name}", option, known)
    return found
