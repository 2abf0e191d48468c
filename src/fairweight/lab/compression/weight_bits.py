"""Weights at a few bits: rounded by output channel in a float file, counted as if packed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.errors import InputError
from fairweight.lab.compression.int8 import note
from fairweight.lab.compression.registry import method
from fairweight.lab.onnx_models import read_onnx, source_of, write_onnx
from fairweight.specs.compression import WeightBits

if TYPE_CHECKING:
    import onnx

SCALE_BYTES = 4  # of the scale of an output channel


@method(
    "weight-bits",
    spec=WeightBits,
    summary="Weights rounded to 2 to 8 bits by output channel (simulated: no speed)",
    source="whoever asks how few bits are enough",
    acts_on="file",
    output="onnx",
    trains="never",
    seconds=4.0,
)
def round_weights(source: Path, out: Path, inputs: NDArray[Any], spec: WeightBits) -> None:
    """Round the weights of convolutions and products; biases and norms stay."""
    from onnx import numpy_helper

    model = read_onnx(source)
    saved = 0
    axes = _output_axes(model, source)
    for tensor in model.graph.initializer:
        if tensor.name not in axes:
            continue
        values = np.asarray(numpy_helper.to_array(tensor))
        axis = axes[tensor.name]
        made = rounded(values, axis, spec.bits)
        tensor.CopyFrom(numpy_helper.from_array(made, tensor.name))
        packed = math.ceil(values.size * spec.bits / 8) + SCALE_BYTES * values.shape[axis]
        saved += values.nbytes - packed
    facts = {"method": "weight-bits", "weight_bits": spec.bits, "saved_bytes": saved}
    note(model, model, facts)
    write_onnx(model, out)


def rounded(values: NDArray[Any], axis: int, bits: int) -> NDArray[Any]:
    """The nearest multiples of each channel's scale, max |w| / (2^(bits - 1) - 1); ties to even.

    >>> rounded(np.array([[0.5, -1.0, 0.26]], dtype=np.float32), 0, 3).round(3).tolist()
    [[0.6669999957084656, -1.0, 0.3330000042915344]]
    """
    others = tuple(place for place in range(values.ndim) if place != axis)
    largest = np.abs(values).max(axis=others, keepdims=True)
    scale = np.where(largest > 0, largest, 1) / (2 ** (bits - 1) - 1)
    made: NDArray[Any] = (np.rint(values / scale) * scale).astype(values.dtype)
    return made


def _output_axes(model: onnx.ModelProto, path: Path) -> dict[str, int]:
    """Of every stored weight the axis of its outputs."""
    stored = {held.name: held for held in model.graph.initializer}
    made = {name: node for node in model.graph.node for name in node.output}
    found: dict[str, int] = {}
    for node in model.graph.node:
        if node.op_type not in ("Conv", "Gemm", "MatMul"):
            continue
        name, _ = source_of(node.input[1], None, stored, made)
        if name is None:  # a product of two activations
            continue
        turned = any(one.name == "transB" and one.i for one in node.attribute)
        axis = 0 if node.op_type == "Conv" or turned else len(stored[name].dims) - 1
        if name != node.input[1] or found.setdefault(name, axis) != axis:
            raise InputError(
                f"The weights '{name}' of '{path}' are turned, quantised already or used by two "
                "layers in two ways, so that they cannot be rounded by output; export the float "
                "model with constants folded."
            )
    if not found:
        raise InputError(f"'{path}' has no convolution or product with weights of its own.")
    return found
