"""Features by name: which there are, their shapes, and what is refused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.models import build
from fairweight.lab.models.features import feature_paths, features


def shapes(name: str, size: int, **options: object) -> dict[str, tuple[int, ...]]:
    model = build(name, classes=10, channels=3, size=size, **options).eval()
    with torch.no_grad():
        found = features(model, torch.rand(2, 3, size, size))
    return {key: tuple(value.shape[1:]) for key, value in found.items()}


def test_lenet() -> None:
    assert shapes("lenet", 28) == {
        "block1": (6, 13, 13),
        "block2": (16, 5, 5),
        "hidden1": (120,),
        "hidden2": (84,),
        "logits": (10,),
    }


def test_alexnet() -> None:
    assert shapes("alexnet", 32, width=0.25) == {
        "block1": (16, 4, 4),
        "block2": (48, 2, 2),
        "block3": (64, 2, 2),
        "pooled": (64,),
        "logits": (10,),
    }


@pytest.mark.parametrize("name", ["vgg11", "vgg16"])
def test_vgg_ends_its_blocks_after_pooling(name: str) -> None:
    assert shapes(name, 32, width=0.125) == {
        "block1": (8, 16, 16),
        "block2": (16, 8, 8),
        "block3": (32, 4, 4),
        "block4": (64, 2, 2),
        "block5": (64, 1, 1),
        "pooled": (64,),
        "logits": (10,),
    }


def test_vgg_for_imagenet_pools_to_seven_by_seven() -> None:
    found = shapes("vgg11", 64, width=0.125, head="imagenet")
    assert found["block5"] == (64, 2, 2)
    assert found["pooled"] == (64 * 7 * 7,)


def test_resnet_for_small_images_and_for_imagenet() -> None:
    small = shapes("resnet18", 32, width=0.125)
    assert small == {
        "stem": (8, 32, 32),
        "block1": (8, 32, 32),
        "block2": (16, 16, 16),
        "block3": (32, 8, 8),
        "block4": (64, 4, 4),
        "pooled": (64,),
        "logits": (10,),
    }
    large = shapes("resnet18", 64, width=0.125, stem="imagenet")
    assert (large["stem"], large["block4"]) == ((8, 16, 16), (64, 2, 2))
    assert shapes("resnet50", 32, width=0.125)["block1"] == (32, 32, 32)  # four times 8


def test_resnet_x4_has_the_features_of_repdistiller() -> None:
    # f0 … f4 of models/resnet.py for 32 pixels
    assert list(shapes("resnet8x4", 32).items()) == [
        ("stem", (32, 32, 32)),
        ("block1", (64, 32, 32)),
        ("block2", (128, 16, 16)),
        ("block3", (256, 8, 8)),
        ("pooled", (256,)),
        ("logits", (10,)),
    ]


def test_mobilenet() -> None:
    found = shapes("mobilenet", 32, width=0.125)
    assert found == {
        "stem": (4, 32, 32),
        "block1": (8, 32, 32),
        "block2": (16, 16, 16),
        "block3": (32, 8, 8),
        "block4": (64, 4, 4),
        "block5": (128, 2, 2),
        "pooled": (128,),
        "logits": (10,),
    }
    assert shapes("mobilenet", 32, width=0.125, stem="imagenet")["block5"] == (128, 1, 1)


def test_features_are_what_the_layers_compute() -> None:
    torch.manual_seed(0)
    model = build("resnet8x4", classes=3, width=0.125).eval()
    x = torch.rand(2, 3, 16, 16)
    with torch.no_grad():
        found = features(model, x)
        stem = torch.relu(model.bn1(model.conv1(x)))
        assert torch.equal(found["stem"], stem)
        assert torch.equal(found["block1"], model.layer1(stem))
        assert torch.equal(found["pooled"], found["block3"].mean((2, 3)))


def test_names_are_returned_in_the_order_asked_for_and_paths_work_too() -> None:
    model = build("resnet8x4", classes=3, width=0.125)
    found = features(model, torch.rand(2, 3, 8, 8), ["logits", "layer1.0.conv1", "block1"])
    assert list(found) == ["logits", "layer1.0.conv1", "block1"]
    assert found["layer1.0.conv1"].shape == (2, 8, 8, 8)
    assert feature_paths(model, ["block1"]) == {"block1": "layer1"}


def test_values_before_a_rectifier_are_not_overwritten_by_it() -> None:
    torch.manual_seed(0)
    model = build("resnet8x4", classes=3, width=0.125).eval()
    before = features(model, torch.rand(2, 3, 8, 8), ["layer1.0.bn1"])["layer1.0.bn1"]
    assert (before < 0).any()


def test_gradients_flow_and_no_hook_stays() -> None:
    model = build("lenet", classes=3, channels=1, size=12)
    found = features(model, torch.rand(2, 1, 12, 12))
    found["block1"].sum().backward()
    assert model.conv1.weight.grad is not None
    assert all(not module._forward_hooks for module in model.modules())
    with pytest.raises(RuntimeError):
        features(model, torch.rand(2, 5, 12, 12))
    assert all(not module._forward_hooks for module in model.modules())


class Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(4, 4)
        self.unused = nn.Linear(4, 4)
        self.memory = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.memory(self.used(self.used(x)))[0]
        return out


def test_networks_without_blocks_are_asked_by_path() -> None:
    model, x = Odd(), torch.rand(2, 1, 4)
    last = features(model, x, ["used"])["used"]
    assert torch.equal(last, model.used(model.used(x)))  # of two runs the last
    with pytest.raises(InputError, match=r"\(Odd\) does not say where its blocks end.*names="):
        features(model, x)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["unused"], r"module 'unused' does not run"),
        (["memory"], r"Feature 'memory' is not a tensor: module 'memory' returns tuple"),
        (["usde"], r"Feature 'usde' does not exist; there are: 'used'.*Did you mean 'used'"),
        ([""], r"Feature '' does not exist"),
        ("used", r"names must be a list of names, such as \['used'\]"),
    ],
)
def test_features_that_cannot_be_had_get_a_sentence(names: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        features(Odd(), torch.rand(2, 1, 4), names)
