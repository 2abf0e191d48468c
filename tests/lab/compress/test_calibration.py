"""Which examples calibrate, and biases that make up for rounded weights: by hand and in files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fairweight as fw
from fairweight.data.dataset import Images
from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.compression.calibration import calibration_rows
from fairweight.lab.compression.quantisation import round_weights
from fairweight.lab.compression.registry import method_of, spec_of
from fairweight.lab.onnx_models import card_of, read_onnx, to_onnx


@pytest.fixture(scope="module")
def images() -> Images:
    n = 120
    labels = np.where(np.arange(n) < 100, 0, 1)
    groups = {"site": np.where(np.arange(n) % 30 == 0, "few", "many")}
    pixels = np.zeros((n, 2, 2, 1), dtype=np.uint8)
    ids = np.array([f"e{i}" for i in range(n)])
    return Images("made", pixels, labels, ("a", "b"), groups, ids, np.full(n, "train"))


def rows_of(images: Images, **given: Any) -> np.ndarray:
    return calibration_rows(images, spec_of("int8-static", **given))


def test_rows_by_hand(images: Images) -> None:
    assert rows_of(images, examples=3).tolist() == [0, 1, 2]
    classes = Counter(images.labels[rows_of(images, examples=30, calibration="class-balanced")])
    assert classes == {0: 15, 1: 15}
    given = {"calibration": "group-balanced", "group": "site"}
    chosen = rows_of(images, examples=20, **given)
    # Only four examples are of the smaller group: the other one fills up.
    assert Counter(images.groups["site"][chosen].tolist()) == {"few": 4, "many": 16}
    assert len(set(chosen.tolist())) == 20
    drawn = [rows_of(images, examples=9, calibration="random", calibration_seed=s) for s in (0, 1)]
    assert drawn[0].tolist() != drawn[1].tolist()
    with pytest.raises(UnknownNameError, match="race"):
        rows_of(images, calibration="group-balanced", group="race")


@pytest.fixture(scope="module")
def network() -> nn.Module:
    torch.manual_seed(0)
    layers = (nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Conv2d(6, 6, 3), nn.ReLU(), nn.Flatten())
    return nn.Sequential(*layers, nn.Linear(6 * 16, 3)).eval()


@pytest.fixture(scope="module")
def inputs() -> torch.Tensor:
    return torch.rand(64, 1, 8, 8, generator=torch.Generator().manual_seed(3))


def test_corrected_biases_keep_the_mean_outputs(network: nn.Module, inputs: torch.Tensor) -> None:
    with torch.inference_mode():
        exact = network(inputs).numpy().mean(axis=0)
    plain, corrected = (
        fw.lab.compress(network, spec_of("weight-bits", bits=2, bias_correction=on), inputs)
        for on in (False, True)
    )
    off, near = (np.abs(one(inputs).mean(axis=0) - exact).max() for one in (plain, corrected))  # type: ignore[operator]
    assert near < 1e-4 < off


def test_layers_that_are_left_out_stay_in_float(
    network: nn.Module, inputs: torch.Tensor, tmp_path: Path
) -> None:
    source = to_onnx(network, inputs, tmp_path / "f.onnx")
    spec = spec_of("weight-bits", bits=2, layers=["*", "!0"])
    round_weights(source, tmp_path / "q.onnx", inputs.numpy(), spec)
    card = card_of(read_onnx(tmp_path / "q.onnx"), "it")
    assert card is not None
    assert card.compression["quantisation"]["float_layers"] == ["0"]


def test_ranges_of_other_kinds(network: nn.Module, inputs: torch.Tensor) -> None:
    """With its own numbers of bins, ONNX Runtime's entropy gives what min-max gives here."""
    seen = torch.cat([20 * inputs[:1], inputs])  # one example far out
    made = {
        ranges: fw.lab.compress(network, spec_of("int8-static", examples=30, ranges=ranges), seen)
        for ranges in ("min-max", "percentile", "entropy")
    }
    with torch.inference_mode():
        exact = network(inputs).numpy()
    answers = {ranges: one(inputs) for ranges, one in made.items()}  # type: ignore[operator]
    assert np.abs(answers["percentile"] - answers["min-max"]).max() > 0
    assert all(np.abs(one - exact).max() < 0.5 for one in answers.values())


def test_too_few_examples_for_a_mean(network: nn.Module, inputs: torch.Tensor) -> None:
    spec = spec_of("weight-bits", bits=2, bias_correction=True)
    assert method_of(spec).name == "weight-bits"
    with pytest.raises(InputError, match="needs at least 10 calibration examples"):
        fw.lab.compress(network, spec, inputs[:4])
