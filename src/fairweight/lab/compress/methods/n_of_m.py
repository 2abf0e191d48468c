"""N:M: of every m neighbouring input channels the n largest weights stay."""

from __future__ import annotations

from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.compress.entries import kept_weights
from fairweight.lab.compress.layers import chosen, weight_name, without
from fairweight.lab.compress.registry import Masks, method
from fairweight.lab.compress.schedules import Step
from fairweight.lab.compress.scores import magnitudes
from fairweight.lab.compress.select import of_each_group
from fairweight.specs.compression import NOfM


@method(
    "n-of-m",
    spec=NOfM,
    summary="The n largest weights of every m neighbouring input channels (2:4, 1:4, 1:8)",
    source="Iofinova et al.",
)
def n_of_m(model: nn.Module, spec: NOfM, step: Step | None) -> Masks:
    """The pattern is whole or, where nothing is due yet, not there."""
    n = spec.m if step is not None and step.amount == 0 else spec.n
    masks: Masks = {}
    for path, layer in chosen(model, spec.layers).items():
        weight = layer.weight
        if weight.shape[1] % spec.m == 0:
            scores = _grouped(magnitudes(weight, path), spec.m)
            kept = of_each_group(scores, _grouped(kept_weights(layer), spec.m), n)
            inputs_last = (weight.shape[0], *weight.shape[2:], weight.shape[1])
            masks[weight_name(path)] = kept.view(inputs_last).movedim(-1, 1).contiguous()
        elif spec.indivisible == "refuse":
            raise InputError(
                f"The layer '{path}' has {weight.shape[1]} input channels (of one group), which "
                f"are no multiple of m = {spec.m}; leave it out with "
                f'{without(spec.layers, [path])}, or all such layers with indivisible = "leave".'
            )
    return masks


def _grouped(weight: Tensor, m: int) -> Tensor:
    """Input channels last, then m at a time: a row per group."""
    return weight.movedim(1, -1).reshape(-1, m)
