"""Convolutions of each channel by itself, with gradients that a processor computes quickly.

In bfloat16 oneDNN has no quick gradient of a depthwise convolution with a stride (of its input),
nor of a kernel larger than 3 × 3 (of its weights): they take four fifths of a training step of
EfficientNet-Lite0. The gradient of the input is itself a convolution of each channel, forwards,
of the output's gradient with zeros in between where there is a stride. That of a larger kernel
follows from products of all pairs of positions; of large images, from oneDNN in float32.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

QUICK = 3  # the largest kernel whose weights have a quick gradient in bfloat16
MOST_PAIRS = 120_000  # of positions: of 27 × 27 pixels with 12 × 12


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
        stride, padding, kernel = ctx.stride, ctx.padding, weight.shape[-1]
        of_input = of_weight = None
        if ctx.needs_input_grad[0]:
            spread = gradient
            if stride > 1:
                size = [edge + 2 * padding - kernel + 1 for edge in x.shape[2:]]
                spread = torch.empty(
                    (*gradient.shape[:2], *size),
                    dtype=gradient.dtype,
                    memory_format=torch.channels_last,
                ).zero_()
                spread[:, :, ::stride, ::stride] = gradient
            turned = weight.flip(2, 3)
            of_input = functional.conv2d(
                spread, turned, None, 1, kernel - 1 - padding, 1, len(weight)
            )
        if ctx.needs_input_grad[1]:
            edges = (*x.shape[2:], *gradient.shape[2:])
            if kernel > QUICK and math.prod(edges) <= MOST_PAIRS:
                products = torch.bmm(_by_channel(x), _by_channel(gradient).transpose(1, 2))
                taps = _taps(edges, kernel, stride, padding).to(x.dtype)
                of_weight = (products.flatten(1) @ taps).reshape(weight.shape)
            else:
                slow = kernel > QUICK and x.dtype == torch.bfloat16
                kind = torch.float32 if slow else x.dtype
                of_weight = torch.ops.aten.convolution_backward(
                    gradient.to(kind), x.to(kind), weight.to(kind), None, [stride] * 2,
                    [padding] * 2, [1, 1], False, [0, 0], len(weight), [False, True, False],
                )[1].to(weight.dtype)  # fmt: skip
        return of_input, of_weight, None, None


def _by_channel(values: Tensor) -> Tensor:
    """(channels, positions, images): a view of what is stored with channels last."""
    return values.permute(1, 2, 3, 0).flatten(1, 2)


@cache
def _taps(edges: tuple[int, ...], kernel: int, stride: int, padding: int) -> Tensor:
    """Which pair of a pixel and an output meets in which weight: ones, (pairs, weights)."""

    def met(pixels: int, outputs: int) -> Tensor:  # (pixels, outputs, kernel), along one edge
        tap = torch.arange(pixels)[:, None] - stride * torch.arange(outputs) + padding
        return tap[:, :, None] == torch.arange(kernel)

    rows, columns = met(edges[0], edges[2]), met(edges[1], edges[3])
    both = torch.einsum("pqi,rsj->prqsij", rows.bfloat16(), columns.bfloat16())
    return both.reshape(math.prod(edges), kernel * kernel)
