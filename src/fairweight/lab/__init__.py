"""The lab: models are built, trained, compressed and run here; the only home of torch.

Names are loaded when they are first used, so `import fairweight.lab` does not load torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.lab.artifacts import Card, load, save
    from fairweight.lab.compression.channels import remove_channels
    from fairweight.lab.compression.registry import spec_of
    from fairweight.lab.flops import count_flops, count_parameters
    from fairweight.lab.measurement import measure
    from fairweight.lab.models.features import features
    from fairweight.lab.models.registry import architectures, build
    from fairweight.lab.onnx_models import to_onnx
    from fairweight.lab.prediction import predict
    from fairweight.lab.representations.blocks import similarity
    from fairweight.lab.training import distil, train
    from fairweight.lab.unit_predictions import sensitivity
    from fairweight.lab.variants import compress

__all__ = [
    "Card",
    "architectures",
    "build",
    "compress",
    "count_flops",
    "count_parameters",
    "distil",
    "features",
    "load",
    "measure",
    "predict",
    "remove_channels",
    "save",
    "sensitivity",
    "similarity",
    "spec_of",
    "to_onnx",
    "train",
]

# No module of this package has the name of a function: Python would put it in the function's place.
_HOMES = {
    "Card": "artifacts",
    "architectures": "models.registry",
    "build": "models.registry",
    "compress": "variants",
    "count_flops": "flops",
    "count_parameters": "flops",
    "distil": "training",
    "features": "models.features",
    "load": "artifacts",
    "measure": "measurement",
    "predict": "prediction",
    "remove_channels": "compression.channels",
    "save": "artifacts",
    "sensitivity": "unit_predictions",
    "similarity": "representations.blocks",
    "spec_of": "compression.registry",
    "to_onnx": "onnx_models",
    "train": "training",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("fairweight"):
            raise
        raise InputError(
            f"fairweight.lab.{name} needs '{error.name}', which is not installed;"
            " install the lab with: pip install 'fairweight[lab]'."
        ) from error


def __dir__() -> list[str]:
    return sorted(__all__)
