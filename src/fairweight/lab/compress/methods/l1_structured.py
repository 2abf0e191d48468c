"""The slices of the smallest sum of absolute weights."""

from __future__ import annotations

from functools import partial

from torch import nn

from fairweight.lab.compress.entries import prune_slices
from fairweight.lab.compress.registry import Masks, method
from fairweight.lab.compress.schedules import Step
from fairweight.lab.compress.scores import slice_norms
from fairweight.specs.compression import L1Structured


@method(
    "l1-structured",
    spec=L1Structured,
    summary="The slices of the smallest sum of absolute weights",
    source="Simon Says; Paganini",
)
def l1_structured(model: nn.Module, spec: L1Structured, step: Step | None) -> Masks:
    score = partial(slice_norms, dim=spec.dim, order=1)
    return prune_slices(model, spec.layers, step or Step(spec.sparsity), score, dim=spec.dim)
