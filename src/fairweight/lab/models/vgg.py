"""VGG-11 and VGG-16, by default with batch normalisation; names of weights are torchvision's."""

from __future__ import annotations

from typing import Literal, TypeAlias

from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.models.registry import (
    Scale,
    architecture,
    initialise_convolutions,
    scale_of,
    scaled,
)

# Channels of the convolutions of each of the five blocks.
VGG11 = ((64,), (128,), (256, 256), (512, 512), (512, 512))
VGG16 = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
Head: TypeAlias = Scale | Literal["flat"]
HIDDEN = 4096
HEAD_SIDE = 7  # the map that the head for ImageNet takes


class VGG(nn.Module):
    """Five blocks of 3 × 3 convolutions that end in a pooling."""

    def __init__(
        self,
        plan: tuple[tuple[int, ...], ...],
        *,
        classes: int,
        channels: int,
        size: int,
        width: float,
        head: Head,
        batch_norm: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.features = nn.Sequential()
        self.blocks: dict[str, str] = {}
        side = size
        for number, block in enumerate(plan, start=1):
            for count in block:
                outputs = scaled(count, width)
                self.features.append(nn.Conv2d(channels, outputs, 3, padding=1))
                if batch_norm:
                    self.features.append(nn.BatchNorm2d(outputs))
                self.features.append(nn.ReLU())
                channels = outputs
            if side > 1:  # images below 32 pixels are one pixel before the last block
                self.features.append(nn.MaxPool2d(2))
                side //= 2
            self.blocks[f"block{number}"] = f"features.{len(self.features) - 1}"
        self.avgpool = nn.AdaptiveAvgPool2d(1 if head == "small" else HEAD_SIDE)
        self.flatten = nn.Flatten()
        self.blocks["pooled"] = "flatten"
        if head != "imagenet":
            pixels = 1 if head == "small" else HEAD_SIDE**2
            self.classifier: nn.Module = nn.Linear(channels * pixels, classes)
            self.blocks["logits"] = "classifier"
        else:
            hidden = scaled(HIDDEN, width)
            self.classifier = nn.Sequential(
                nn.Linear(channels * HEAD_SIDE**2, hidden),
                nn.ReLU(),
                nn.Dropout(dropout),
                nn.Linear(hidden, hidden),
                nn.ReLU(),
                nn.Dropout(dropout),
                nn.Linear(hidden, classes),
            )
            self.blocks["logits"] = "classifier.6"
        initialise_convolutions(self)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, 0, 0.01)
                nn.init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        logits: Tensor = self.classifier(self.flatten(self.avgpool(x)))
        return logits


def _vgg(
    plan: tuple[tuple[int, ...], ...],
    *,
    classes: int,
    channels: int,
    size: int,
    width: float,
    head: Head | None,
    batch_norm: bool,
    dropout: float,
) -> nn.Module:
    if not 0 <= dropout < 1:
        raise InputError(f"dropout must be a probability below 1, not {dropout!r}.")
    return VGG(
        plan,
        classes=classes,
        channels=channels,
        size=size,
        width=width,
        head="flat" if head == "flat" else scale_of("head", head, size),
        batch_norm=batch_norm,
        dropout=dropout,
    )


@architecture(
    "vgg11",
    summary="VGG-11 with batch normalisation",
    source="Simonyan and Zisserman, arXiv:1409.1556, configuration A",
)
def vgg11(
    *,
    classes: int,
    channels: int,
    size: int,
    width: float = 1.0,
    head: Head | None = None,
    batch_norm: bool = True,
    dropout: float = 0.5,
) -> nn.Module:
    """Eight convolutions; `head`: one layer (`small`, `flat` of 7 × 7) or three (`imagenet`)."""
    return _vgg(
        VGG11,
        classes=classes,
        channels=channels,
        size=size,
        width=width,
        head=head,
        batch_norm=batch_norm,
        dropout=dropout,
    )


@architecture(
    "vgg16",
    summary="VGG-16 with batch normalisation",
    source="Simonyan and Zisserman, arXiv:1409.1556, configuration D",
)
def vgg16(
    *,
    classes: int,
    channels: int,
    size: int,
    width: float = 1.0,
    head: Head | None = None,
    batch_norm: bool = True,
    dropout: float = 0.5,
) -> nn.Module:
    """Thirteen convolutions; `head`: one layer (`small`, `flat` of 7 × 7) or three (`imagenet`)."""
    return _vgg(
        VGG16,
        classes=classes,
        channels=channels,
        size=size,
        width=width,
        head=head,
        batch_norm=batch_norm,
        dropout=dropout,
    )
