"""Operations and parameters by hand, by golden number, masked, exported and removed."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrize, prune

from fairweight.errors import InputError
from fairweight.lab.flops import Flops, Parameters, count_flops, count_parameters
from fairweight.lab.models import build


def operations(model: nn.Module, *shape: int) -> int:
    counted = count_flops(model, torch.rand(1, *shape))
    assert counted.sparse <= counted.dense
    return counted.dense


# -- by hand -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "shape", "by_hand"),
    [
        # 2 per weight and output position: 4·3·3·3 weights, 6 × 6 positions; biases 4·6·6
        (nn.Conv2d(3, 4, 3, bias=False), (3, 8, 8), 2 * 108 * 36),
        (nn.Conv2d(3, 4, 3), (3, 8, 8), 2 * 108 * 36 + 4 * 36),
        # stride 2 and padding 1 leave 4 × 4 positions
        (nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False), (3, 8, 8), 2 * 108 * 16),
        # one filter of 3 × 3 per channel
        (nn.Conv2d(6, 6, 3, padding=1, groups=6, bias=False), (6, 5, 5), 2 * 54 * 25),
        # transposed: each weight meets each of the 3 × 3 input positions
        (nn.ConvTranspose2d(2, 5, 2, stride=2, bias=False), (2, 3, 3), 2 * 40 * 9),
        (nn.Linear(10, 7), (10,), 2 * 70 + 7),
        (nn.Linear(10, 7, bias=False), (10,), 2 * 70),
        (nn.Linear(10, 7), (5, 10), 5 * (2 * 70 + 7)),  # five positions of a sequence
        (nn.BatchNorm2d(3), (3, 4, 4), 2 * 48),
        (nn.ReLU(), (3, 4, 4), 48),
        (nn.ReLU(inplace=True), (3, 4, 4), 48),
        (nn.ReLU6(), (3, 4, 4), 48),
        (nn.GELU(), (3, 4, 4), 48),
        (nn.LayerNorm(4), (3, 4), 2 * 12),
        (nn.MaxPool2d(2), (3, 8, 8), 4 * 3 * 16),
        (nn.MaxPool2d(3, stride=2, padding=1), (3, 8, 8), 9 * 3 * 16),
        (nn.AvgPool2d(4), (3, 8, 8), 16 * 3 * 4),
        (nn.AdaptiveAvgPool2d(1), (3, 8, 8), 3 * 64),
        (nn.AdaptiveAvgPool2d(4), (3, 8, 8), 3 * 64),
        # five rows in two windows overlap in one: rows 0-2 and 2-4, so 6 · 6 per channel
        (nn.AdaptiveAvgPool2d(2), (3, 5, 5), 3 * 36),
        (nn.AdaptiveMaxPool2d(1), (3, 8, 8), 3 * 64),
        (nn.Flatten(), (3, 8, 8), 0),
        (nn.Dropout(), (3, 8, 8), 0),
    ],
    ids=str,
)
def test_one_layer_by_hand(layer: nn.Module, shape: tuple[int, ...], by_hand: int) -> None:
    assert operations(layer, *shape) == by_hand


class Functional(nn.Module):
    """Calls functions instead of modules."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.rand(4, 3, 3, 3))

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(functional.conv2d(x, self.kernel))  # 4 × 6 × 6
        return functional.max_pool2d(x, 2).mean((2, 3)) + x.mean()


def test_functions_are_counted_as_modules_are() -> None:
    # convolution, rectifier, four per pooled pixel, mean over 3 × 3; the mean of all is not pooling
    assert operations(Functional(), 3, 8, 8) == 2 * 108 * 36 + 144 + 4 * 36 + 36


