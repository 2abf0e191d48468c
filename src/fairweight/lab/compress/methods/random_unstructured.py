"""Random weights of each layer."""

from __future__ import annotations

from torch import Tensor, nn

from fairweight.lab.compress.entries import prune_weights
from fairweight.lab.compress.registry import Masks, method
from fairweight.lab.compress.schedules import Step
from fairweight.lab.compress.scores import random_scores
from fairweight.specs.compression import RandomUnstructured


@method(
    "random-unstructured",
    spec=RandomUnstructured,
    summary="Random weights of each layer",
    source="Paganini",
)
def random_unstructured(model: nn.Module, spec: RandomUnstructured, step: Step | None) -> Masks:
    def score(weight: Tensor, name: str) -> Tensor:
        return random_scores(weight.numel(), name, seed=spec.seed).to(weight.device)

    return prune_weights(model, spec.layers, step or Step(spec.sparsity), score)
