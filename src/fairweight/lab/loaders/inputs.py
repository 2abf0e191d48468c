"""Batches as models take them: floats (N, C, H, W), from floats as they are or scaled bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fairweight.errors import InputError
from fairweight.lab.batches import Scaling, model_input


def as_array(values: Any) -> NDArray[Any]:
    """A tensor (of any device) or anything like an array, as an array."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def as_floats(inputs: Any, scaling: Scaling | None, shown: str) -> Tensor:
    """Floats are taken as they are; bytes (N, H, W, C) are scaled as the model was trained.

    Parameters
    ----------
    shown
        How messages call the model.
    """
    tensor = inputs.detach() if isinstance(inputs, Tensor) else torch.from_numpy(_numbers(inputs))
    if tensor.dtype != torch.uint8:
        return tensor.to(torch.float32)
    if scaling is None:
        raise InputError(
            f"{shown} does not say how images are scaled, but was given bytes; give scaling= "
            "(mean and std per channel), or floats as it takes them."
        )
    if tensor.dim() != 4 or tensor.shape[-1] != len(scaling.mean):
        raise InputError(
            f"{shown} takes images with {len(scaling.mean)} channels, but the bytes have the "
            f"shape {tuple(tensor.shape)}; give (N, H, W, C)."
        )
    return model_input(tensor, scaling)


def _numbers(inputs: Any) -> NDArray[Any]:
    array = np.asarray(inputs)
    if array.dtype.kind not in "fiub":
        raise InputError(f"A batch holds {array.dtype} instead of numbers; give arrays of images.")
    # A memory map is read-only, which torch does not like.
    return np.ascontiguousarray(array) if array.flags.writeable else np.array(array)