class Attention(nn.Module):
    def __init__(self, need_weights: bool, masked: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.need_weights = need_weights
        self.mask = torch.zeros(5, 5) if masked else None

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.attention(x, x, x, need_weights=self.need_weights, attn_mask=self.mask)[
            0
        ]
        return out


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_attention_counts_its_products(need_weights: bool, masked: bool) -> None:
    # Four projections of 5 positions with biases; scores 5 × 5 of 4 numbers in 2 heads, and back.
    projections = 4 * 5 * (2 * 64 + 8)
    products = 2 * 2 * (2 * 25 * 4)
    fast = torch.backends.mha.get_fastpath_enabled()
    assert operations(Attention(need_weights, masked), 5, 8) == projections + products
    assert torch.backends.mha.get_fastpath_enabled() == fast


def test_lenet_by_hand() -> None:
    first = 2 * 54 * 26**2 + 6 * 26**2 + 6 * 26**2 + 4 * 6 * 13**2  # weights, bias, relu, pooling
    second = 2 * 864 * 11**2 + 16 * 11**2 + 16 * 11**2 + 4 * 16 * 5**2
    linear = 2 * (48_000 + 10_080 + 840) + (120 + 84 + 10) + (120 + 84)
    model = build("lenet", classes=10, channels=1, size=28)
    assert operations(model, 1, 28, 28) == first + second + linear


def test_dense_resnet18_at_224_pixels_is_golden_g22() -> None:
    # Iofinova et al., table 1: 3.64 billion, for the 40 attributes of CelebA. By hand:
    convolutions = 2 * (
        9_408 * 112**2  # 7 · 7 · 3 · 64
        + 4 * 36_864 * 56**2
        + (73_728 + 3 * 147_456 + 8_192) * 28**2
        + (294_912 + 3 * 589_824 + 32_768) * 14**2
        + (1_179_648 + 3 * 2_359_296 + 131_072) * 7**2
    )
    outputs = 64 * 112**2 + 4 * 64 * 56**2 + 5 * 128 * 28**2 + 5 * 256 * 14**2 + 5 * 512 * 7**2
    shortcuts = 128 * 28**2 + 256 * 14**2 + 512 * 7**2  # which have no rectifier
    pooling = 9 * 64 * 56**2 + 512 * 7**2
    linear = 2 * 512 * 40 + 40
    model = build("resnet18", classes=40, size=224)
    counted = operations(model, 3, 224, 224)
    assert counted == convolutions + 2 * outputs + (outputs - shortcuts) + pooling + linear
    assert f"{counted / 1e9:.2f}" == "3.64"
    assert f"{convolutions / 1e9:.3f}" == "3.627"


def test_mobilenet_has_the_multiplications_of_its_paper() -> None:
    # Howard et al., table 4: 569 million multiply-adds at 224 pixels, without anything else.
    model = build("mobilenet", classes=1000, size=224)
    counted = operations(model, 3, 224, 224)
    elements = 0

    def add(module: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
        nonlocal elements
        elements += output.numel()

    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.register_forward_hook(add)
    model.eval()(torch.rand(1, 3, 224, 224))
    others = 3 * elements + 1024 * 49 + 1000  # normalisation, rectifiers, pooling, bias
    assert f"{(counted - others) / 2e6:.0f}" == "569"


# -- zeros -------------------------------------------------------------------------------------


class Masked(nn.Module):
    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, weight: Tensor) -> Tensor:
        return weight * self.get_buffer("mask")


def test_zeros_are_left_out_of_the_sparse_count_only() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    with torch.no_grad():
        model[0].weight.fill_(1)[0] = 0  # 27 of 108 weights
        model[3].weight.fill_(1)[:, ::2] = 0  # 144 of 288
    dense = (2 * 108 * 36 + 144) + 144 + (2 * 288 + 2)
    sparse = (2 * 81 * 36 + 144) + 144 + (2 * 144 + 2)
    assert count_flops(model, torch.rand(1, 3, 8, 8)) == Flops(dense, sparse)
    with torch.no_grad():
        model[0].bias.fill_(1)
        model[3].bias.fill_(0)
    assert count_parameters(model) == Parameters(
        total=108 + 4 + 288 + 2, nonzero=81 + 4 + 144, weights=396, nonzero_weights=225
    )
    assert count_parameters(model).sparsity == pytest.approx(171 / 396)


def lenet_of_ones() -> nn.Module:
    model = build("lenet", classes=10, channels=1, size=28)
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(1)
    return model


def halved(model: nn.Module) -> Tensor:
    mask = torch.ones_like(model.get_parameter("fc1.weight"))
    mask[:60] = 0  # 24,000 of 48,000 weights
    return mask


def test_masks_count_as_the_zeros_that_they_act_as() -> None:
    model, x = lenet_of_ones(), torch.rand(1, 1, 28, 28)
    whole = count_flops(model, x)
    parametrize.register_parametrization(model.fc1, "weight", Masked(halved(model)))
    counted = count_flops(model, x)
    assert counted == Flops(whole.dense, whole.dense - 2 * 24_000)
    parameters = count_parameters(model)
    assert parameters.total == 59_838 + 236
    assert parameters.nonzero == parameters.total - 24_000
    assert parameters.nonzero_weights == 59_838 - 24_000
    parametrize.remove_parametrizations(model.fc1, "weight")
    assert count_parameters(model) == parameters
    assert count_flops(model, x) == counted


def test_a_network_pruned_by_torch_is_counted_the_same() -> None:
    model, x = lenet_of_ones(), torch.rand(1, 1, 28, 28)
    whole = count_flops(model, x)
    prune.custom_from_mask(model.fc1, "weight", halved(model))
    assert count_flops(model, x).sparse == whole.dense - 2 * 24_000
    prune.remove(model.fc1, "weight")
    assert count_parameters(model).nonzero_weights == 59_838 - 24_000


def test_exported_programs_are_counted_too() -> None:
    model, x = build("resnet8x4", classes=5, width=0.125), torch.rand(1, 3, 16, 16)
    with torch.no_grad():
        model.get_parameter("layer2.0.conv2.weight")[:4] = 0
    program = torch.export.export(copy.deepcopy(model).eval(), (x,))
    assert count_flops(program.module(), x) == count_flops(model, x)
    assert count_flops(model, x).sparse < count_flops(model, x).dense


def test_tied_weights_count_once() -> None:
    first, second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
    second.weight = first.weight
    assert count_parameters(nn.Sequential(first, second)).total == 9
    assert operations(nn.Sequential(first, second), 3) == 2 * 2 * 9  # but both are computed


def test_without_weights_sparsity_is_undefined() -> None:
    counted = count_parameters(nn.BatchNorm2d(3))
    assert (counted.total, counted.weights) == (6, 0)
    assert math.isnan(counted.sparsity)


# -- the count leaves no trace -----------------------------------------------------------------


def test_counting_changes_nothing_in_the_network() -> None:
    model = build("resnet8x4", classes=5, width=0.125).train()
    model.layer2.eval()
    before = copy.deepcopy(model.state_dict())
    counted = count_flops(model, torch.rand(3, 3, 16, 16))
    assert counted == count_flops(model, torch.rand(1, 3, 16, 16))  # whatever the batch
    assert model.training
    assert model.layer1[0].training
    assert not model.layer2[0].training
    after = model.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)


def test_modes_come_back_after_a_failure() -> None:
    model = build("resnet8x4", classes=5, width=0.125).train()
    with pytest.raises(RuntimeError):
        count_flops(model, torch.rand(1, 1, 16, 16))
    assert all(module.training for module in model.modules())


@pytest.mark.parametrize("shape", [(), (3,), (0, 3, 8, 8)])
def test_an_example_that_is_no_batch_gets_a_sentence(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"example must be a batch.*not of shape \("):
        count_flops(nn.Linear(3, 3), torch.zeros(shape))
