"""Feature maps of different sizes, brought to the smaller one."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from fairweight.errors import InputError


def pooled_to_smaller(
    loss: str, first: Tensor, second: Tensor, names: tuple[str, str]
) -> tuple[Tensor, Tensor]:
    """Both maps, the larger one average-pooled; `names` are for the sentence."""
    size, other = _size(first), _size(second)
    if size == other:
        return first, second
    if size[0] >= other[0] and size[1] >= other[1]:
        return adaptive_avg_pool2d(first, other), second
    if size[0] <= other[0] and size[1] <= other[1]:
        return first, adaptive_avg_pool2d(second, size)
    raise InputError(
        f"The loss '{loss}' pools the larger of two maps, and {names[0]} of shape "
        f"{tuple(first.shape)} is neither the larger nor the smaller one beside {names[1]} of "
        f"shape {tuple(second.shape)}; choose other features or another loss."
    )


def _size(maps: Tensor) -> tuple[int, int]:
    return maps.shape[2], maps.shape[3]
