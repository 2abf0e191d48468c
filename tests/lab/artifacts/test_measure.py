"""The measured row of the variants table: numbers that can be checked by hand."""

from __future__ import annotations

import math
import zlib
from pathlib import Path

import numpy as np
import onnx
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.artifacts import ZEROS_NOTE, Card, save
from fairweight.lab.compression.quantisation import quantize_dynamic, quantize_static
from fairweight.lab.masks import set_masks
from fairweight.lab.measurement import measure, timed, torch_threads
from fairweight.lab.onnx_models import n_parameters, onnx_weights
from fairweight.tables.companions import parents

# Convolution 8*9 + 8, norm 8 + 8, linear 4*128 + 4.
N_PARAMS = 80 + 16 + 516
# Per example, 8 px: convolution 2*72*64 + 8*64, norm 2*512, rectifier 512, pooling 4*128 and
# linear 2*512 + 4.
FLOPS = (2 * 72 * 64 + 512) + 1024 + 512 + 512 + 1028


def test_a_dense_module(small: nn.Sequential, images: Tensor) -> None:
    row = measure(small, images[:16], card=Card(architecture="small", dataset="noise"))
    assert row["n_params"] == row["n_nonzero"] == N_PARAMS
    assert row["flops"] == row["flops_sparse"] == FLOPS
    assert row["sparsity"] == row["sparsity.0"] == row["sparsity.5"] == 0
    assert (row["variant"], row["seed"], row["parent"]) == ("dense", 0, None)
    assert (row["dataset"], row["model"], row["method"]) == ("noise", "small", "none")
    assert (row["engine"], row["threads"], row["batch_size"]) == ("torch", 1, 16)
    assert 0 < row["latency_ms_low"] <= row["latency_ms"] <= row["latency_ms_high"]
    assert row["items_per_s"] == pytest.approx(16 * 1000 / row["latency_ms"])
    assert math.isnan(row["onnx_latency_ms"])
    assert row["note"] is None


def test_masks(small: nn.Sequential, images: Tensor, tmp_path: Path) -> None:
    keep = torch.zeros(4, 128, dtype=torch.bool)
    keep[:, ::4] = True  # 384 of 512 weights go
    set_masks(small, {"5.weight": keep})
    with torch.no_grad():
        small[0].weight[0] = 0  # and 9 of 72 are zero without a mask
    card = Card(variant="l1-75", compression={"method": "l1", "sparsity": 0.75})
    row = measure(small, images[:4], card=card)
    assert row["n_nonzero"] == N_PARAMS - 384 - 9
    assert row["sparsity"] == pytest.approx((384 + 9) / (512 + 72))
    assert row["sparsity.5"] == row["nominal_sparsity.5"] == 0.75
    assert row["sparsity.0"] == 0.125
    assert "nominal_sparsity.0" not in row
    assert row["nominal_sparsity"] == 0.75
    assert row["flops_sparse"] == FLOPS - 2 * 384 - 2 * 9 * 64
    assert row["note"] == ZEROS_NOTE
    save(small, tmp_path, card)
    assert row["size_bytes"] == (tmp_path / "weights.safetensors").stat().st_size


def test_zeros_make_only_the_compressed_size_smaller(small: nn.Sequential, images: Tensor) -> None:
    before = measure(small, images[:2])
    with torch.no_grad():
        small[5].weight.zero_()
    after = measure(small, images[:2])
    assert after["size_bytes"] == before["size_bytes"]
    assert after["compressed_bytes"] < 0.5 * before["compressed_bytes"]


def test_an_onnx_file(exported: Path, images: Tensor) -> None:
    row = measure(exported, images[:16])
    assert (row["engine"], row["weight_bits"]) == ("onnxruntime", 32)
    assert row["n_params"] == 80 + 516  # the norm has become part of the convolution
    assert row["sparsity"] == 0
    assert row["size_bytes"] == exported.stat().st_size
    assert row["compressed_bytes"] == len(zlib.compress(exported.read_bytes(), 6))
    assert row["latency_ms"] == row["onnx_latency_ms"] > 0
    assert math.isnan(row["torch_latency_ms"])
    assert math.isnan(row["flops"])


