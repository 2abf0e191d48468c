"""Any model as it was given: a module, a function, or a path, by its kind."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray
from torch import nn

from fairweight.errors import InputError
from fairweight.lab.artifacts import CARD
from fairweight.lab.batches import Scaling
from fairweight.lab.loaders.artefact import open_artefact
from fairweight.lab.loaders.hugging_face import CONFIG, open_hugging_face
from fairweight.lab.loaders.inputs import as_array
from fairweight.lab.loaders.loaded import Loaded
from fairweight.lab.loaders.torch_module import open_module, tensor_of

Model: TypeAlias = nn.Module | Callable[[Any], Any] | str | os.PathLike[str]

PICKLES = frozenset({".pt", ".pth", ".ckpt", ".bin", ".pkl", ".pickle", ".joblib"})
KINDS = (
    "a folder that `train` or `compress` wrote, its weights.safetensors, .onnx, .pt2, .tflite, or "
    "a Hugging Face folder"
)


def open_model(
    given: Model, name: str, *, scaling: Scaling | None = None, device: str = "cpu"
) -> Loaded:
    """A model that can be asked.

    Parameters
    ----------
    name
        How messages call it.
    scaling
        How bytes of images are scaled for models that do not say it themselves. Functions get
        batches as they come.
    """
    shown = f"The model '{name}'"
    if isinstance(given, nn.Module):
        return open_module(given, shown, scaling=scaling, device=device)
    if isinstance(given, str | os.PathLike):
        return _open_path(Path(given), shown, scaling, device)
    if callable(given):
        return Loaded(run=_function(given, shown))
    raise InputError(
        f"{shown} is given as {type(given).__name__}; give a module, a function of a batch, or a "
        f"path: {KINDS}."
    )


def _function(given: Callable[[Any], Any], shown: str) -> Callable[[Any], NDArray[Any]]:
    import torch

    def run(inputs: Any) -> NDArray[Any]:
        with torch.inference_mode():
            output = given(inputs)
        if isinstance(output, dict) or hasattr(output, "logits"):
            output = tensor_of(output, shown)
        return as_array(output)

    return run


def _open_path(path: Path, shown: str, scaling: Scaling | None, device: str) -> Loaded:
    if not path.exists():
        raise InputError(f"{shown}: there is no '{path}'; check the path.")
    if path.is_dir():
        return _open_folder(path, shown, scaling, device)
    kind = path.suffix.lower()
    if kind == ".safetensors":
        if not (path.parent / CARD).is_file():
            raise InputError(
                f"{shown}: '{path}' has weights only, and no {CARD} beside it says of which "
                "network; give a folder that `train` or `compress` wrote."
            )
        return open_artefact(path.parent, shown, scaling=scaling, device=device)
    if kind == ".onnx":
        from fairweight.lab.loaders.onnx_model import open_onnx

        return open_onnx(path, shown, scaling=scaling)
    if kind == ".pt2":
        from fairweight.lab.loaders.exported_program import open_exported

        return open_exported(path, shown, scaling=scaling, device=device)
    if kind == ".tflite":
        from fairweight.lab.loaders.tflite_file import open_tflite

        return open_tflite(path, shown, scaling=scaling)
    if kind in PICKLES:
        raise InputError(
            f"{shown}: '{path}' may be a pickle, which can run any code when it is opened; save "
            "the weights with fairweight.lab.artifacts.save, or export the model to .onnx."
        )
    raise InputError(f"{shown}: '{path}' is of an unknown kind; give {KINDS}.")


def _open_folder(path: Path, shown: str, scaling: Scaling | None, device: str) -> Loaded:
    if (path / CARD).is_file():
        return open_artefact(path, shown, scaling=scaling, device=device)
    if (path / CONFIG).is_file():
        return open_hugging_face(path, shown, scaling=scaling, device=device)
    raise InputError(f"{shown}: the folder '{path}' has neither {CARD} nor {CONFIG}; give {KINDS}.")
