"""ResNet-18, -34 and -50 with the stem for ImageNet or for small images."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from fairweight.lab.models.registry import (
    Scale,
    architecture,
    initialise_convolutions,
    scale_of,
    scaled,
)

# The blocks of residual networks; names of weights are torchvision's (and RepDistiller's).


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module | None:
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(_convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))


class BasicBlock(nn.Module):
    """Two 3 × 3 convolutions beside a shortcut."""

    expansion: ClassVar[int] = 1

    def __init__(self, inputs: int, planes: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _convolution(inputs, planes, 3, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu1 = nn.ReLU()
        self.conv2 = _convolution(planes, planes, 3)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = _shortcut(inputs, planes, stride)
        self.relu2 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu1(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(x))
        out: Tensor = self.relu2(x + shortcut)
        return out


class Bottleneck(nn.Module):
    """1 × 1, 3 × 3 (with the stride) and 1 × 1 convolutions beside a shortcut."""

    expansion: ClassVar[int] = 4

    def __init__(self, inputs: int, planes: int, stride: int) -> None:
        super().__init__()
        outputs = planes * self.expansion
        self.conv1 = _convolution(inputs, planes, 1)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu1 = nn.ReLU()
        self.conv2 = _convolution(planes, planes, 3, stride)
        self.bn2 = nn.BatchNorm2d(planes)
        self.relu2 = nn.ReLU()
        self.conv3 = _convolution(planes, outputs, 1)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = _shortcut(inputs, outputs, stride)
        self.relu3 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu1(self.bn1(self.conv1(x)))
        x = self.relu2(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x))
        out: Tensor = self.relu3(x + shortcut)
        return out


def stage(
    block: type[BasicBlock] | type[Bottleneck], inputs: int, planes: int, count: int, stride: int
) -> nn.Sequential:
    """Several blocks, of which the first has the stride."""
    outputs = planes * block.expansion
    first = block(inputs, planes, stride)
    return nn.Sequential(first, *(block(outputs, planes, 1) for _ in range(count - 1)))


SOURCE = "He et al., arXiv:1512.03385, table 1"


class ResNet(nn.Module):
    """A stem and four stages; names of weights are torchvision's."""

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        counts: tuple[int, int, int, int],
        *,
        classes: int,
        channels: int,
        width: float,
        stem: Scale,
    ) -> None:
        super().__init__()
        one, two, three, four = (scaled(count, width) for count in (64, 128, 256, 512))
        if stem == "imagenet":
            self.conv1 = nn.Conv2d(channels, one, 7, stride=2, padding=3, bias=False)
            self.maxpool: nn.Module = nn.MaxPool2d(3, stride=2, padding=1)
        else:
            self.conv1 = nn.Conv2d(channels, one, 3, padding=1, bias=False)
            self.maxpool = nn.Identity()
        self.bn1 = nn.BatchNorm2d(one)
        self.relu = nn.ReLU()
        self.layer1 = stage(block, one, one, counts[0], 1)
        self.layer2 = stage(block, one * block.expansion, two, counts[1], 2)
        self.layer3 = stage(block, two * block.expansion, three, counts[2], 2)
        self.layer4 = stage(block, three * block.expansion, four, counts[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(four * block.expansion, classes)
        self.blocks = {
            "stem": "maxpool",
            "block1": "layer1",
            "block2": "layer2",
            "block3": "layer3",
            "block4": "layer4",
            "pooled": "flatten",
            "logits": "fc",
        }
        initialise_convolutions(self)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(self.flatten(self.avgpool(x)))
        return logits


@architecture("resnet18", summary="ResNet-18: 2, 2, 2, 2 basic blocks", source=SOURCE)
def resnet18(
    *, classes: int, channels: int, size: int, width: float = 1.0, stem: Scale | None = None
) -> nn.Module:
    """`stem`: 3 × 3 without pooling (`small`, up to 64 pixels) or 7 × 7 with it (`imagenet`)."""
    return ResNet(
        BasicBlock,
        (2, 2, 2, 2),
        classes=classes,
        channels=channels,
        width=width,
        stem=scale_of("stem", stem, size),
    )


@architecture("resnet34", summary="ResNet-34: 3, 4, 6, 3 basic blocks", source=SOURCE)
def resnet34(
    *, classes: int, channels: int, size: int, width: float = 1.0, stem: Scale | None = None
) -> nn.Module:
    """`stem` as for ResNet-18."""
    return ResNet(
        BasicBlock,
        (3, 4, 6, 3),
        classes=classes,
        channels=channels,
        width=width,
        stem=scale_of("stem", stem, size),
    )


@architecture("resnet50", summary="ResNet-50: 3, 4, 6, 3 bottleneck blocks", source=SOURCE)
def resnet50(
    *, classes: int, channels: int, size: int, width: float = 1.0, stem: Scale | None = None
) -> nn.Module:
    """`stem` as for ResNet-18; strides are in the 3 × 3 convolutions, as in torchvision."""
    return ResNet(
        Bottleneck,
        (3, 4, 6, 3),
        classes=classes,
        channels=channels,
        width=width,
        stem=scale_of("stem", stem, size),
    )


# ResNet8x4 and ResNet32x4: residual networks for CIFAR, four times as wide, of RepDistiller.

X4_SOURCE = "Tian et al., arXiv:1910.10699: github.com/HobbitLong/RepDistiller, models/resnet.py"


class ResNetX4(nn.Module):
    """A stem of 32 channels and three stages of 64, 128 and 256."""

    def __init__(self, depth: int, *, classes: int, channels: int, width: float) -> None:
        super().__init__()
        zero, one, two, three = (scaled(count, width) for count in (32, 64, 128, 256))
        count = (depth - 2) // 6  # two convolutions per block, three stages, stem and classifier
        self.conv1 = nn.Conv2d(channels, zero, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(zero)
        self.relu = nn.ReLU()
        self.layer1 = stage(BasicBlock, zero, one, count, 1)
        self.layer2 = stage(BasicBlock, one, two, count, 2)
        self.layer3 = stage(BasicBlock, two, three, count, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(three, classes)
        # RepDistiller's f0 … f4, and the logits.
        self.blocks = {
            "stem": "relu",
            "block1": "layer1",
            "block2": "layer2",
            "block3": "layer3",
            "pooled": "flatten",
            "logits": "fc",
        }
        initialise_convolutions(self)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        logits: Tensor = self.fc(self.flatten(self.avgpool(x)))
        return logits


@architecture("resnet8x4", summary="ResNet8x4: one basic block per stage", source=X4_SOURCE)
def resnet8x4(*, classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """1.23 million parameters for 100 classes; any image size."""
    return ResNetX4(8, classes=classes, channels=channels, width=width)


@architecture("resnet32x4", summary="ResNet32x4: five basic blocks per stage", source=X4_SOURCE)
def resnet32x4(*, classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """7.43 million parameters for 100 classes; any image size."""
    return ResNetX4(32, classes=classes, channels=channels, width=width)
