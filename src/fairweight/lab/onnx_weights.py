"""Weights inside an ONNX file, also quantised ones, and how many of them are zero."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import onnx

# Which inputs of an operator are weights, and which their zero points (None: zero is 0).
WEIGHTED: Mapping[str, tuple[int, int | None]] = {
    "Conv": (1, None),
    "Gemm": (1, None),
    "MatMul": (1, None),
    "ConvInteger": (1, 3),
    "MatMulInteger": (1, 3),
    "QLinearConv": (3, 5),
    "QLinearMatMul": (3, 5),
}
PASSED = frozenset(("Transpose", "Reshape", "Identity", "QuantizeLinear", "Cast"))


@dataclass(frozen=True)
class OnnxWeights:
    """Numbers of one layer's weights."""

    n: int
    nonzero: int

    @property
    def sparsity(self) -> float:
        return 1 - self.nonzero / self.n if self.n else float("nan")


def onnx_weights(model: onnx.ModelProto) -> dict[str, OnnxWeights]:
    """Weights per convolution or product, by the name of the tensor that holds them."""
    from onnx import numpy_helper

    tensors = {held.name: held for held in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    made = {name: node for node in model.graph.node for name in node.output}
    found: dict[str, OnnxWeights] = {}
    for node in model.graph.node:
        if node.op_type not in WEIGHTED:
            continue
        weight, point = WEIGHTED[node.op_type]
        zero = node.input[point] if point is not None and point < len(node.input) else None
        source, zero = _source(node.input[weight], zero, tensors, made)
        if source is None:
            continue
        values = np.asarray(numpy_helper.to_array(tensors[source]))
        held = tensors.get(zero) if zero else None
        empty = 0 if held is None else np.asarray(numpy_helper.to_array(held))
        name = source.removesuffix("_quantized")
        found[name] = OnnxWeights(values.size, _nonzero(values, empty))
    return found


def n_parameters(model: onnx.ModelProto) -> int:
    """Floats and integers that are weights or biases: of more than one value, no scales."""
    quantising = {"QuantizeLinear": (1, 2), "DequantizeLinear": (1, 2)}
    aside = {
        node.input[place]
        for node in model.graph.node
        for place in quantising.get(node.op_type, ())
        if place < len(node.input)
    }
    aside |= {node.input[1] for node in model.graph.node if node.op_type == "Reshape"}
    return sum(
        int(np.prod(held.dims, dtype=np.int64))
        for held in model.graph.initializer
        if held.name not in aside and held.dims
    )


def _source(
    name: str, zero: str | None, tensors: Mapping[str, Any], made: Mapping[str, Any]
) -> tuple[str | None, str | None]:
    """The stored tensor behind an input, and its zero point if it is dequantised on the way."""
    for name_now, zero_now in _upwards(name, zero, made):
        if name_now in tensors:
            return name_now, zero_now
    return None, None


def _upwards(
    name: str, zero: str | None, made: Mapping[str, Any]
) -> Iterator[tuple[str, str | None]]:
    yield name, zero
    while name in made:
        node = made[name]
        if node.op_type == "DequantizeLinear":
            zero = node.input[2] if len(node.input) > 2 else None
        elif node.op_type not in PASSED:
            return
        name = node.input[0]
        yield name, zero


def _nonzero(values: NDArray[Any], zero: NDArray[Any] | int) -> int:
    if isinstance(zero, int) or zero.ndim == 0 or zero.size == 1:
        return int(np.count_nonzero(values != np.asarray(zero).reshape(-1)[0]))
    # One zero point per channel, along whichever axis has that many entries.
    axis = values.shape.index(zero.size)
    shape = [1] * values.ndim
    shape[axis] = zero.size
    return int(np.count_nonzero(values != zero.reshape(shape)))
