"""Weights at a few bits: by hand, in a file that runs, and what is said of its size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import fairweight as fw
from fairweight.errors import InputError
from fairweight.lab.compression.quantisation import round_weights, rounded
from fairweight.lab.compression.registry import spec_of
from fairweight.lab.prediction import data_of, model_files, variants_table


def test_rounded_by_hand() -> None:
    """Three bits are -3 … 3: the scale of a row is its largest weight / 3."""
    weights = np.array([[0.5, -1.0, 0.26], [0.0, 0.0, 0.0], [6.0, 2.9, -1.0]])
    # 0.5 · 3 = 1.5 → 2, 0.26 · 3 = 0.78 → 1; of the last row, whose scale is 2: 1.45 → 1, -0.5 → 0.
    expected = [[2 / 3, -1, 1 / 3], [0, 0, 0], [6, 2, 0]]
    np.testing.assert_allclose(rounded(weights, 0, 3), expected)
    np.testing.assert_allclose(rounded(weights.T, 1, 3), np.transpose(expected))


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_a_channel_has_no_more_values_than_its_bits(bits: int) -> None:
    weights = np.random.default_rng(0).normal(size=(5, 3, 3, 3)).astype(np.float32)
    made = rounded(weights, 0, bits)
    assert made.dtype == np.float32
    assert all(len(np.unique(channel)) <= 2**bits - 1 for channel in made)
    scale = np.abs(weights).max(axis=(1, 2, 3), keepdims=True) / (2 ** (bits - 1) - 1)
    assert (np.abs(made - weights) <= scale / 2 + 1e-6).all()


def test_a_module_in_memory_answers_with_rounded_weights() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
    images = torch.rand(20, 1, 8, 8)
    small: Any = fw.lab.compress(network, {"method": "weight-bits", "bits": 3}, images)
    for layer in (network[0], network[3]):
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(rounded(layer.weight.numpy(), 0, 3)))
    with torch.inference_mode():
        np.testing.assert_allclose(small(images), network(images).numpy(), atol=1e-5)


def test_a_folder_becomes_a_file_whose_size_is_counted_as_packed(tmp_path: Path) -> None:
    dense = fw.lab.train("digits", "lenet", {"epochs": 1, "lr": 0.05}, tmp_path / "dense")
    made = fw.lab.compress(
        dense.path, {"method": "weight-bits", "bits": 4}, out=tmp_path / "four.onnx"
    )
    assert (made.card.variant, made.card.parent) == ("weight-bits-4", "dense:0")
    row = made.card.measured
    held = onnx.load(str(made.path))
    weights = [t for t in held.graph.initializer if len(t.dims) > 1]
    packed = sum(-(-int(np.prod(t.dims)) * 4 // 8) + 4 * t.dims[0] for t in weights)
    floats = sum(4 * int(np.prod(t.dims)) for t in weights)
    # What is written has the measured row in its card, so the file has grown since it was measured.
    assert row["size_bytes"] < made.path.stat().st_size - floats + packed
    assert row["size_bytes"] > packed
    assert (row["weight_bits"], row["latency_ms"], row["compressed_bytes"]) == (4, None, None)
    assert "no speed is claimed" in row["note"]
    members = model_files([made.path])
    from fairweight.lab.partition import prepare

    (again,) = variants_table(members, prepare(data_of(members)), again=True).to_pylist()
    assert again["latency_ms"] is None
    assert abs(again["size_bytes"] - row["size_bytes"]) < 5000  # the card in the file


@pytest.mark.parametrize("bits", [1, 9, 2.5])
def test_bits_that_cannot_be(bits: float) -> None:
    with pytest.raises(InputError, match=r"bits = .* cannot be used; give the bits of a weight"):
        spec_of("weight-bits", bits=bits)


def graph(*nodes: Any, **stored: Any) -> onnx.ModelProto:
    held = [numpy_helper.from_array(value, name) for name, value in stored.items()]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3])
        for name in ("image", "logits")
    ]
    made = helper.make_graph(list(nodes), "g", ends[:1], ends[1:], held)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_weights_that_cannot_be_rounded_by_output(tmp_path: Path) -> None:
    square, four = np.eye(3, dtype=np.float32), spec_of("weight-bits", bits=4)
    turned = graph(
        helper.make_node("Transpose", ["w"], ["t"]),
        helper.make_node("MatMul", ["image", "t"], ["logits"]),
        w=square,
    )
    nothing = graph(helper.make_node("Relu", ["image"], ["logits"]))
    for model, reason in ((turned, "cannot be rounded by output"), (nothing, "has no convolution")):
        onnx.save(model, str(tmp_path / "m.onnx"))
        with pytest.raises(InputError, match=reason):
            round_weights(tmp_path / "m.onnx", tmp_path / "o.onnx", np.zeros(1), four)
        assert not (tmp_path / "o.onnx").exists()