def test_both_engines(small: nn.Sequential, exported: Path, images: Tensor) -> None:
    row = measure(small, images[:8], onnx=exported, repeats=3)
    assert row["engine"] == "onnxruntime"
    assert row["latency_ms"] == row["onnx_latency_ms"]
    assert row["torch_latency_ms"] > 0
    assert (row["flops"], row["n_params"]) == (FLOPS, N_PARAMS)
    assert row["size_bytes"] == exported.stat().st_size


def test_int8_files(exported: Path, images: Tensor, tmp_path: Path) -> None:
    floats = [images.numpy()]
    static = quantize_static(exported, tmp_path / "s.onnx", floats, reduce_range=False)
    row = measure(static.path, images[:4])
    assert (row["variant"], row["parent"], row["method"]) == (
        "int8-static",
        "dense:0",
        "int8-static",
    )
    assert row["weight_bits"] == 8
    assert row["n_params"] == 80 + 516
    for path in (static.path, quantize_dynamic(exported, tmp_path / "d.onnx").path):
        layers = onnx_weights(onnx.load(str(path)))
        assert sorted(layer.n for layer in layers.values()) == [72, 512]
        # Rounding to 255 steps makes a few small weights zero, not many.
        assert all(0 <= layer.sparsity < 0.1 for layer in layers.values())


def test_zeros_are_found_in_quantised_files(
    small: nn.Sequential, images: Tensor, exported: Path, tmp_path: Path
) -> None:
    """Half of the linear weights are zeroed in the file itself, then it is quantised both ways."""
    model = onnx.load(str(exported))
    tensor = next(t for t in model.graph.initializer if t.name == "5.weight")
    values = onnx.numpy_helper.to_array(tensor).copy()
    values[:, ::2] = 0
    tensor.CopyFrom(onnx.numpy_helper.from_array(values, "5.weight"))
    path = tmp_path / "half.onnx"
    onnx.save(model, str(path))
    assert measure(path, images[:2])["sparsity.5"] == 0.5
    static = quantize_static(path, tmp_path / "s.onnx", [images.numpy()], reduce_range=False)
    dynamic = quantize_dynamic(path, tmp_path / "d.onnx")
    for made in (static.path, dynamic.path):
        largest = max(onnx_weights(onnx.load(str(made))).values(), key=lambda layer: layer.n)
        assert 0.5 <= largest.sparsity < 0.55


def test_scales_are_no_parameters(exported: Path, images: Tensor, tmp_path: Path) -> None:
    assert n_parameters(onnx.load(str(exported))) == 596
    made = quantize_static(exported, tmp_path / "s.onnx", [images.numpy()])
    assert n_parameters(onnx.load(str(made.path))) == 596


def test_rows_make_a_variants_table(small: nn.Sequential, images: Tensor) -> None:
    rows = [
        measure(small, images[:2], card=card, repeats=2)
        for card in (Card(), Card(variant="p", parent="dense:0"))
    ]
    assert parents(pd.DataFrame(rows)) == {("p", "0"): ("dense", "0")}


def test_timing() -> None:
    calls: list[int] = []
    found = timed(lambda: calls.append(1), repeats=7)
    assert (len(calls), found.calls) == (9, 7)  # two warm the caches
    assert found.low_ms <= found.median_ms <= found.high_ms


def test_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    with torch_threads(2):
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before


def test_what_cannot_be_measured(small: nn.Sequential, exported: Path, images: Tensor) -> None:
    with pytest.raises(InputError, match="threads and repeats must be at least 1"):
        measure(small, images[:2], threads=0)
    with pytest.raises(InputError, match=r"cannot take an example of shape \(2, 3, 8, 8\)"):
        measure(exported, torch.from_numpy(np.zeros((2, 3, 8, 8), np.float32)))
