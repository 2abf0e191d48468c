"""Model files of any architecture, compressed: ONNX files, and exported programs (.pt2) as ONNX."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fairweight.data.dataset import Images
from fairweight.errors import InputError
from fairweight.lab.artifacts import Card
from fairweight.lab.batches import INPUTS, Scaling
from fairweight.lab.compression.calibration import calibration_rows
from fairweight.lab.compression.registry import Method, methods
from fairweight.lab.loaders import PICKLES, OnnxInput, open_program, session_of
from fairweight.lab.onnx_models import (
    QUANTISED,
    TOLERANCE,
    card_of,
    program_to_onnx,
    put_card,
    read_onnx,
    write_onnx,
)
from fairweight.lab.partition import prepare
from fairweight.specs.data import Data
from fairweight.specs.toml import as_spec

if TYPE_CHECKING:
    import onnx

SUFFIXES = (".onnx", ".pt2")
STORED_AS_FLOATS = (
    "The rounded weights are stored as floats: the file is neither smaller nor faster."
)
COMPARED = 100  # examples on which source and copy are compared, where the method needs fewer
OPSET = 17  # files of an older one are converted: int8 by channel needs 13


@dataclass(frozen=True)
class CompressedFile:
    """A file that was compressed, and what is known of it.

    path            the new ONNX file
    card            what it says of itself; None where the source says nothing
    source_bytes    size of the float model as an ONNX file, weights included
    size_bytes      size of the new file
    examples        how many inputs both were run on; 0 where none were given
    same_class      on how many of them both have the same highest output; None where outputs are
                    not one row of classes per example
    note            what to know of its size or speed
    """

    path: Path
    card: Card | None
    source_bytes: int
    size_bytes: int
    examples: int
    same_class: int | None
    note: str | None = None


def is_model_file(path: str | Path) -> bool:
    """Whether this is a file that is compressed as it is, not a folder or a module.

    An error names the way for files that are not: state dicts, weights alone, TFLite.
    """
    place = Path(path)
    kind = place.suffix.lower()
    if kind in SUFFIXES:
        return True
    if place.is_dir() or not place.is_file():
        return False
    if kind in PICKLES or kind == ".safetensors":
        holds = "weights without their network" if kind == ".safetensors" else "a pickle"
        raise InputError(
            f"'{path}' holds {holds}, so that it cannot be run alone. Build the network in Python, "
            "load the weights into it (torch.load(..., weights_only=True) reads a state dict), "
            'and call fairweight.lab.compress(net, "int8-static", data); or export it: '
            "fairweight.lab.to_onnx(net, example, 'net.onnx')."
        )
    raise InputError(
        f"'{path}' cannot be compressed; give a folder that `train` or `compress` wrote, a .onnx "
        "file or a .pt2 file."
    )


def compress_file(
    source: str | Path,
    method: Method,
    spec: Any,
    data: Any = None,
    *,
    out: str | Path,
    scaling: Scaling | None = None,
    root: str | Path | None = None,
    variant: str | None = None,
) -> CompressedFile:
    """An ONNX or .pt2 file of any architecture, compressed as an ONNX file.

    Parameters
    ----------
    data
        Inputs: an array (N, ...) or an iterable of batches as the model takes them, images of a
        data set, or a data set's name or spec (its training part). By default the training part of
        the data that the file's card names. Methods that see no data do without.
    scaling
        Per channel, how bytes are scaled for a file that does not say it.
    """
    shown = f"'{source}'"
    if method.acts_on != "file" or method.trains == "must":
        usable = ", ".join(
            one.name for one in methods() if one.acts_on == "file" and one.trains != "must"
        )
        raise InputError(
            f"{method.name} needs the modules of a network, but {shown} is an exported file; use "
            f"one of: {usable}. Or compress the module in Python: fairweight.lab.compress."
        )
    if Path(out).suffix != ".onnx":
        raise InputError(f"{method.name} writes ONNX files; '{out}' must end in .onnx.")
    with tempfile.TemporaryDirectory(prefix="fairweight-") as held:
        folder = Path(held)
        if Path(source).suffix.lower() == ".pt2":
            program = open_program(Path(source), "The model")
            given = write_onnx(program_to_onnx(program, shown), folder / "exported.onnx")
        else:
            given = Path(source)
        model = read_onnx(given)
        if quantised := sorted({n.op_type for n in model.graph.node} & QUANTISED):
            raise InputError(
                f"{shown} is quantised already (it has {quantised[0]}); give the float model."
            )
        card = card_of(model, shown)
        wanted = OnnxInput.of(session_of(given, threads=1), shown)
        if wanted.type != np.float32:
            raise InputError(
                f"{shown} takes {np.dtype(wanted.type).name}; give the model exported in float32."
            )
        named = data is None and card is not None and bool(card.data)
        if getattr(spec, "calibration", "first") != "first" and (data is not None or named):
            # The training examples that the spec draws, by their labels and groups.
            drawn: Any = card.data if data is None and card is not None else data
            if isinstance(drawn, str | Mapping | Data):
                drawn = prepare(as_spec(Data, drawn, "The data", "name"), root).train
            if not isinstance(drawn, Images):
                raise InputError(
                    f"calibration = '{spec.calibration}' draws from a data set; name one "
                    "(--dataset NAME --data DIR), or leave it out and give the inputs themselves."
                )
            data = drawn.select(calibration_rows(drawn, spec))
        inputs = _inputs(
            data, card, max(spec.calibration_examples, COMPARED), wanted, scaling, root, shown
        )
        if inputs is None and method.calibrates:
            raise InputError(
                f"{method.name} needs training examples, for the ranges of activations: name a "
                "data set (--dataset NAME --data DIR), or give an array of inputs (--calibration "
                "FILE.npy; in Python data=)."
            )
        plain = write_onnx(_folded(model, given, folder), folder / "float.onnx")
        before = _outputs(given, wanted, inputs)
        folded = _outputs(plain, wanted, inputs)
        if before is not None and folded is not None:
            apart = float(np.abs(folded - before).max(initial=0.0))
            if not apart <= TOLERANCE * max(1.0, float(np.abs(before).max(initial=0.0))):
                raise InputError(
                    f"{shown} gives other outputs (by up to {apart:.3g}) once its constants are "
                    "folded; export it again with a newer opset."
                )
        target = folder / "compressed.onnx"
        method.function(plain, target, np.empty(0) if inputs is None else inputs, spec)
        after = _outputs(target, wanted, inputs)
        made = read_onnx(target)
        own = card_of(made, shown)
        if variant is not None:
            if own is None:
                raise InputError(
                    f"{shown} has no card, so its copy cannot hold the name of a variant; "
                    f" name it where it is used: fairweight predict {variant}={out}."
                )
            own = replace(own, variant=variant)
            put_card(made, own)
        same = None
        if before is not None and after is not None and before.ndim == 2 and before.shape[1] > 1:
            same = int((before.argmax(axis=1) == after.argmax(axis=1)).sum())
        size = plain.stat().st_size
        path = write_onnx(made, out)
    examples = 0 if inputs is None else len(inputs)
    note = None if QUANTISED & {node.op_type for node in made.graph.node} else STORED_AS_FLOATS
    return CompressedFile(path, own, size, path.stat().st_size, examples, same, note)


def _inputs(
    data: Any,
    card: Card | None,
    examples: int,
    wanted: OnnxInput,
    scaling: Scaling | None,
    root: str | Path | None,
    shown: str,
) -> NDArray[np.float32] | None:
    """The first inputs as the file takes them; of a data set, spread over all of it."""
    if data is None and card is not None and card.data:
        data = card.data
    if data is None:
        return None
    if isinstance(data, str | Mapping | Data):
        data = prepare(as_spec(Data, data, "The data", "name"), root).train
    if isinstance(data, Images):
        # Folders come class by class: the first hundred may be of one class.
        rows = np.unique(np.linspace(0, len(data) - 1, min(examples, len(data))).astype(int))
        data = np.asarray(data.images[rows])
    own = None if card is None else card.preprocessing
    batches: Iterable[Any] = [data] if isinstance(data, Tensor | np.ndarray) else data
    taken: list[NDArray[np.float32]] = []
    for batch in batches:
        inputs = batch
        if isinstance(batch, Mapping):
            inputs = next((batch[name] for name in INPUTS if name in batch), None)
        elif isinstance(batch, tuple | list):
            inputs = batch[0]
        taken.append(wanted.array(inputs[: examples - sum(map(len, taken))], own or scaling, shown))
        if sum(map(len, taken)) >= examples:
            break
    if not sum(map(len, taken)):
        raise InputError("The calibration data hold no examples; give some, such as 100.")
    inputs = np.concatenate(taken)
    if not np.isfinite(inputs).all():
        raise InputError("A calibration example has values that are not finite; remove it.")
    return inputs


def _folded(model: onnx.ModelProto, path: Path, folder: Path) -> onnx.ModelProto:
    """The same model with constants folded and batch norms merged, as quantisation wants it."""
    import onnx
    import onnxruntime

    opset = next((held.version for held in model.opset_import if held.domain in ("", "ai.onnx")), 0)
    if opset < OPSET:
        try:
            model = onnx.version_converter.convert_version(model, OPSET)
        except Exception as error:  # the converter has no class of errors of its own
            raise InputError(
                f"'{path}' is of ONNX opset {opset} and cannot be converted to {OPSET} "
                f"({' '.join(str(error).split())[:200]}); export it again with a newer opset."
            ) from None
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folder / "folded.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(
        str(write_onnx(model, folder / "source.onnx")), options, providers=["CPUExecutionProvider"]
    )
    folded = onnx.load(str(folder / "folded.onnx"))
    del folded.metadata_props[:]
    folded.metadata_props.extend(model.metadata_props)
    used = {node.domain for node in folded.graph.node} | {""}
    kept = [held for held in folded.opset_import if held.domain in used]
    del folded.opset_import[:]
    folded.opset_import.extend(kept)
    return folded


def _outputs(
    path: Path, wanted: OnnxInput, inputs: NDArray[np.float32] | None
) -> NDArray[Any] | None:
    """What a file gives for the inputs; None without inputs. It is opened in any case."""
    session = session_of(path, threads=torch.get_num_threads())
    if inputs is None:
        return None
    run: Callable[[NDArray[Any]], NDArray[Any]] = wanted.runner(session, f"'{path.name}'")
    return run(inputs)
