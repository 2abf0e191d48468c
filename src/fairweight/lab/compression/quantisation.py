"""Exported models quantised: int8 that really runs in ONNX Runtime, and weights at a few bits.

Fixed point (static): weights and activations are int8, with activations' ranges from calibration
examples. Hybrid (dynamic range): weights are int8, activations are quantised as they come.
"""

from __future__ import annotations

import logging
import math
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairweight.base.files import atomic_file
from fairweight.errors import InputError
from fairweight.lab.batches import as_array
from fairweight.lab.compression.calibration import corrected_biases
from fairweight.lab.compression.registry import PartlyCompressed, method
from fairweight.lab.loaders import OnnxInput
from fairweight.lab.onnx_models import (
    QUANTISED,
    card_of,
    only_input,
    put_card,
    read_onnx,
    source_of,
    write_onnx,
)
from fairweight.lab.units import Unit, chosen_layers, name_nodes, units_of
from fairweight.specs.compression import Int8Dynamic, Int8Qat, Int8Static, Ranges, WeightBits

if TYPE_CHECKING:
    import onnx

CALIBRATION_EXAMPLES = 100
CALIBRATED_AT_ONCE = 10
# int8 arithmetic that saturates makes a file err more than its rounding does: by 59 % to 780 % on
# the networks measured, against less than 1 % for arithmetic that does not.
TOLERATED_EXCESS = 1.25
# How ONNX Runtime calls the ways from values that were seen to a range.
CALIBRATION_METHODS: dict[Ranges, str] = {
    "min-max": "MinMax",
    "percentile": "Percentile",
    "entropy": "Entropy",
}


@dataclass(frozen=True)
class Quantized:
    """A quantised file, and how its weights were rounded."""

    path: Path
    weight_bits: int  # 7 where the processor's 8-bit arithmetic saturates
    calibration_examples: int | None


def quantize_static(
    onnx_path: str | Path,
    out: str | Path,
    calibration: Iterable[NDArray[Any]],
    *,
    examples: int = CALIBRATION_EXAMPLES,
    reduce_range: bool | None = None,
) -> Quantized:
    """Fixed-point int8: activations uint8 per tensor, weights int8 symmetric per channel.

    Parameters
    ----------
    calibration
        Inputs as the model takes them, in batches (N, C, H, W) or one by one (C, H, W); the first
        `examples` of them give the activations' ranges. Use training examples.
    reduce_range
        Round weights to 7 bits. Processors without VNNI add pairs of 8-bit products in 16 bits,
        which saturates: the same file then answers worse than it should. By default this is
        measured on the calibration examples, and 7 bits are taken where it happens. Set it where
        the file is to be the same on every machine, and to True if it will run on older ones.
    """
    model = read_onnx(onnx_path)
    shown = f"'{onnx_path}'"
    wanted = OnnxInput.of(_session(model.SerializeToString()), shown)
    inputs = _first(calibration, examples, len(wanted.sizes))
    fits = not wanted.sizes or all(
        not isinstance(size, int) or size == given
        for size, given in zip(wanted.sizes[1:], inputs.shape[1:], strict=True)
    )
    if not fits:
        raise InputError(
            f"Calibration examples have the shape {inputs.shape[1:]}, but {shown} takes "
            f"{wanted.sizes[1:]}; give them as the model takes them."
        )
    reduced = bool(reduce_range)
    quantised = _static(model, wanted, inputs, reduced)
    if reduce_range is None and _saturates(model, quantised, wanted, inputs):
        reduced = True
        quantised = _static(model, wanted, inputs, reduced)
    _check_quantised(quantised, shown)
    bits = 7 if reduced else 8
    note(quantised, model, {"method": "int8-static", "weight_bits": bits, "n": len(inputs)})
    return Quantized(write_onnx(quantised, out), bits, len(inputs))


