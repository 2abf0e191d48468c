"""ResNet-18, -34 and -50 with the stem for ImageNet or for small images."""

from __future__ import annotations

from torch import Tensor, nn

from fairweight.lab.models.initial import initialise_convolutions
from fairweight.lab.models.registry import architecture
from fairweight.lab.models.residual import BasicBlock, Bottleneck, stage
from fairweight.lab.models.scale import Scale, scale_of, scaled

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
