"""ONNX files: torch models exported, models read and written, their cards and weights."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from fairweight.base.files import atomic_file
from fairweight.errors import InputError
from fairweight.lab.artifacts import Card, card_from_json, card_json, plain

if TYPE_CHECKING:
    import onnx


# The parts of a model's card that an ONNX file carries, so that the file can be used alone.

KEY = "fairweight"


def put_card(model: onnx.ModelProto, card: Card) -> None:
    """Write the card into the file's metadata, in place of an earlier one."""
    kept = [(entry.key, entry.value) for entry in model.metadata_props if entry.key != KEY]
    del model.metadata_props[:]
    for key, value in (*kept, (KEY, card_json(card))):
        model.metadata_props.add(key=key, value=value)


def card_of(model: onnx.ModelProto, where: str) -> Card | None:
    """The card in the file's metadata; None if it has none."""
    held = {entry.key: entry.value for entry in model.metadata_props}
    return card_from_json(held[KEY], f"The card in {where}") if KEY in held else None


# ONNX files: read with an error that names the file, written whole or not at all.


def read_onnx(path: str | Path) -> onnx.ModelProto:
    """The model in a file, its external data included."""
    import onnx
    from google.protobuf.message import DecodeError

    file = Path(path)
    if not file.is_file():
        raise InputError(f"There is no ONNX file '{file}'; check the path.")
    try:
        model = onnx.load(str(file))
        onnx.checker.check_model(model)
    except (DecodeError, OSError, ValueError, onnx.checker.ValidationError) as error:
        raise unreadable(file, error) from None
    return model


def unreadable(file: str | Path, error: Exception) -> InputError:
    """The error for a file that is no ONNX model, or a truncated one."""
    said = " ".join(str(error).split())[:200]
    return InputError(
        f"'{file}' cannot be read as an ONNX model ({said}); it may be cut off or of another "
        "kind: export it again."
    )


def write_onnx(model: onnx.ModelProto, path: str | Path) -> Path:
    """Write a model without what the exporter noted about the machine that made it.

    Exporters store stack traces, with the paths of source files, in every node; and types of
    initialisers, which quantisation makes wrong.
    """
    graph: Any = model.graph
    model.doc_string = ""
    for part in (graph, *graph.node, *graph.input, *graph.output, *graph.value_info):
        part.doc_string = ""
        del part.metadata_props[:]
    initialisers = {tensor.name for tensor in graph.initializer}
    kept = [info for info in graph.value_info if info.name not in initialisers]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    with atomic_file(path, "wb") as file:
        file.write(model.SerializeToString())
    return Path(path)


def only_input(model: onnx.ModelProto, where: str) -> str:
    """The name of the one input; an error if there are none or several."""
    initialisers = {tensor.name for tensor in model.graph.initializer}
    names = [held.name for held in model.graph.input if held.name not in initialisers]
    return one_input(names, where)


def one_input(names: list[str], where: str) -> str:
    """The only name of a list of inputs."""
    if len(names) != 1:
        shown = ", ".join(f"'{name}'" for name in names) or "none"
        raise InputError(
            f"{where} has {len(names)} inputs ({shown}), but predictions are made from one: the "
            "images; export a model with one input."
        )
    return names[0]


INPUT, OUTPUT = "image", "logits"
# Engines add in another order than torch does: a share of the largest output.
TOLERANCE = 1e-3