def quantize_dynamic(onnx_path: str | Path, out: str | Path) -> Quantized:
    """Hybrid int8: weights uint8 (which convolutions need here), activations quantised in use."""
    model = read_onnx(onnx_path)
    only_input(model, f"'{onnx_path}'")
    quantised = _dynamic(model)
    _check_quantised(quantised, f"'{onnx_path}'")
    note(quantised, model, {"method": "int8-dynamic", "weight_bits": 8})
    return Quantized(write_onnx(quantised, out), 8, None)


def _dynamic(model: onnx.ModelProto, nodes: Sequence[str] | None = None) -> onnx.ModelProto:
    """The model in hybrid int8, or only these of its nodes."""
    from onnxruntime.quantization import QuantType
    from onnxruntime.quantization import quantize_dynamic as quantise

    def run(source: onnx.ModelProto, target: Path) -> None:
        chosen = None if nodes is None else list(nodes)
        quantise(source, target, weight_type=QuantType.QUInt8, nodes_to_quantize=chosen)

    return _run(model, run)


def _static(
    model: onnx.ModelProto,
    wanted: OnnxInput,
    inputs: NDArray[np.float32],
    reduce_range: bool,
    nodes: Sequence[str] | None = None,
    *,
    ranges: Ranges = "min-max",
    ranges_file: Path | None = None,
) -> onnx.ModelProto:
    """The model in fixed-point int8, or only these of its nodes.

    Parameters
    ----------
    ranges
        How the range of an activation follows from what was seen.
    ranges_file
        Keeps the ranges of all activations: they are computed by the first call alone.
    """
    from onnx import numpy_helper
    from onnxruntime.quantization import (
        CalibrationDataReader,
        CalibrationMethod,
        QuantFormat,
        QuantType,
    )
    from onnxruntime.quantization import quantize_static as quantise

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        """The calibration examples in small batches, or in the only size that the file takes."""

        def __init__(self) -> None:
            size = wanted.batch_size or CALIBRATED_AT_ONCE
            self.batches = [inputs[at : at + size] for at in range(0, len(inputs), size)]
            if wanted.batch_size is not None:  # ranges do not change by an example given twice
                missing = size - len(self.batches[-1])
                last = np.repeat(inputs[-1:], missing, axis=0)
                self.batches[-1] = np.concatenate([self.batches[-1], last])
            self.batches.reverse()

        def get_next(self) -> dict[str, NDArray[np.float32]] | None:
            return {wanted.name: self.batches.pop()} if self.batches else None

    def run(source: onnx.ModelProto, target: Path) -> None:
        quantise(
            source,
            target,
            Reader(),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=reduce_range,
            nodes_to_quantize=None if nodes is None else list(nodes),
            calibrate_method=getattr(CalibrationMethod, CALIBRATION_METHODS[ranges]),
            calibration_cache_path=ranges_file,
        )

    with warnings.catch_warnings():  # of infinite ranges: such a file answers at random
        warnings.simplefilter("ignore", RuntimeWarning)
        made = _run(model, run)
    scales = {node.input[1] for node in made.graph.node if node.op_type == "QuantizeLinear"}
    for tensor in made.graph.initializer:
        if tensor.name in scales and not np.isfinite(numpy_helper.to_array(tensor)).all():
            raise InputError(
                f"The values of '{tensor.name.removesuffix('_scale')}' have no finite range, so "
                "they cannot be int8 (a padding by -inf in front of a maximum does this); pad with "
                "the edge or a finite number, and export the model again."
            )
    return made


def _run(
    model: onnx.ModelProto, quantise: Callable[[onnx.ModelProto, Path], None]
) -> onnx.ModelProto:
    """What a function that writes a quantised file makes of a copy of the model."""
    import onnx

    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    root = logging.getLogger()
    root.addFilter(_is_news)
    try:
        with tempfile.TemporaryDirectory(prefix="fairweight-") as folder:
            # Written and read again: the quantiser changes the model that it is given, and
            # stumbles over types of initialisers that exporters leave behind.
            source = read_onnx(write_onnx(copied, Path(folder) / "float.onnx"))
            target = Path(folder) / "int8.onnx"
            quantise(source, target)
            return onnx.load(str(target))
    finally:
        root.removeFilter(_is_news)


