"""Convolutions of each channel by itself, with gradients that a processor computes quickly.

In bfloat16 oneDNN has no quick gradient of a depthwise convolution with a stride (of its input),
nor of a kernel larger than 3 × 3 (of its weights): they take four fifths of a training step of
EfficientNet-Lite0. Both follow from what it does quickly. A stride is a gradient with zeros in
between; a larger kernel is several of 3 × 3, on shifted images.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

PIECE = 3  # the largest kernel with a quick gradient


class QuickConv2d(nn.Conv2d):
    """`nn.Conv2d` without bias; trained in bfloat16, channels by themselves have quick gradients.

    In float32 oneDNN's own gradients are as quick.
    """

    def forward(self, x: Tensor) -> Tensor:
        depthwise = 1 < self.groups == self.in_channels == self.out_channels
        low = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
        if not (depthwise and low and torch.is_grad_enabled() and x.device.type == "cpu"):
            return super().forward(x)
        weight = self.weight.to(torch.bfloat16)
        made: Tensor = _Depthwise.apply(  # type: ignore[no-untyped-call]
            x.to(torch.bfloat16), weight, self.stride[0], int(self.padding[0])
        )
        return made


class _Depthwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.stride, ctx.padding = stride, padding
        return functional.conv2d(x, weight, None, stride, padding, 1, len(weight))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        (gradient,) = gradients
        x, weight = ctx.saved_tensors
        padding, kernel = ctx.padding, weight.shape[-1]
        spread = gradient
        if ctx.stride > 1:
            size = [edge + 2 * padding - kernel + 1 for edge in x.shape[2:]]
            spread = gradient.new_zeros(*gradient.shape[:2], *size).contiguous(
                memory_format=torch.channels_last
            )
            spread[:, :, :: ctx.stride, :: ctx.stride] = gradient
        of_input = of_weight = None
        if ctx.needs_input_grad[0]:
            of_input = _gradient(spread, x, weight, padding)[0]
        if ctx.needs_input_grad[1] and kernel <= PIECE:
            of_weight = _gradient(gradient, x, weight, padding, ctx.stride, of_weight=True)[1]
        elif ctx.needs_input_grad[1]:
            padded = functional.pad(x, [padding] * 4)
            of_weight = torch.empty_like(weight)
            part = weight[:, :, :PIECE, :PIECE].contiguous()
            rows, columns = (edge + PIECE - 1 for edge in spread.shape[2:])
            for i in range(0, kernel - 1, PIECE - 1):
                for j in range(0, kernel - 1, PIECE - 1):
                    seen = padded[:, :, i : i + rows, j : j + columns]
                    seen = seen.contiguous(memory_format=torch.channels_last)
                    found = _gradient(spread, seen, part, 0, of_weight=True)[1]
                    of_weight[:, :, i : i + PIECE, j : j + PIECE] = found
        return of_input, of_weight, None, None


def _gradient(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    padding: int,
    stride: int = 1,
    *,
    of_weight: bool = False,
) -> tuple[Tensor, Tensor]:
    found: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
        gradient, x, weight, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0],
        len(weight), [not of_weight, of_weight, False],
    )  # fmt: skip
    return found[0], found[1]
