"""How alike two networks represent the same images, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isnan
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.batches import Scaling
from fairweight.lab.given_batches import INPUTS
from fairweight.lab.loaders.inputs import as_floats
from fairweight.lab.models.features import features
from fairweight.lab.similarity.cka import batch_slices
from fairweight.lab.similarity.compared import DEFINED, Compared
from fairweight.lab.similarity.layers import Names, Paths, compared_layers
from fairweight.lab.similarity.running import Running, running
from fairweight.lab.similarity.samples import as_samples
from fairweight.specs.similarity import Similarity

Progress: TypeAlias = Callable[[int], None]  # examples done so far
Scalings: TypeAlias = tuple[Scaling | None, Scaling | None]

BATCH = 256


def compare_models(
    a: nn.Module,
    b: nn.Module,
    batches: Iterable[Any],
    *,
    spec: Similarity | None = None,
    names: Names | None = None,
    scalings: Scalings = (None, None),
    progress: Progress | None = None,
) -> dict[str, float]:
    """Distances of two networks by feature; NaN where undefined (`compare_features` says why).

    Parameters
    ----------
    a, b
        Two networks; each runs once over the batches, in evaluation mode.
    batches
        Images as one array or tensor, or an iterable of batches: images, (images, labels), or
        dictionaries with `image`. Floats are taken as they are; bytes (N, H, W, C) are scaled.
    spec
        The measure; by default SVCCA as in Simon Says. Its `examples` is for models on disk: here
        all batches are used.
    names
        Features to compare, in place of the spec's: names or paths of modules in both networks,
        or a mapping from a name to a path, or to a path in each network.
    scalings
        How bytes are scaled for each network.
    """
    found = compare_features(
        a, b, batches, spec=spec, names=names, scalings=scalings, progress=progress
    )
    return {name: compared.distance for name, compared in found.items()}


def compare_features(
    a: nn.Module,
    b: nn.Module,
    batches: Iterable[Any],
    *,
    spec: Similarity | None = None,
    names: Names | None = None,
    scalings: Scalings = (None, None),
    progress: Progress | None = None,
    refuse: bool = True,
) -> dict[str, Compared]:
    """The same with samples, directions and reasons.

    Parameters
    ----------
    refuse
        Whether too few samples for a feature are an error; otherwise its distance is NaN with
        that reason.
    """
    spec = spec or Similarity()
    paths = compared_layers(a, b, spec.features if names is None else names)
    sums: dict[str, Running] = {name: running(spec) for name in paths}
    done = 0
    with _asked(a), _asked(b), torch.inference_mode():
        for number, batch in enumerate(_batches(batches)):
            inputs = _inputs(batch, number)
            found = [
                _features(network, inputs, [pair[side] for pair in paths.values()], scaling, side)
                for side, (network, scaling) in enumerate(zip((a, b), scalings, strict=True))
            ]
            _add(sums, paths, found, spec)
            done += len(inputs)
            if progress is not None:
                progress(done)
    if not done:
        raise InputError("There are no examples to compare: the batches are empty.")
    if refuse:
        for name, held in sums.items():
            if reason := held.refusal():
                raise InputError(f"Feature '{name}': {reason}.")
    return {name: held.compared() for name, held in sums.items()}


def similarity_row(found: Mapping[str, Compared], measure: str = "svcca") -> dict[str, Any]:
    """Columns of the variants table: `svcca.block1`, …, and `svcca_status`.

    Distances that are undefined are None; the status names them with their reasons, and is None
    where there is nothing to say.
    """
    row: dict[str, Any] = {
        f"{measure}.{name}": None if isnan(compared.distance) else compared.distance
        for name, compared in found.items()
    }
    told = [
        f"{name}: {compared.status}"
        for name, compared in found.items()
        if compared.status != DEFINED
    ]
    return {**row, f"{measure}_status": "; ".join(told) or None}


def _add(
    sums: Mapping[str, Running],
    paths: Paths,
    found: Sequence[Mapping[str, Tensor]],
    spec: Similarity,
) -> None:
    for name, pair in paths.items():
        x, y = (held[path] for held, path in zip(found, pair, strict=True))
        if spec.maps == "folded" and x.shape[2:] != y.shape[2:]:
            raise InputError(
                f"Feature '{name}' has maps of {tuple(x.shape[2:])} and {tuple(y.shape[2:])}, "
                "whose places do not correspond; use maps = 'per-location' or 'pooled'."
            )
        left, right = (as_samples(side, spec.maps, spec.size, name=name) for side in (x, y))
        if len(left) != len(right):
            raise InputError(
                f"Feature '{name}' is a map in one network and a vector in the other; use "
                "maps = 'pooled'."
            )
        sums[name].add(left, right)


def _features(
    network: nn.Module, inputs: Any, paths: Sequence[str], scaling: Scaling | None, side: int
) -> dict[str, Tensor]:
    shown = f"The {('first', 'second')[side]} network"
    images = as_floats(inputs, scaling, shown)
    try:
        return features(network, images, list(dict.fromkeys(paths)))
    except RuntimeError as error:
        said = (str(error).strip().splitlines() or ["no reason given"])[0][:300]
        raise InputError(
            f"{shown} cannot take a batch of shape {tuple(images.shape)} ({said}); compare "
            "networks of the same data, on images of the size and channels of theirs."
        ) from error


def _batches(given: Iterable[Any]) -> Iterator[Any]:
    if isinstance(given, Tensor | np.ndarray):
        for part in batch_slices(len(given), BATCH):
            yield given[part]
    else:
        yield from given


def _inputs(batch: Any, number: int) -> Any:
    if isinstance(batch, Mapping):
        name = next((name for name in INPUTS if name in batch), None)
        if name is None:
            raise InputError(
                f"Batch {number} has the keys {', '.join(repr(str(n)) for n in batch)}; it needs "
                "'image'."
            )
        return batch[name]
    return batch[0] if isinstance(batch, tuple | list) else batch


@contextmanager
def _asked(network: nn.Module) -> Iterator[None]:
    """Evaluation mode, and back."""
    training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(training)
