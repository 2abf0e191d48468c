"""`.tflite` files, run by LiteRT (the extra `tflite`)."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairweight.errors import InputError
from fairweight.lab.batches import Scaling
from fairweight.lab.loaders.digest import digest_of_files
from fairweight.lab.loaders.inputs import as_array, as_floats
from fairweight.lab.loaders.loaded import Loaded
from fairweight.lab.onnx_file import one_input


def open_tflite(file: Path, shown: str, *, scaling: Scaling | None) -> Loaded:
    """A LiteRT interpreter; images (N, H, W, C) are quantised on the way in where it asks for it.

    A model of bytes is given bytes as they are; integer outputs are turned back into numbers.
    """
    interpreter = _interpreter(file)
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    one_input([str(held["name"]) for held in inputs], shown)
    if len(outputs) != 1:
        raise InputError(f"{shown} has {len(outputs)} outputs; a model with one is needed.")
    wanted, given = inputs[0], outputs[0]

    def run(batch: Any) -> NDArray[Any]:
        images = _images(batch, wanted, scaling, shown)
        sizes = tuple(int(size) for size in wanted["shape"][1:])
        if sizes != images.shape[1:]:
            raise InputError(
                f"{shown} takes images of shape {sizes}, but they have the "
                f"shape {images.shape[1:]}; give (N, H, W, C) of its size."
            )
        interpreter.resize_tensor_input(wanted["index"], images.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(wanted["index"], images)
        interpreter.invoke()
        return _dequantised(interpreter.get_tensor(given["index"]), given)

    return Loaded(run=run, identity=f"{digest_of_files([file])}{scaling}")


def _interpreter(file: Path) -> Any:
    try:
        litert = importlib.import_module("ai_edge_litert.interpreter")
    except ModuleNotFoundError:
        raise InputError(
            f"'{file}' needs LiteRT, which is not installed: pip install 'fairweight[tflite]'."
        ) from None
    try:
        return litert.Interpreter(model_path=str(file), num_threads=torch.get_num_threads())
    except (ValueError, RuntimeError, OSError) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"'{file}' cannot be read as a TFLite model ({said}); convert it again."
        ) from None


def _images(
    batch: Any, wanted: dict[str, Any], scaling: Scaling | None, shown: str
) -> NDArray[Any]:
    """A batch in the type that the model takes, channels last."""
    kind = np.dtype(wanted["dtype"])
    array = as_array(batch)
    if array.dtype == np.uint8 and kind == np.uint8:
        return np.ascontiguousarray(array)
    floats = as_floats(batch, scaling, shown).cpu().numpy()
    # Floats come as torch has them, channels first, unless they fit as they are.
    if floats.ndim == 4 and floats.shape[1:] != tuple(wanted["shape"][1:]):
        floats = floats.transpose(0, 2, 3, 1)
    if kind.kind == "f":
        return np.ascontiguousarray(floats, dtype=kind)
    scale, zero = wanted["quantization"]
    limits = np.iinfo(kind)
    whole = np.clip(np.rint(floats / scale) + zero, limits.min, limits.max)
    return np.asarray(whole, dtype=kind)


def _dequantised(values: NDArray[Any], given: dict[str, Any]) -> NDArray[Any]:
    if np.dtype(given["dtype"]).kind == "f":
        return np.array(values)
    scale, zero = given["quantization"]
    return np.asarray((values.astype(np.float32) - zero) * scale, dtype=np.float32)
