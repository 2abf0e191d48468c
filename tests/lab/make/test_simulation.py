"""int8 simulated while a network trains: rounding by hand, the file that follows, resumption."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fairweight.lab.artifacts import load
from fairweight.lab.batches import Scaling, model_input
from fairweight.lab.compression.calibration import calibration_rows
from fairweight.lab.compression.quantisation import quantize_static
from fairweight.lab.compression.registry import spec_of
from fairweight.lab.compression.simulation import RoundedValues, RoundedWeight, SimulatedInt8
from fairweight.lab.loaders import session_of
from fairweight.lab.loop import train
from fairweight.lab.masks import dense_values, load_dense_values, masks, set_masks
from fairweight.lab.onnx_models import to_onnx
from fairweight.lab.partition import Prepared, as_examples, prepare
from fairweight.lab.training import Made
from fairweight.specs.data import Data
from fairweight.specs.training import Training

SPEC = spec_of("int8-qat", calibration="random")
HOW = Training(epochs=3, batch_size=64, lr=0.01, seed=2)


@pytest.fixture(scope="module")
def digits() -> Prepared:
    return prepare(Data(name="digits", test=0.3))


def scaling_and_inputs(prepared: Prepared, dense: Made) -> tuple[Scaling, torch.Tensor]:
    scaling = dense.card.preprocessing
    assert scaling is not None
    rows = torch.from_numpy(calibration_rows(prepared.train, SPEC))
    return scaling, model_input(as_examples(prepared.train).images[rows], scaling)


def test_weights_are_rounded_by_channel_and_gradients_pass() -> None:
    weight = torch.tensor([[1.27, 0.014, -0.006], [0.0, 0.0, 0.0]], requires_grad=True)
    rounded = RoundedWeight(8)(weight)  # a scale of .01 in the first channel, and none in the other
    assert rounded.detach().flatten().tolist() == pytest.approx([1.27, 0.01, -0.01, 0, 0, 0])
    rounded.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[1.0] * 3] * 2
    seven = RoundedWeight(7)(torch.tensor([[0.64, 0.012]]))  # a scale of .64 / 64
    assert seven.flatten().tolist() == pytest.approx([0.64, 0.01])


def test_values_are_cut_to_their_range() -> None:
    part = RoundedValues()
    part.active = False
    part(torch.tensor([-1.0, 1.55]))
    assert (float(part.low), float(part.high)) == pytest.approx((-1.0, 1.55))
    part.active = True
    values = torch.tensor([-2.0, 0.004, 0.006, 9.0], requires_grad=True)
    rounded = part(values)  # steps of .01
    assert rounded.detach().tolist() == pytest.approx([-1.0, 0.0, 0.01, 1.55], abs=1e-6)
    rounded.sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [0.0, 1.0, 1.0, 0.0]


def finetuned(
    network: nn.Module, digits: Prepared, dense: Made, **more: Any
) -> tuple[nn.Module, list[float]]:
    scaling, inputs = scaling_and_inputs(digits, dense)
    losses: list[float] = []

    def told(numbers: dict[str, float], done: int, total: int) -> None:
        losses.append(numbers["loss"])
        more.get("progress", lambda *_: None)(numbers, done, total)

    given = {"checkpoint": more.get("checkpoint"), "save_every": 0.0, "progress": told}
    data = as_examples(digits.train)
    simulated = SimulatedInt8(SPEC, inputs)
    made = train(network, data, None, HOW, pruner=simulated, scaling=scaling, **given)
    return made.model, losses


def test_the_file_predicts_what_was_simulated(
    digits: Prepared, dense: Made, tmp_path: Path
) -> None:
    """The loss falls; of the test digits the int8 file gives nearly all the same class."""
    network, card = load(dense.path)
    floats = copy.deepcopy(network)
    rounded, losses = finetuned(network, digits, dense)
    steps = len(losses) // HOW.epochs
    assert np.mean(losses[-steps:]) < np.mean(losses[:steps])
    load_dense_values(floats, dense_values(rounded))
    assert not any("int8" in name for name in floats.state_dict())
    scaling, inputs = scaling_and_inputs(digits, dense)
    images = model_input(as_examples(digits.test).images, scaling)
    source = to_onnx(floats, images[:8], tmp_path / "float.onnx", card=card)
    quantize_static(source, tmp_path / "int8.onnx", [inputs.numpy()])
    session = session_of(tmp_path / "int8.onnx", threads=1)
    stored = session.run(None, {session.get_inputs()[0].name: images.numpy()})[0]
    with torch.no_grad():
        seen, exact = rounded.eval()(images).numpy(), floats.eval()(images).numpy()
    assert (stored.argmax(1) == seen.argmax(1)).mean() >= 0.995
    # What is simulated is the file's rounding, not only something near the float network.
    assert np.abs(stored - seen).mean() < 0.5 * np.abs(stored - exact).mean()


def test_masks_stay_below_the_rounding(digits: Prepared, dense: Made) -> None:
    network, _ = load(dense.path)
    half = torch.zeros_like(network.conv1.weight, dtype=torch.bool)
    half[::2] = True
    set_masks(network, {"conv1.weight": half})
    plain = copy.deepcopy(network)
    rounded, _ = finetuned(network, digits, dense)
    assert float(rounded.conv1.weight.detach()[1::2].abs().max()) == 0
    load_dense_values(plain, dense_values(rounded))
    assert torch.equal(masks(plain)["conv1.weight"], half)
    assert float(plain.conv1.weight.detach()[1::2].abs().max()) == 0


class StoppedError(Exception):
    pass


def test_an_interrupted_run_goes_on(digits: Prepared, dense: Made, tmp_path: Path) -> None:
    whole, losses = finetuned(load(dense.path)[0], digits, dense)

    def stop(numbers: dict[str, float], done: int, total: int) -> None:
        if done == len(losses) // 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        finetuned(load(dense.path)[0], digits, dense, checkpoint=tmp_path / "c", progress=stop)
    again, rest = finetuned(load(dense.path)[0], digits, dense, checkpoint=tmp_path / "c")
    assert len(rest) < len(losses)
    held = whole.state_dict()
    assert all(torch.equal(value, held[name]) for name, value in again.state_dict().items())
