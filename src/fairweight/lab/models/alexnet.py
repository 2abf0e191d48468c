"""AlexNet for small images: the five convolutions, and one linear layer."""

from __future__ import annotations

from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.models.registry import architecture, scaled


class AlexNet(nn.Module):
    """Five convolutions with three max-poolings; the last pooling takes the whole map."""

    def __init__(self, *, classes: int, channels: int, size: int, width: float) -> None:
        super().__init__()
        one, two, three, four, five = (scaled(count, width) for count in (64, 192, 384, 256, 256))
        side = ((size - 1) // 4 + 1) // 2 // 2  # after the stem of stride 4 and two poolings
        if side < 1:
            raise InputError(
                f"size={size} is too small for AlexNet: nothing is left after its stem and two"
                " poolings; use images of at least 13 pixels, or another architecture."
            )
        self.features = nn.Sequential(
            nn.Conv2d(channels, one, 11, stride=4, padding=5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(one, two, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(two, three, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(three, four, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(four, five, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(side),
        )
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(five, classes)
        self.blocks = {
            "block1": "features.2",
            "block2": "features.5",
            "block3": "features.11",
            "pooled": "flatten",
            "logits": "classifier",
        }

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.flatten(self.features(x)))
        return logits


@architecture(
    "alexnet",
    summary="AlexNet for small images: five convolutions and one linear layer",
    source="Krizhevsky, One weird trick (2014), in the form for CIFAR of"
    " github.com/bearpaw/pytorch-classification",
)
def alexnet(*, classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """2.47 million parameters for ten classes; images of at least 13 pixels."""
    return AlexNet(classes=classes, channels=channels, size=size, width=width)
