"""The smallest weights of all layers together (GMP's criterion)."""

from __future__ import annotations

from torch import nn

from fairweight.lab.compress.entries import prune_weights
from fairweight.lab.compress.registry import Masks, method
from fairweight.lab.compress.schedules import Step
from fairweight.lab.compress.scores import magnitudes
from fairweight.lab.compress.select import over_all
from fairweight.specs.compression import GlobalMagnitude


@method(
    "global-magnitude",
    spec=GlobalMagnitude,
    summary="The smallest weights of all layers together",
    source="Iofinova et al.; Paganini",
)
def global_magnitude(model: nn.Module, spec: GlobalMagnitude, step: Step | None) -> Masks:
    return prune_weights(
        model, spec.layers, step or Step(spec.sparsity), magnitudes, select=over_all
    )
