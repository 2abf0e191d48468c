"""MobileNetV1: convolutions separated into one per channel and one across channels."""

from __future__ import annotations

from torch import Tensor, nn

from fairweight.lab.models.depthwise import QuickConv2d
from fairweight.lab.models.registry import (
    Scale,
    architecture,
    initialise_convolutions,
    scale_of,
    scaled,
)

# Output channels of the separable convolutions; each stage's first has stride 2, save the very
# first one's.
STAGES = ((64,), (128, 128), (256, 256), (512,) * 6, (1024, 1024))


class Separable(nn.Module):
    """A 3 × 3 convolution of each channel by itself, and a 1 × 1 convolution of all."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.depthwise = QuickConv2d(
            inputs, inputs, 3, stride=stride, padding=1, groups=inputs, bias=False
        )
        self.bn1 = nn.BatchNorm2d(inputs)
        self.relu1 = nn.ReLU()
        self.pointwise = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu2 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu1(self.bn1(self.depthwise(x)))
        out: Tensor = self.relu2(self.bn2(self.pointwise(x)))
        return out


class MobileNetV1(nn.Module):
    """A stem and five stages of separable convolutions."""

    def __init__(self, *, classes: int, channels: int, width: float, stem: Scale) -> None:
        super().__init__()
        inputs = scaled(32, width)
        stride = 2 if stem == "imagenet" else 1
        self.conv1 = nn.Conv2d(channels, inputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(inputs)
        self.relu = nn.ReLU()
        self.blocks = {"stem": "relu"}
        self.stages = nn.Sequential()
        for number, plan in enumerate(STAGES, start=1):
            layers = nn.Sequential()
            for place, count in enumerate(plan):
                outputs = scaled(count, width)
                layers.append(Separable(inputs, outputs, 2 if place == 0 and number > 1 else 1))
                inputs = outputs
            self.stages.append(layers)
            self.blocks[f"block{number}"] = f"stages.{number - 1}"
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(inputs, classes)
        self.blocks |= {"pooled": "flatten", "logits": "fc"}
        initialise_convolutions(self)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stages(self.relu(self.bn1(self.conv1(x))))
        logits: Tensor = self.fc(self.flatten(self.avgpool(x)))
        return logits


@architecture(
    "mobilenet",
    summary="MobileNetV1: thirteen depthwise separable convolutions",
    source="Howard et al., arXiv:1704.04861, table 1",
)
def mobilenet(
    *, classes: int, channels: int, size: int, width: float = 1.0, stem: Scale | None = None
) -> nn.Module:
    """`stem`: its convolution has stride 1 (`small`, up to 64 pixels) or 2 (`imagenet`)."""
    return MobileNetV1(
        classes=classes, channels=channels, width=width, stem=scale_of("stem", stem, size)
    )
