"""Calibration: which examples set ranges, and biases that make up for rounded weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.base.streams import generator
from fairweight.data.dataset import Images
from fairweight.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import onnx

LEAST = 10  # examples for a mean output
CORRECTED = ("Conv", "Gemm")


def drawn_unless_chosen(given: Any, spec: Any) -> Any:
    """The spec with calibration examples drawn at random, unless it says which.

    The first examples of a folder of images are of one class. A table of fields says it by its
    field `calibration`; a spec always does.

    Parameters
    ----------
    given
        What the spec was read from: a method's name, a table of fields, or the spec itself.
    """
    named = isinstance(given, str) or (isinstance(given, Mapping) and "calibration" not in given)
    if named and hasattr(spec, "calibration"):
        return replace(spec, calibration="random")
    return spec


def calibration_rows(images: Images, spec: Any) -> NDArray[np.intp]:
    """Rows of the training examples that a spec calibrates with.

    Balanced: every class (or group) gives one example in turn, in an order that is drawn, until
    there are enough or it has no more.
    """
    n, wanted = len(images), min(spec.calibration_examples, len(images))
    how = getattr(spec, "calibration", "first")
    if how == "first":
        return np.arange(wanted)
    order = generator(spec.calibration_seed, "calibration", how).permutation(n)
    if how == "random":
        return np.sort(order[:wanted])
    if how == "class-balanced":
        if images.multi_label:
            raise InputError(
                "class-balanced calibration needs one label per example, and there are several "
                'tasks; use calibration = "random" or "group-balanced".'
            )
        levels: NDArray[Any] = images.labels
    else:
        if spec.group not in images.groups:
            raise UnknownNameError("The group column of the calibration", spec.group, images.groups)
        levels = images.groups[spec.group]
    turn = np.zeros(n, dtype=np.intp)
    for level in np.unique(levels):
        own = order[levels[order] == level]
        turn[own] = np.arange(len(own))
    return np.sort(order[np.argsort(turn[order], kind="stable")][:wanted])


def corrected_biases(
    model: onnx.ModelProto,
    rounded: onnx.ModelProto,
    layers: Collection[str],
    name: str,
    inputs: NDArray[np.float32],
) -> onnx.ModelProto:
    """The float model with biases moved by what rounding its weights changes in mean outputs.

    Layer by layer in the order of the network, each after those before it were corrected, as in
    empirical bias correction (Nagel et al. 2019). Products without a bias stay as they are.

    Parameters
    ----------
    rounded
        The same model with rounded weights.
    layers
        Names of the nodes that are corrected.
    name
        Of the input.
    """
    import onnx
    from onnx import numpy_helper

    if len(inputs) < LEAST:
        raise InputError(
            f"bias_correction needs at least {LEAST} calibration examples, and there are "
            f"{len(inputs)}; give training examples."
        )
    made, shifted = onnx.ModelProto(), onnx.ModelProto()
    made.CopyFrom(model)
    shifted.CopyFrom(rounded)
    places = [
        place
        for place, node in enumerate(model.graph.node)
        if node.name in layers and node.op_type in CORRECTED
    ]
    before = _means(made, [made.graph.node[place].output[0] for place in places], name, inputs)
    for at, place in enumerate(places):
        (now,) = _means(shifted, [shifted.graph.node[place].output[0]], name, inputs)
        change = before[at] - now
        for one in (made, shifted):
            node = one.graph.node[place]
            held = {tensor.name: tensor for tensor in one.graph.initializer}
            old = np.zeros_like(change)
            if len(node.input) > 2 and node.input[2]:
                if node.input[2] not in held:
                    continue  # computed on the way: nothing that is stored could be moved
                old = np.array(numpy_helper.to_array(held[node.input[2]]))
                if old.shape != change.shape:
                    continue
            title = f"{node.name}.corrected_bias"
            one.graph.initializer.append(
                numpy_helper.from_array((old + change).astype(np.float32), title)
            )
            while len(node.input) < 3:
                node.input.append("")
            node.input[2] = title
    return made


def _means(
    model: onnx.ModelProto, outputs: list[str], name: str, inputs: NDArray[np.float32]
) -> list[NDArray[np.float64]]:
    """Mean of some tensors by channel, over examples and places."""
    import onnx
    import onnxruntime

    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    known = {one.name for one in shown.graph.output}
    for output in outputs:
        if output not in known:
            shown.graph.output.append(onnx.ValueInfoProto(name=output))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        shown.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    found = session.run(outputs, {name: inputs})
    return [
        np.asarray(values, dtype=np.float64).mean(
            axis=tuple(axis for axis in range(values.ndim) if axis != 1)
        )
        for values in found
    ]
