"""ResNet8x4 and ResNet32x4: residual networks for CIFAR, four times as wide, of RepDistiller."""

from __future__ import annotations

from torch import Tensor, nn

from fairweight.lab.models.initial import initialise_convolutions
from fairweight.lab.models.registry import architecture
from fairweight.lab.models.residual import BasicBlock, stage
from fairweight.lab.models.scale import scaled

SOURCE = "Tian et al., arXiv:1910.10699: github.com/HobbitLong/RepDistiller, models/resnet.py"


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


@architecture("resnet8x4", summary="ResNet8x4: one basic block per stage", source=SOURCE)
def resnet8x4(*, classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """1.23 million parameters for 100 classes; any image size."""
    return ResNetX4(8, classes=classes, channels=channels, width=width)


@architecture("resnet32x4", summary="ResNet32x4: five basic blocks per stage", source=SOURCE)
def resnet32x4(*, classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """7.43 million parameters for 100 classes; any image size."""
    return ResNetX4(32, classes=classes, channels=channels, width=width)
