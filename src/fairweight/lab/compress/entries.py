"""From layers to flat entries and back: single weights, or whole slices along an axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from fairweight.lab.compress.layers import Layer, chosen, weight_name
from fairweight.lab.compress.mask import mask_of
from fairweight.lab.compress.schedules import Step
from fairweight.lab.compress.select import per_layer

Score = Callable[[Tensor, str], Tensor]  # of a weight and its name
Select = Callable[[Mapping[str, Tensor], Mapping[str, Tensor], Step], dict[str, Tensor]]


def kept_weights(layer: Layer) -> Tensor:
    """Which weights of a layer are left."""
    mask = mask_of(layer, "weight")
    if mask is None:
        return torch.ones_like(layer.weight, dtype=torch.bool)
    return mask.kept


def kept_slices(kept: Tensor, dim: int) -> Tensor:
    """Which slices have anything left."""
    return kept.transpose(0, dim).flatten(1).any(dim=1)


def prune_weights(
    model: nn.Module,
    layers: Sequence[str],
    step: Step,
    score: Score,
    select: Select = per_layer,
) -> dict[str, Tensor]:
    """Masks of single weights."""
    found = {weight_name(path): layer for path, layer in chosen(model, layers).items()}
    scores = {name: score(layer.weight, name).flatten() for name, layer in found.items()}
    kept = {name: kept_weights(layer).flatten() for name, layer in found.items()}
    selected = select(scores, kept, step)
    return {name: selected[name].view(layer.weight.shape) for name, layer in found.items()}


def prune_slices(
    model: nn.Module, layers: Sequence[str], step: Step, score: Score, *, dim: int
) -> dict[str, Tensor]:
    """Masks of whole slices, the same share of each layer."""
    found = {weight_name(path): layer for path, layer in chosen(model, layers).items()}
    scores = {name: score(layer.weight, name) for name, layer in found.items()}
    kept = {name: kept_slices(kept_weights(layer), dim) for name, layer in found.items()}
    selected = per_layer(scores, kept, step)
    return {name: _spread(selected[name], layer.weight, dim) for name, layer in found.items()}


def _spread(kept: Tensor, weight: Tensor, dim: int) -> Tensor:
    """A flag per slice as a mask of the whole weight."""
    shape = [1] * weight.dim()
    shape[dim] = -1
    return kept.view(shape).expand(weight.shape).contiguous()
