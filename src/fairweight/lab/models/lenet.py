"""LeNet as in the appendix of Paganini's "Prune Responsibly"."""

from __future__ import annotations

from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.models.registry import architecture, scaled


class LeNet(nn.Module):
    """Two 3 × 3 convolutions with pooling, and three linear layers."""

    def __init__(
        self, *, classes: int, channels: int, size: int, width: float, padding: int
    ) -> None:
        super().__init__()
        first, second, third, fourth = (scaled(count, width) for count in (6, 16, 120, 84))
        side = size
        for _ in range(2):
            side = (side + 2 * padding - 2) // 2
        if side < 1:
            raise InputError(
                f"size={size} is too small for LeNet with padding={padding}: nothing is left after"
                " its two poolings; use images of at least 10 pixels, or of 4 with padding=1."
            )
        self.conv1 = nn.Conv2d(channels, first, 3, padding=padding)
        self.relu1 = nn.ReLU()
        self.pool1 = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(first, second, 3, padding=padding)
        self.relu2 = nn.ReLU()
        self.pool2 = nn.MaxPool2d(2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Linear(second * side * side, third)
        self.relu3 = nn.ReLU()
        self.fc2 = nn.Linear(third, fourth)
        self.relu4 = nn.ReLU()
        self.fc3 = nn.Linear(fourth, classes)
        self.blocks = {
            "block1": "pool1",
            "block2": "pool2",
            "hidden1": "relu3",
            "hidden2": "relu4",
            "logits": "fc3",
        }

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool1(self.relu1(self.conv1(x)))  # 28 px: (N, 6, 13, 13)
        x = self.pool2(self.relu2(self.conv2(x)))  # (N, 16, 5, 5)
        x = self.relu3(self.fc1(self.flatten(x)))
        x = self.relu4(self.fc2(x))
        logits: Tensor = self.fc3(x)
        return logits


@architecture(
    "lenet",
    summary="two 3 × 3 convolutions (6, 16) and three linear layers (120, 84, classes)",
    source="Paganini, Prune Responsibly (2020), appendix C",
)
def lenet(
    *, classes: int, channels: int, size: int, width: float = 1.0, padding: int | None = None
) -> nn.Module:
    """59,838 weights (biases not counted) for ten classes of grey images of 28 pixels.

    `padding=1` keeps the size in convolutions: by default for images below 10 pixels, of which
    nothing would be left otherwise.
    """
    if padding is None:
        padding = 1 if size < 10 else 0
    if padding not in (0, 1):
        raise InputError(f"padding must be 0 or 1, not {padding!r}.")
    return LeNet(classes=classes, channels=channels, size=size, width=width, padding=padding)