def _check_quantised(quantised: onnx.ModelProto, shown: str) -> None:
    """Raise where no layer became int8: the file would be the same model under another name."""
    if not QUANTISED & {node.op_type for node in quantised.graph.node}:
        raise InputError(
            f"{shown} has no layer that ONNX Runtime makes int8 (convolutions and products with "
            "stored weights); it would stay as it is."
        )


def _is_news(record: logging.LogRecord) -> bool:
    """Not the quantiser's advice to optimise first, which the exporter has done."""
    return "pre-processing before quantization" not in record.getMessage()


def _first(calibration: Iterable[NDArray[Any]], examples: int, axes: int) -> NDArray[np.float32]:
    """The first examples of an iterable of batches (of so many axes) or single examples."""
    if examples < 1:
        raise InputError(f"examples must be at least 1 for calibration; given was {examples}.")
    taken: list[NDArray[np.float32]] = []
    count = 0
    for given in calibration:
        array = np.asarray(given)
        if array.dtype.kind != "f":
            raise InputError(
                f"Calibration examples are {array.dtype}; give floats, scaled as the model takes "
                "them."
            )
        batch = array[None] if array.ndim == axes - 1 else array
        if batch.ndim != (axes or batch.ndim):
            raise InputError(
                f"Calibration examples have the shape {array.shape[1:]}, but the model takes "
                f"{axes - 1} axes per example; give them as the model takes them."
            )
        batch = batch[: examples - count].astype(np.float32)
        taken.append(batch)
        count += len(batch)
        if count >= examples:
            break
    if not count:
        raise InputError(
            "There are no calibration examples; static int8 needs some, such as the first 100 "
            "training examples."
        )
    inputs = np.concatenate(taken)
    if not np.isfinite(inputs).all():
        raise InputError("A calibration example has values that are not finite; remove it.")
    return inputs


def _saturates(
    model: onnx.ModelProto,
    quantised: onnx.ModelProto,
    wanted: OnnxInput,
    inputs: NDArray[np.float32],
) -> bool:
    """Whether this machine's int8 arithmetic errs more than the rounding that the file states.

    Without graph optimisations ONNX Runtime computes the file's dequantised values in floats: the
    answer that the file stands for.
    """
    float_bytes, int8_bytes = model.SerializeToString(), quantised.SerializeToString()
    sessions = (_session(float_bytes), _session(int8_bytes, optimise=False), _session(int8_bytes))
    exact, stated, given = (wanted.runner(one, "The model")(inputs) for one in sessions)
    errs, stands_for = (
        float(np.sqrt(np.mean(np.square(values - exact, dtype=np.float64))))
        for values in (given, stated)
    )
    return errs > TOLERATED_EXCESS * stands_for


def _session(content: bytes, *, optimise: bool = True, threads: int = 0) -> Any:
    """ONNX Runtime on the CPU; 0 threads: as many as it likes."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def note(quantised: onnx.ModelProto, model: onnx.ModelProto, compression: dict[str, Any]) -> None:
    """The card of the float model, with what was done to it and its parent."""
    card = card_of(model, "the float model")
    if card is not None:
        steps = {**card.compression, "quantisation": compression}
        parent = f"{card.variant}:{card.seed}"
        variant = str(compression["method"])
        if card.variant != "dense":
            variant = f"{card.variant}-{variant}"
        put_card(
            quantised,
            replace(card, variant=variant, parent=parent, compression=steps, measured={}),
        )


class Int8Model:
    """An int8 model in memory, which answers like a module does: (N, C, H, W) to logits."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._session = _session(content, threads=torch.get_num_threads())
        self._input = self._session.get_inputs()[0].name

    def __call__(self, inputs: Any) -> NDArray[np.float32]:
        batch = np.ascontiguousarray(as_array(inputs), dtype=np.float32)
        return np.asarray(self._session.run(None, {self._input: batch})[0])

    def save(self, path: str | Path) -> Path:
        """Write the ONNX file."""
        with atomic_file(path, "wb") as file:
            file.write(self._content)
        return Path(path)


