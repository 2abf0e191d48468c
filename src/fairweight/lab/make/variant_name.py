"""How variants are called: by what was done to the model."""

from __future__ import annotations

from fairweight.specs.compression import NOfM, ToSparsity
from fairweight.specs.distillation import Distillation

DENSE = "dense"


def variant_name(method: str, spec: ToSparsity | NOfM, *, after: str = DENSE) -> str:
    """The method and the sparsity in per cent, behind what was done before.

    >>> from fairweight.specs.compression import GlobalMagnitude, NOfM
    >>> variant_name("global-magnitude", GlobalMagnitude(sparsity=0.95))
    'global-magnitude-95'
    >>> variant_name("n-of-m", NOfM(n=2, m=4), after="int8-static")
    'int8-static-2-of-4'
    """
    own = (
        f"{spec.n}-of-{spec.m}" if isinstance(spec, NOfM) else f"{method}-{100 * spec.sparsity:.6g}"
    )
    return own if after == DENSE else f"{after}-{own}"


def taught_name(name: str, distillation: Distillation | None) -> str:
    """The same with the losses of a teacher.

    >>> taught_name("dense", Distillation(losses="at+kd"))
    'dense-at-kd'
    """
    return name if distillation is None else f"{name}-{distillation.losses.replace('+', '-')}"
