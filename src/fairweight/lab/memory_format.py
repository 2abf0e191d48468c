"""How a network and its images lie in memory while it trains."""

from __future__ import annotations

import torch
from torch import Tensor, nn

# oneDNN's block of channels on AVX-512; it is 8 on AVX2.
BLOCK = 16


def training_format(model: nn.Module) -> torch.memory_format:
    """Channels last, which is quickest, unless torch cannot train the network that way.

    The gradient of a 1 × 1 convolution with a stride that reads few channels writes outside of
    its memory there: the process hangs or dies, or the weights are wrong (uxlfoundation/oneDNN
    issue 6035, seen with torch 2.13). Narrow ResNets have such convolutions.
    """
    if any(_breaks(module) for module in model.modules()):
        return torch.contiguous_format
    return torch.channels_last


def lay_out(model: nn.Module) -> torch.memory_format:
    """Put a network's weights as it is trained best, in place; the format is for its images."""
    layout = training_format(model)
    model.to(memory_format=layout)  # type: ignore[call-overload]
    if layout is torch.contiguous_format:
        for weight in model.parameters():
            weight.data = in_format(weight.data, layout)
    return layout


def in_format(values: Tensor, layout: torch.memory_format) -> Tensor:
    """Images or weights in a format.

    With one channel the two formats hold the same bytes, so that `contiguous` changes nothing;
    but convolutions go by the strides.
    """
    if layout is torch.contiguous_format:
        return values.clone(memory_format=layout)
    return values.contiguous(memory_format=layout)


def _breaks(module: nn.Module) -> bool:
    return (
        isinstance(module, nn.Conv2d)
        and module.kernel_size == (1, 1)
        and module.stride != (1, 1)
        and module.in_channels < BLOCK
    )
