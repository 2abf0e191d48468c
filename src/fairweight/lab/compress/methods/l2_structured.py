"""The slices of the smallest Euclidean norm."""

from __future__ import annotations

from functools import partial

from torch import nn

from fairweight.lab.compress.entries import prune_slices
from fairweight.lab.compress.registry import Masks, method
from fairweight.lab.compress.schedules import Step
from fairweight.lab.compress.scores import slice_norms
from fairweight.specs.compression import L2Structured


@method(
    "l2-structured",
    spec=L2Structured,
    summary="The slices of the smallest Euclidean norm",
    source="Paganini; the resource-efficient study",
)
def l2_structured(model: nn.Module, spec: L2Structured, step: Step | None) -> Masks:
    score = partial(slice_norms, dim=spec.dim, order=2)
    return prune_slices(model, spec.layers, step or Step(spec.sparsity), score, dim=spec.dim)
