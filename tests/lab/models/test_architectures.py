"""Properties that every architecture of the registry has, and numbers that were published."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest
import torch
from torch import nn

from fairweight.errors import InputError
from fairweight.lab.flops import count_parameters
from fairweight.lab.models import architectures, build
from fairweight.lab.models.features import features

NAMES = [entry.name for entry in architectures()]
# Just small enough to be quick.
WIDTH = {"vgg11": 0.125, "vgg16": 0.125, "resnet50": 0.125, "alexnet": 0.25}


def small(name: str, **given: object) -> nn.Module:
    options = {"classes": 7, "channels": 3, "size": 32, "width": WIDTH.get(name, 0.25), **given}
    return build(name, **options).eval()


def test_the_registry_has_the_architectures_of_the_papers_and_pretrained_ones() -> None:
    assert NAMES == [
        "lenet", "alexnet", "vgg11", "vgg16", "resnet18", "resnet34", "resnet50", "resnet8x4",
        "resnet32x4", "mobilenet", "efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2",
        "face-gender",
    ]  # fmt: skip


@pytest.mark.parametrize("entry", architectures(), ids=NAMES)
def test_every_architecture_says_what_it_is_and_where_it_comes_from(entry: object) -> None:
    for field in ("summary", "source"):
        text = getattr(entry, field)
        assert text
        assert "\n" not in text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("classes", "channels", "size", "width"),
    [(10, 1, 28, 0.25), (1, 3, 32, 0.1), (40, 3, 65, 0.125)],
)
def test_logits_have_one_column_per_class(
    name: str, classes: int, channels: int, size: int, width: float
) -> None:
    model = small(name, classes=classes, channels=channels, size=size, width=width)
    with torch.no_grad():
        logits = model(torch.rand(2, channels, size, size))
    assert logits.shape == (2, classes)
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"lenet", "alexnet"}])
def test_images_of_eight_pixels_fit(name: str) -> None:
    with torch.no_grad():
        assert small(name, channels=1, size=8)(torch.rand(2, 1, 8, 8)).shape == (2, 7)


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_decides_the_weights(name: str) -> None:
    states = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        states.append(small(name).state_dict())
    first, again, other = states
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_answers_alike_and_shares_nothing(name: str) -> None:
    model, x = small(name), torch.rand(2, 3, 32, 32)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        before = model(x)
        assert torch.equal(twin(x), before)
        for weight in twin.parameters():
            weight.zero_()
        assert torch.equal(model(x), before)
    assert twin.blocks == model.blocks
    assert twin.blocks is not model.blocks


@pytest.mark.parametrize("name", NAMES)
def test_the_state_can_be_loaded_into_another_network(name: str) -> None:
    torch.manual_seed(0)
    model, other, x = small(name), small(name), torch.rand(2, 3, 32, 32)
    other.load_state_dict(model.state_dict())
    with torch.no_grad():
        assert torch.equal(other(x), model(x))


@pytest.mark.parametrize(
    "name",
    [
        "lenet",
        "resnet18",
        "mobilenet",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("alexnet", "vgg11", "resnet50", "resnet8x4")
        ),
    ],
)
def test_torch_export_keeps_the_answers_for_any_batch(name: str) -> None:
    model = small(name)
    batch = torch.export.Dim("batch")
    program = torch.export.export(model, (torch.rand(2, 3, 32, 32),), dynamic_shapes=({0: batch},))
    x = torch.rand(5, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(program.module()(x), model(x))


@pytest.mark.parametrize("name", NAMES)
def test_a_training_step_reaches_every_parameter(name: str) -> None:
    torch.manual_seed(0)
    model = small(name).train()
    logits = model(torch.rand(4, 3, 32, 32))
    nn.functional.cross_entropy(logits, torch.tensor([0, 1, 2, 3])).backward()
    assert [key for key, weight in model.named_parameters() if weight.grad is None] == []


@pytest.mark.parametrize("name", NAMES)
def test_features_end_in_the_logits(name: str) -> None:
    model, x = small(name), torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        found = features(model, x)
        assert torch.equal(found["logits"], model(x))
    assert {"block1", "block2", "logits"} <= set(found)
    assert all(len(value) == 2 for value in found.values())


# -- published numbers of parameters -----------------------------------------------------------

TORCHVISION = "torchvision's documentation of the pretrained weights, num_params"
DA2LITE = "github.com/da2so/DA2Lite, model_zoo/README.md, CIFAR-10"
IMGCLSMOB = "github.com/osmr/imgclsmob, assertions on the number of trainable weights"


@pytest.mark.parametrize(
    ("name", "options", "published", "source"),
    [
        ("resnet18", {"size": 224}, 11_689_512, TORCHVISION),
        ("resnet34", {"size": 224}, 21_797_672, TORCHVISION),
        ("resnet50", {"size": 224}, 25_557_032, TORCHVISION),
        ("vgg11", {"size": 224}, 132_868_840, TORCHVISION),
        ("vgg16", {"size": 224}, 138_365_992, TORCHVISION),
        ("vgg16", {"size": 224, "batch_norm": False}, 138_357_544, TORCHVISION),
        ("mobilenet", {"size": 224}, 4_231_976, IMGCLSMOB),
        ("mobilenet", {"size": 224, "width": 0.75}, 2_585_560, IMGCLSMOB),
        ("mobilenet", {"size": 224, "width": 0.5}, 1_331_592, IMGCLSMOB),
        ("mobilenet", {"size": 224, "width": 0.25}, 470_072, IMGCLSMOB),
    ],
)
def test_parameters_for_imagenet_are_those_published(
    name: str, options: dict[str, object], published: int, source: str
) -> None:
    with torch.device("meta"):  # shapes without memory
        model = build(name, classes=1000, **options)
    assert sum(weight.numel() for weight in model.parameters()) == published, source


def test_vgg16_with_a_flat_head_is_that_of_keras_without_its_top() -> None:
    # keras.applications: 14,714,688 without the top; 7 · 7 · 512 weights and a bias for one output.
    with torch.device("meta"):
        model = build("vgg16", classes=1, size=224, head="flat", batch_norm=False)
    assert sum(weight.numel() for weight in model.parameters()) == 14_714_688 + 25_088 + 1
    assert model.blocks["logits"] == "classifier"


@pytest.mark.parametrize(
    ("name", "options", "millions", "source"),
    [
        ("alexnet", {}, "2.47", "github.com/bearpaw/pytorch-classification, README.md, CIFAR-10"),
        ("vgg16", {}, "14.73", DA2LITE),
        ("vgg16", {"batch_norm": False}, "14.72", DA2LITE),
        ("resnet18", {}, "11.17", DA2LITE),
        ("resnet34", {}, "21.28", DA2LITE),
        ("resnet50", {}, "23.52", DA2LITE),
    ],
)
def test_parameters_for_cifar_10_are_those_published(
    name: str, options: dict[str, object], millions: str, source: str
) -> None:
    with torch.device("meta"):
        model = build(name, classes=10, **options)
    found = sum(weight.numel() for weight in model.parameters())
    assert f"{found / 1e6:.2f}" == millions, source


def test_parameters_of_repdistillers_networks() -> None:
    # The layers of github.com/HobbitLong/RepDistiller, models/resnet.py, for CIFAR-100:
    # 3 × 3 convolutions of i to o channels have 9io weights, 1 × 1 shortcuts io, each output
    # channel two numbers of batch normalisation, the classifier 256 · 100 + 100.
    channels = (32, 64, 128, 256)
    stem = 9 * 3 * 32 + 2 * 32
    first = sum(
        (9 * i * o + 2 * o) + (9 * o * o + 2 * o) + (i * o + 2 * o) for i, o in pairwise(channels)
    )
    further = sum(2 * (9 * o * o + 2 * o) for o in channels[1:])
    classifier = 256 * 100 + 100
    for name, blocks, total in (("resnet8x4", 1, 1_233_540), ("resnet32x4", 5, 7_433_860)):
        assert stem + first + (blocks - 1) * further + classifier == total
        assert count_parameters(build(name, classes=100)).total == total


def test_lenet_has_the_weights_of_golden_g16() -> None:
    # 9·1·6 + 9·6·16 + (16·5·5)·120 + 120·84 + 84·10 = 54 + 864 + 48,000 + 10,080 + 840
    counted = count_parameters(build("lenet", classes=10, channels=1, size=28))
    assert counted.weights == 54 + 864 + 48_000 + 10_080 + 840 == 59_838
    assert counted.total - counted.weights == 6 + 16 + 120 + 84 + 10  # biases
    # Nineteen prunings of 20 % of what remains leave Paganini's "approximately 800 parameters".
    assert round(counted.weights * 0.8**19) == 862


# -- forms of one architecture -----------------------------------------------------------------


def test_the_stem_follows_the_image_size_unless_it_is_given() -> None:
    def first(**given: object) -> tuple[int, ...]:
        model = small("resnet18", **given)
        return tuple(model.get_parameter("conv1.weight").shape[2:])

    assert first(size=64) == (3, 3)
    assert first(size=65) == (7, 7)
    assert first(size=32, stem="imagenet") == (7, 7)
    assert first(size=224, stem="small") == (3, 3)


def test_widths_multiply_channels_and_leave_at_least_one() -> None:
    wide = small("resnet18", width=1.5).get_parameter("layer4.1.conv2.weight")
    assert wide.shape == (768, 768, 3, 3)
    thin = small("lenet", width=0.01).get_parameter("conv2.weight")
    assert thin.shape == (1, 1, 3, 3)


def test_bad_options_get_a_sentence() -> None:
    with pytest.raises(InputError, match="stem must be 'small' or 'imagenet', not 'tiny'"):
        small("resnet18", stem="tiny")
    with pytest.raises(InputError, match="head must be 'small' or 'imagenet'"):
        small("vgg11", head="big")
    with pytest.raises(InputError, match=r"dropout must be a probability below 1, not 1\.5"):
        small("vgg16", dropout=1.5)
    with pytest.raises(InputError, match="padding must be 0 or 1, not 3"):
        small("lenet", padding=3)


@pytest.mark.parametrize(
    ("name", "options", "least"),
    [("lenet", {"padding": 0}, 10), ("lenet", {}, 4), ("alexnet", {}, 13)],
)
def test_images_that_are_too_small_get_a_sentence(
    name: str, options: dict[str, object], least: int
) -> None:
    with torch.no_grad():
        assert small(name, size=least, **options)(torch.rand(1, 3, least, least)).shape == (1, 7)
    with pytest.raises(InputError, match=rf"size={least - 1} is too small .* at least"):
        small(name, size=least - 1, **options)