# Models of which only some units are compressed: what all of them share is made once.


class StaticUnits:
    """Fixed point in some units; ranges come from one calibration of the whole network."""

    def __init__(
        self, model: onnx.ModelProto, spec: Int8Static, inputs: NDArray[Any], folder: Path
    ) -> None:
        self._model = model
        self._wanted = OnnxInput.of(_session(model.SerializeToString()), "The model")
        self._inputs = _first([inputs], spec.examples, len(self._wanted.sizes))
        self._how: dict[str, Any] = {"ranges": spec.ranges, "ranges_file": folder / "ranges.json"}
        self._reduced = bool(spec.reduce_range)
        if spec.reduce_range is None:
            whole = self._made(None)
            self._reduced = _saturates(model, whole, self._wanted, self._inputs)

    def __call__(self, units: Sequence[Unit]) -> PartlyCompressed:
        made = self._made([node for unit in units for node in unit.nodes])
        facts = {"weight_bits": 7 if self._reduced else 8, "n": len(self._inputs)}
        return PartlyCompressed(made, self._model.ByteSize() - made.ByteSize(), facts)

    def _made(self, nodes: Sequence[str] | None) -> onnx.ModelProto:
        return _static(self._model, self._wanted, self._inputs, self._reduced, nodes, **self._how)


class DynamicUnits:
    """Hybrid int8 in some units."""

    def __init__(
        self, model: onnx.ModelProto, spec: Int8Dynamic, inputs: NDArray[Any], folder: Path
    ) -> None:
        self._model = model

    def __call__(self, units: Sequence[Unit]) -> PartlyCompressed:
        made = _dynamic(self._model, [node for unit in units for node in unit.nodes])
        return PartlyCompressed(made, self._model.ByteSize() - made.ByteSize(), {"weight_bits": 8})


class RoundedUnits:
    """Weights of some units rounded to a few bits."""

    def __init__(self, model: onnx.ModelProto, bits: int) -> None:
        self._model = model
        self._bits = bits
        self._axes = _output_axes(model, Path("the model"))

    @classmethod
    def of(
        cls, model: onnx.ModelProto, spec: WeightBits, inputs: NDArray[Any], folder: Path
    ) -> RoundedUnits:
        return cls(model, spec.bits)

    def __call__(self, units: Sequence[Unit]) -> PartlyCompressed:
        import onnx

        made = onnx.ModelProto()
        made.CopyFrom(self._model)
        own = {weight for unit in units for weight in unit.weights}
        axes = {name: axis for name, axis in self._axes.items() if name in own}
        saved = round_tensors(made, axes, self._bits)
        facts = {"weight_bits": self._bits, "saved_bytes": saved}
        return PartlyCompressed(made, saved, facts)


ALL = ("*",)  # layers


def _partly(
    method: str,
    made_by: Callable[..., Callable[[Sequence[Unit]], PartlyCompressed]],
    source: Path,
    out: Path,
    inputs: NDArray[Any],
    spec: Any,
) -> None:
    """Some layers compressed, biases corrected, or ranges of another kind."""
    model = read_onnx(source)
    name_nodes(model)
    units = units_of(model, f"'{source}'")
    names = chosen_layers([unit.name for unit in units], spec.layers)
    chosen = [unit for unit in units if unit.name in names]
    facts: dict[str, Any] = {"method": method}
    with tempfile.TemporaryDirectory(prefix="fairweight-") as folder:
        plain = model
        if spec.bias_correction:
            rounded_model = RoundedUnits(model, getattr(spec, "bits", 8))(chosen).model
            given = np.asarray(inputs, dtype=np.float32)
            nodes = {node for unit in chosen for node in unit.nodes}
            name = only_input(model, f"'{source}'")
            plain = corrected_biases(model, rounded_model, nodes, name, given)
            facts["bias_correction"] = True
        made = made_by(plain, spec, inputs, Path(folder))(chosen)
    if len(names) < len(units):
        facts["float_layers"] = [unit.name for unit in units if unit.name not in names]
    if getattr(spec, "ranges", "min-max") != "min-max":
        facts["ranges"] = spec.ranges
    note(made.model, model, facts | made.facts)
    write_onnx(made.model, out)


