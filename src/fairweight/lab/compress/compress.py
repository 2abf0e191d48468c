"""A compressed copy of a model in memory: `fairweight.lab.compress`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.compress.int8_model import Int8Model
from fairweight.lab.compress.prune import Spec, prune
from fairweight.lab.compress.quantize import quantize_dynamic, quantize_static
from fairweight.lab.compress.registry import spec_from
from fairweight.lab.export import to_onnx
from fairweight.lab.loaders.inputs import as_array
from fairweight.specs.quantization import Int8Dynamic, Int8Static, Quantization

Given: TypeAlias = Spec | Quantization | Mapping[str, Any]


def compress(
    model: nn.Module, spec: Given, data: Iterable[Any] | None = None
) -> nn.Module | Int8Model:
    """A compressed copy of any module; the model itself stays as it is.

    Parameters
    ----------
    model
        A torch module from images (N, C, H, W) to logits.
    spec
        A spec of `fairweight.specs` (`GlobalMagnitude(sparsity=0.9)`, `Int8Static()`), or a
        dictionary with `method` and its fields. Methods prune at once: those with a schedule
        prune while a model trains, which `fairweight compress` does.
    data
        Batches of inputs as the model takes them, or (inputs, labels): int8 needs them, for the
        shape and the ranges of activations (training examples).

    Returns
    -------
    A module with masks (`fairweight.lab.compress.mask.bake` makes the zeros permanent), or of
    int8 a function of batches that runs in ONNX Runtime and can be saved as a file.

    Examples
    --------
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> small = compress(net, {"method": "global-magnitude", "sparsity": 0.5})
    >>> int((small[1].weight == 0).sum())
    4
    """
    wanted = spec_from(spec) if isinstance(spec, Mapping) else spec
    if not isinstance(wanted, Int8Static | Int8Dynamic):
        return prune(model, wanted)
    if data is None:
        raise InputError(
            "int8 needs data: batches of inputs as the model takes them, such as the first 100 "
            "training examples."
        )
    needed = wanted.examples if isinstance(wanted, Int8Static) else 1
    inputs = _first(data, needed)
    with tempfile.TemporaryDirectory(prefix="fairweight-") as room:
        exported = to_onnx(model, inputs, Path(room) / "float.onnx")
        out = Path(room) / "int8.onnx"
        if isinstance(wanted, Int8Static):
            quantize_static(
                exported,
                out,
                [inputs.numpy()],
                examples=needed,
                reduce_range=wanted.reduce_range,
            )
        else:
            quantize_dynamic(exported, out)
        return Int8Model(out.read_bytes())


def _first(data: Iterable[Any], examples: int) -> Tensor:
    """The first inputs of an iterable of batches, as one tensor of floats."""
    batches = [data] if isinstance(data, Tensor | np.ndarray) else data
    taken: list[Tensor] = []
    for given in batches:
        array = as_array(given[0] if isinstance(given, tuple | list) else given)
        if array.ndim != 4 or array.dtype.kind != "f":
            raise InputError(
                f"A batch of data is {array.dtype} of shape {array.shape}; give floats "
                "(N, C, H, W), scaled as the model takes them."
            )
        taken.append(torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)))
        if sum(len(batch) for batch in taken) >= examples:
            break
    if not taken:
        raise InputError("data has no batches; give some, such as the first 100 training examples.")
    return torch.cat(taken)[:examples]
