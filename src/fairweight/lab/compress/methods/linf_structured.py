"""The slices whose largest absolute weight is smallest."""

from __future__ import annotations

from functools import partial

from torch import nn

from fairweight.lab.compress.entries import prune_slices
from fairweight.lab.compress.registry import Masks, method
from fairweight.lab.compress.schedules import Step
from fairweight.lab.compress.scores import INFINITY, slice_norms
from fairweight.specs.compression import LinfStructured


@method(
    "linf-structured",
    spec=LinfStructured,
    summary="The slices whose largest absolute weight is smallest",
    source="Paganini",
)
def linf_structured(model: nn.Module, spec: LinfStructured, step: Step | None) -> Masks:
    score = partial(slice_norms, dim=spec.dim, order=INFINITY)
    return prune_slices(model, spec.layers, step or Step(spec.sparsity), score, dim=spec.dim)
