"""The smallest weights of each layer."""

from __future__ import annotations

from torch import nn

from fairweight.lab.compress.entries import prune_weights
from fairweight.lab.compress.registry import Masks, method
from fairweight.lab.compress.schedules import Step
from fairweight.lab.compress.scores import magnitudes
from fairweight.specs.compression import L1Unstructured


@method(
    "l1-unstructured",
    spec=L1Unstructured,
    summary="The smallest weights of each layer",
    source="Hooker et al.; Paganini; the resource-efficient study",
)
def l1_unstructured(model: nn.Module, spec: L1Unstructured, step: Step | None) -> Masks:
    return prune_weights(model, spec.layers, step or Step(spec.sparsity), magnitudes)
