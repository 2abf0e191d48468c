"""The lab: models are built, trained, compressed and asked here; the only home of torch.

Names are loaded when they are first used, so `import fairweight.lab` does not load torch.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
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
    from fairweight.lab.variants import compress

__all__ = [
    "Card",
    "architectures",
    "build",
    "compress",
    "count_flops",
    "count_parameters",
    "features",
    "load",
    "measure",
    "predict",
    "remove_channels",
    "save",
    "spec_of",
    "to_onnx",
]

_HOMES = {
    "Card": "fairweight.lab.artifacts",
    "architectures": "fairweight.lab.models.registry",
    "build": "fairweight.lab.models.registry",
    "compress": "fairweight.lab.variants",
    "count_flops": "fairweight.lab.flops",
    "count_parameters": "fairweight.lab.flops",
    "features": "fairweight.lab.models.features",
    "load": "fairweight.lab.artifacts",
    "measure": "fairweight.lab.measurement",
    "predict": "fairweight.lab.prediction",
    "remove_channels": "fairweight.lab.compression.channels",
    "save": "fairweight.lab.artifacts",
    "spec_of": "fairweight.lab.compression.registry",
    "to_onnx": "fairweight.lab.onnx_models",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("fairweight"):
            raise
        raise InputError(
            f"fairweight.lab.{name} needs '{error.name}', which is not installed;"
            " install the lab with: pip install 'fairweight[lab]'."
        ) from error


def __dir__() -> list[str]:
    return sorted(__all__)


class _Lab(ModuleType):
    """Keeps public functions public where a module has the same name (`predict`, `compress`).

    Python binds a module to its package when it is first imported, which would replace the
    function, or not, depending on who imported what before. The module itself is reached with
    `from fairweight.lab.prediction import …`.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in _HOMES):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Lab
