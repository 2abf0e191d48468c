"""int8 files that run, answer nearly like the float model, and say how they were made."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from torch import Tensor

from fairweight.errors import InputError
from fairweight.lab.compression import quantisation
from fairweight.lab.compression.quantisation import quantize_dynamic, quantize_static
from fairweight.lab.onnx_models import card_of


def outputs(path: Path, images: NDArray[np.float32], *, optimised: bool = True) -> NDArray:
    options = onnxruntime.SessionOptions()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"image": images})[0])


def kinds(path: Path) -> set[int]:
    return {tensor.data_type for tensor in onnx.load(str(path)).graph.initializer}


def operators(path: Path) -> set[str]:
    return {node.op_type for node in onnx.load(str(path)).graph.node}


def test_static(exported: Path, images: Tensor, tmp_path: Path) -> None:
    floats = images.numpy()
    made = quantize_static(exported, tmp_path / "int8.onnx", [floats])
    assert made.path == tmp_path / "int8.onnx"
    assert made.calibration_examples == 100
    assert {"QuantizeLinear", "DequantizeLinear"} <= operators(made.path)
    assert {TensorProto.INT8, TensorProto.UINT8} <= kinds(made.path)
    exact = outputs(exported, floats)
    apart = np.abs(outputs(made.path, floats) - exact)
    # 8 bits resolve 1/255 of the range; a few roundings add up.
    assert 0 < apart.max() < 0.1 * np.ptp(exact)
    assert (outputs(made.path, floats).argmax(1) == exact.argmax(1)).mean() > 0.9


def test_weights_are_symmetric_per_channel(exported: Path, images: Tensor, tmp_path: Path) -> None:
    path = quantize_static(exported, tmp_path / "q.onnx", [images.numpy()], reduce_range=False).path
    tensors = {
        t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(str(path)).graph.initializer
    }
    weights, scale = tensors["0.weight_quantized"], tensors["0.weight_scale"]
    assert weights.dtype == np.int8
    assert scale.shape == (8,)  # one per output channel
    assert np.abs(weights).reshape(8, -1).max(1).tolist() == [127] * 8
    assert not tensors["0.weight_zero_point"].any()


def test_seven_bits(exported: Path, images: Tensor, tmp_path: Path) -> None:
    made = quantize_static(exported, tmp_path / "q.onnx", [images.numpy()], reduce_range=True)
    tensors = {
        t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(str(made.path)).graph.initializer
    }
    assert made.weight_bits == 7
    assert int(np.abs(tensors["0.weight_quantized"].astype(int)).max()) <= 64


def test_what_is_written_does_not_saturate(exported: Path, images: Tensor, tmp_path: Path) -> None:
    """On any processor: as exact as the file's own rounding, or the weights have 7 bits."""
    floats = images.numpy()
    made = quantize_static(exported, tmp_path / "q.onnx", [floats])
    exact = outputs(exported, floats)
    stated = outputs(made.path, floats, optimised=False) - exact
    given = outputs(made.path, floats) - exact
    assert np.sqrt((given**2).mean()) <= 1.25 * np.sqrt((stated**2).mean())


@pytest.mark.parametrize(("saturates", "bits"), [(True, 7), (False, 8)])
def test_saturation_decides(
    exported: Path,
    images: Tensor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    saturates: bool,
    bits: int,
) -> None:
    monkeypatch.setattr(quantisation, "_saturates", lambda *_: saturates)
    made = quantize_static(exported, tmp_path / "q.onnx", [images.numpy()])
    assert made.weight_bits == bits
    card = card_of(onnx.load(str(made.path)), "it")
    assert card is not None
    assert card.compression["quantisation"] == {
        "method": "int8-static",
        "weight_bits": bits,
        "n": 100,
    }


def test_dynamic(exported: Path, images: Tensor, tmp_path: Path) -> None:
    floats = images.numpy()
    made = quantize_dynamic(exported, tmp_path / "hybrid.onnx")
    assert {"ConvInteger", "MatMulInteger", "DynamicQuantizeLinear"} <= operators(made.path)
    exact = outputs(exported, floats)
    assert 0 < np.abs(outputs(made.path, floats) - exact).max() < 0.1 * np.ptp(exact)
    assert made.calibration_examples is None


def test_the_card_says_what_was_done(exported: Path, tmp_path: Path) -> None:
    made = quantize_dynamic(exported, tmp_path / "hybrid.onnx")
    card = card_of(onnx.load(str(made.path)), "it")
    assert card is not None
    assert card.classes == ("a", "b", "c", "d")
    assert (card.variant, card.parent) == ("int8-dynamic", "dense:0")


def test_only_the_first_examples_calibrate(
    exported: Path, images: Tensor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Single examples and batches alike; what comes later changes nothing."""
    floats = images.numpy()
    with caplog.at_level(logging.WARNING):
        one = quantize_static(exported, tmp_path / "1.onnx", list(floats[:20]), examples=20)
    several = [floats[:15], floats[15:30] * [[[1.0]]] * 1, floats[30:] * 1000]
    several[1][5:] *= 1000
    two = quantize_static(
        exported, tmp_path / "2.onnx", (b.astype(np.float32) for b in several), examples=20
    )
    assert one.calibration_examples == two.calibration_examples == 20
    assert one.path.read_bytes() == two.path.read_bytes()
    assert "pre-processing" not in caplog.text


def test_calibration_that_cannot_be_used(exported: Path, images: Tensor, tmp_path: Path) -> None:
    out, floats = tmp_path / "q.onnx", images.numpy()
    with pytest.raises(InputError, match="no calibration examples"):
        quantize_static(exported, out, [])
    with pytest.raises(InputError, match=r"shape \(3, 8, 8\), but .* takes \(1, 8, 8\)"):
        quantize_static(exported, out, [np.zeros((2, 3, 8, 8), np.float32)])
    with pytest.raises(InputError, match="are uint8; give floats"):
        quantize_static(exported, out, [np.zeros((2, 8, 8, 1), np.uint8)])
    with pytest.raises(InputError, match="not finite"):
        quantize_static(exported, out, [floats * np.nan])
    with pytest.raises(InputError, match="at least 1"):
        quantize_static(exported, out, [floats], examples=0)
    assert not out.exists()


def two_inputs(path: Path) -> Path:
    shape = ["batch", 1, 8, 8]
    held = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("a", "b", "c")]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["c"])], "g", held[:2], held[2:])
    opset = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=opset), str(path))
    return path


def test_two_inputs(images: Tensor, tmp_path: Path) -> None:
    path = two_inputs(tmp_path / "two.onnx")
    for call in (
        lambda: quantize_dynamic(path, tmp_path / "q.onnx"),
        lambda: quantize_static(path, tmp_path / "q.onnx", [images.numpy()]),
    ):
        with pytest.raises(InputError, match=r"two.onnx' has 2 inputs \('a', 'b'\)"):
            call()


def test_no_file_and_no_model(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no ONNX file"):
        quantize_dynamic(tmp_path / "none.onnx", tmp_path / "q.onnx")
    cut = tmp_path / "cut.onnx"
    cut.write_bytes(exported.read_bytes()[:500])
    with pytest.raises(InputError, match=r"cut.onnx' cannot be read as an ONNX model"):
        quantize_dynamic(cut, tmp_path / "q.onnx")