def to_onnx(
    model: nn.Module, example: Tensor, out: str | Path, *, card: Card | None = None
) -> Path:
    """Write a model as an ONNX file with one input `image`, any batch size, and `logits` out.

    Masks become zeros in the weights. What the file answers in ONNX Runtime is compared with the
    model before the file appears.

    Parameters
    ----------
    example
        Inputs as the model takes them: floats of shape (N, C, H, W); their values do not matter.
    card
        Written into the file, so that it carries its classes and the scaling of its pixels.
    """
    import onnxruntime

    network = plain(model).cpu()
    example = example.detach().cpu().to(torch.float32)
    try:
        with torch.inference_mode():
            output = network(example)
    except RuntimeError as error:
        raise InputError(
            f"The model cannot take an example of shape {tuple(example.shape)} "
            f"({_first_line(error)}); give one batch of its inputs."
        ) from None
    if not isinstance(output, Tensor) or output.dim() > 2 or len(output) != len(example):
        held = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise InputError(
            f"The model's output is {held} for {len(example)} images; it must be one tensor of "
            "logits (images, classes)."
        )
    exported = _export(network, example)
    put_card(exported, card or Card())
    session = onnxruntime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    given, expected = session.run(None, {INPUT: example.numpy()})[0], output.numpy()
    apart = float(np.abs(given - expected).max(initial=0.0))
    if not apart <= TOLERANCE * max(1.0, float(np.abs(expected).max(initial=0.0))):
        raise InputError(
            f"'{out}' was not written: in ONNX Runtime the exported model's outputs differ from "
            f"torch's by up to {apart:.3g}; check that the forward pass draws no random numbers."
        )
    return write_onnx(exported, out)


def _export(network: nn.Module, example: Tensor) -> onnx.ModelProto:
    # An example of one image would be taken as a model for single images.
    traced = torch.cat([example, example]) if len(example) == 1 else example
    batch = torch.export.Dim("batch")
    try:
        with _quiet_exporter():
            program = torch.onnx.export(
                network,
                (traced,),
                input_names=[INPUT],
                output_names=[OUTPUT],
                dynamic_shapes=({0: batch},),
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.errors.OnnxExporterError as error:
        raise InputError(
            f"torch cannot export this model to ONNX ({_first_line(error)}); a forward pass "
            "without branches on values, and with any batch size, can be exported."
        ) from None
    assert program is not None
    return program.model_proto


def program_to_onnx(program: ExportedProgram, shown: str) -> onnx.ModelProto:
    """An exported program as an ONNX model, with the batch sizes that it was exported for."""
    try:
        with _quiet_exporter():
            made = torch.onnx.export(
                program, input_names=[INPUT], output_names=[OUTPUT], dynamo=True, verbose=False
            )
    except torch.onnx.errors.OnnxExporterError as error:
        raise InputError(
            f"torch cannot convert {shown} to ONNX ({_first_line(error)}); export the module "
            "itself with torch.onnx.export, and give that file."
        ) from None
    assert made is not None
    return made.model_proto


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Without the exporter's remarks on its own parts and on optional packages."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


# Weights inside an ONNX file, also quantised ones, and how many of them are zero.

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
# What a file has that holds short integers already.
QUANTISED = WEIGHTED.keys() - {"Conv", "Gemm", "MatMul"} | {"QuantizeLinear", "DequantizeLinear"}
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
        source, zero = source_of(node.input[weight], zero, tensors, made)
        if source is None:
            continue
        values = np.asarray(numpy_helper.to_array(tensors[source]))
        held = tensors.get(zero) if zero else None
        empty = np.zeros(()) if held is None else np.asarray(numpy_helper.to_array(held))
        if empty.size > 1:
            # One zero point per channel, along whichever axis has that many entries.
            shape = [1] * values.ndim
            shape[values.shape.index(empty.size)] = empty.size
            empty = empty.reshape(shape)
        else:
            empty = empty.reshape(())
        nonzero = int(np.count_nonzero(values != empty))
        found[source.removesuffix("_quantized")] = OnnxWeights(values.size, nonzero)
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


def source_of(
    name: str, zero: str | None, tensors: Mapping[str, Any], made: Mapping[str, Any]
) -> tuple[str | None, str | None]:
    """The stored tensor behind an input, and its zero point if it is dequantised on the way."""
    while name not in tensors:
        node = made.get(name)
        if node is None:
            return None, None
        if node.op_type == "DequantizeLinear":
            zero = node.input[2] if len(node.input) > 2 else None
        elif node.op_type not in PASSED:
            return None, None
        name = node.input[0]
    return name, zero