# The two kinds as registered methods (Hooker et al.).

_ON_FILES: dict[str, Any] = {
    "acts_on": "file",
    "output": "onnx",
    "seconds": 6.0,  # export and quantisation
    "weight_bits": 8,
}


@method(
    "int8-static",
    spec=Int8Static,
    summary="Weights and activations in int8 (fixed point), ranges from 100 examples",
    by_unit=StaticUnits,
    calibrates=True,
    trains="never",
    source="Hooker et al.",
    **_ON_FILES,
)
@method(
    "int8-qat",
    spec=Int8Qat,
    summary="int8-static after a finetuning that rounds numbers as int8 does",
    calibrates=True,
    trains="must",
    source="quantisation-aware training (Jacob et al. 2018)",
    **_ON_FILES,
)
def int8_static(source: Path, out: Path, inputs: NDArray[Any], spec: Int8Static) -> None:
    if spec.layers != ALL or spec.bias_correction or spec.ranges != "min-max":
        _partly("int8-static", StaticUnits, source, out, inputs, spec)
        return
    quantize_static(source, out, [inputs], examples=spec.examples, reduce_range=spec.reduce_range)


@method(
    "int8-dynamic",
    spec=Int8Dynamic,
    summary="Weights in int8, activations quantised as they come (hybrid)",
    by_unit=DynamicUnits,
    trains="never",
    source="Hooker et al.",
    **_ON_FILES,
)
def int8_dynamic(source: Path, out: Path, inputs: NDArray[Any], spec: Int8Dynamic) -> None:
    if spec.layers != ALL or spec.bias_correction:
        _partly("int8-dynamic", DynamicUnits, source, out, inputs, spec)
        return
    quantize_dynamic(source, out)


# Weights at a few bits: rounded by output channel in a float file, counted as if packed.

SCALE_BYTES = 4  # of the scale of an output channel


@method(
    "weight-bits",
    spec=WeightBits,
    summary="Weights rounded to 2 to 8 bits by output channel (simulated: no speed)",
    source="whoever asks how few bits are enough",
    by_unit=RoundedUnits.of,
    simulated=True,
    acts_on="file",
    output="onnx",
    trains="never",
    seconds=4.0,
)
def round_weights(source: Path, out: Path, inputs: NDArray[Any], spec: WeightBits) -> None:
    """Round the weights of convolutions and products; biases and norms stay."""
    if spec.layers != ALL or spec.bias_correction:
        _partly("weight-bits", RoundedUnits.of, source, out, inputs, spec)
        return
    model = read_onnx(source)
    saved = round_tensors(model, _output_axes(model, source), spec.bits)
    facts = {"method": "weight-bits", "weight_bits": spec.bits, "saved_bytes": saved}
    note(model, model, facts)
    write_onnx(model, out)


def round_tensors(model: onnx.ModelProto, axes: Mapping[str, int], bits: int) -> int:
    """Round stored tensors by the axes of their outputs, in place; bytes that packing saves."""
    from onnx import numpy_helper

    saved = 0
    for tensor in model.graph.initializer:
        if tensor.name not in axes:
            continue
        values = np.asarray(numpy_helper.to_array(tensor))
        axis = axes[tensor.name]
        tensor.CopyFrom(numpy_helper.from_array(rounded(values, axis, bits), tensor.name))
        packed = math.ceil(values.size * bits / 8) + SCALE_BYTES * values.shape[axis]
        saved += values.nbytes - packed
    return saved


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


def _output_axes(model: onnx.ModelProto, path: str | Path) -> dict[str, int]:
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
