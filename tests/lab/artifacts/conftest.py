"""A small network, and the same as an ONNX file: exporting takes seconds, so it is done once."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from fairweight.lab.artifacts import Card
from fairweight.lab.batches import Scaling
from fairweight.lab.onnx_models import to_onnx

CARD = Card(classes=("a", "b", "c", "d"), preprocessing=Scaling((0.5,), (0.25,)))


def network() -> nn.Sequential:
    """A convolution, its norm, and a linear layer, with weights of their own."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(128, 4),
        )
        nn.init.constant_(model[1].bias, 0.1)
        for _ in range(3):  # so that the norm's averages are not those of a new layer
            model(torch.randn(16, 1, 8, 8))
    return model.eval()


@pytest.fixture
def small() -> nn.Sequential:
    return network()


@pytest.fixture(scope="session")
def images() -> Tensor:
    return torch.randn(100, 1, 8, 8, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory, images: Tensor) -> Path:
    """The network as an ONNX file with a card."""
    return to_onnx(network(), images[:1], tmp_path_factory.mktemp("onnx") / "small.onnx", card=CARD)
