"""Random slices of each layer."""

from __future__ import annotations

from torch import Tensor, nn

from fairweight.lab.compress.entries import prune_slices
from fairweight.lab.compress.registry import Masks, method
from fairweight.lab.compress.schedules import Step
from fairweight.lab.compress.scores import random_scores
from fairweight.specs.compression import RandomStructured


@method(
    "random-structured",
    spec=RandomStructured,
    summary="Random slices of each layer",
    source="Paganini",
)
def random_structured(model: nn.Module, spec: RandomStructured, step: Step | None) -> Masks:
    def score(weight: Tensor, name: str) -> Tensor:
        return random_scores(weight.shape[spec.dim], name, seed=spec.seed).to(weight.device)

    return prune_slices(model, spec.layers, step or Step(spec.sparsity), score, dim=spec.dim)
