"""How alike two networks represent the same images, block by block."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from fairweight.base.streams import generator
from fairweight.data.dataset import Images
from fairweight.errors import InputError
from fairweight.lab.artifacts import load
from fairweight.lab.batches import INPUTS, Scaling, as_floats
from fairweight.lab.models.features import feature_paths, features
from fairweight.lab.partition import prepare
from fairweight.lab.prediction import ModelFile, data_of
from fairweight.lab.representations.cka import RunningHsic, batch_slices, cka_of
from fairweight.lab.representations.moments import DEFINED, BlockDistance, RunningMoments
from fairweight.lab.representations.svcca import SvccaRule, rule_of, svcca_of, too_few
from fairweight.specs.data import Data
from fairweight.specs.similarity import Maps, Similarity
from fairweight.specs.toml import as_spec

# Which modules of two networks are compared, and under which names.

# Names (or paths) of features in both networks; or a name to a path, or to a path in each.
Names: TypeAlias = Iterable[str] | Mapping[str, str | tuple[str, str]]
Paths: TypeAlias = dict[str, tuple[str, str]]

# The ends of blocks and what comes before the softmax, as in Simon Says.
COMPARED = re.compile(r"block\d+|logits")


def compared_layers(a: nn.Module, b: nn.Module, names: Names | None) -> Paths:
    """The path of the module behind each name, in both networks.

    Parameters
    ----------
    names
        By default the blocks and the logits, which both networks must have.
    """
    if names is None:
        names, theirs = (
            tuple(name for name in feature_paths(network) if COMPARED.fullmatch(name))
            for network in (a, b)
        )
        if names != theirs:
            raise InputError(
                f"The networks have different blocks ({', '.join(names)} and {', '.join(theirs)}), "
                "so it is not clear which belong together; name features that both have, such as "
                "'logits', or map names to a path in each: {'last': ('layer3', 'layer4')}."
            )
    elif isinstance(names, str):
        raise InputError(f"names must be a list of names, such as ['{names}'], not '{names}'.")
    if not isinstance(names, Mapping):
        names = {name: (name, name) for name in names}
    if not names:
        raise InputError("names is empty; name features, or leave it out.")
    found: Paths = {}
    for name, given in names.items():
        first, second = (given, given) if isinstance(given, str) else given
        found[name] = (feature_paths(a, [first])[first], feature_paths(b, [second])[second])
    return found


# Features of a network as samples: (locations, samples, features).


def as_samples(feature: Tensor, maps: Maps, size: int = 16, *, name: str = "x") -> Tensor:
    """A batch of features, (N, features) or maps (N, C, H, W), as (locations, samples, features).

    Parameters
    ----------
    maps
        What becomes of maps: `per-location` gives size × size locations of N samples, `pooled`
        one of N (means over space), `folded` one of N × H × W, `flattened` one of N samples with
        C × H × W features.
    name
        How messages call the feature.
    """
    if feature.dim() == 2:
        return feature[None]
    if feature.dim() != 4:
        raise InputError(
            f"Feature '{name}' has the shape {tuple(feature.shape)}; only vectors (N, features) "
            "and maps (N, C, H, W) can be compared: name a module that returns one of them."
        )
    if maps == "pooled":
        return feature.mean((2, 3))[None]
    if maps == "flattened":
        return feature.flatten(1)[None]
    if maps == "folded":
        return feature.permute(0, 2, 3, 1).reshape(1, -1, feature.shape[1])
    resized = resize(feature, size)
    if not resized.is_contiguous():  # channels last
        return resized.flatten(2).permute(2, 0, 1)
    # Two axes are transposed in blocks, three are not: a third of the time.
    places = resized.view(-1, size * size).t().contiguous()
    return places.view(size * size, len(feature), -1)


def resize(feature: Tensor, size: int) -> Tensor:
    """Maps as size × size: larger sides are pooled by averages, smaller ones bicubic."""
    height, width = feature.shape[2:]
    if height > size or width > size:
        feature = adaptive_avg_pool2d(feature, (min(height, size), min(width, size)))
    if tuple(feature.shape[2:]) == (size, size):
        return feature
    return interpolate(feature, size=(size, size), mode="bicubic", align_corners=False)


class RunningProducts:
    """SVCCA by a rule, or CKA where there is none, from sums of products of batches.

    Takes samples (locations, samples, features) of two sides, as `RunningHsic` does.
    """

    def __init__(self, rule: SvccaRule | None) -> None:
        self._rule = rule
        self._sums = RunningMoments()

    def add(self, x: Tensor, y: Tensor) -> None:
        self._sums.add(x, y)

    def refusal(self) -> str | None:
        """Why the samples that came are too few, if so."""
        if self._rule is None:
            return None
        return too_few(self._sums.samples, self._sums.features, self._rule.ridge)

    def compared(self) -> BlockDistance:
        moments = self._sums.moments()
        return cka_of(moments) if self._rule is None else svcca_of(moments, self._rule)


Running: TypeAlias = RunningProducts | RunningHsic


def running(spec: Similarity) -> Running:
    """What a spec asks for, with nothing added yet."""
    if spec.measure == "cka" and spec.minibatch:
        return RunningHsic()
    return RunningProducts(rule_of(spec) if spec.measure == "svcca" else None)


Progress: TypeAlias = Callable[[int], None]  # examples done so far
Scalings: TypeAlias = tuple[Scaling | None, Scaling | None]

BATCH = 256


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
) -> dict[str, BlockDistance]:
    """How far apart features of two networks are; NaN with a reason where that is undefined.

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
    refuse
        Whether too few samples for a feature are an error; otherwise its distance is NaN with
        that reason.
    """
    spec = spec or Similarity()
    paths = compared_layers(a, b, spec.features if names is None else names)
    sums: dict[str, Running] = {name: running(spec) for name in paths}
    done = 0
    with _asked(a), _asked(b), torch.inference_mode():
        if isinstance(batches, Tensor | np.ndarray):
            whole = batches
            batches = (whole[part] for part in batch_slices(len(whole), BATCH))
        for number, batch in enumerate(batches):
            inputs = batch[0] if isinstance(batch, tuple | list) else batch
            if isinstance(batch, Mapping):
                inputs = next((batch[name] for name in INPUTS if name in batch), None)
                if inputs is None:
                    keys = ", ".join(repr(str(name)) for name in batch)
                    raise InputError(f"Batch {number} has the keys {keys}; it needs 'image'.")
            found = [
                _features(network, inputs, [pair[side] for pair in paths.values()], scaling, side)
                for side, (network, scaling) in enumerate(zip((a, b), scalings, strict=True))
            ]
            for name, pair in paths.items():
                x, y = (held[path] for held, path in zip(found, pair, strict=True))
                if spec.maps == "folded" and x.shape[2:] != y.shape[2:]:
                    raise InputError(
                        f"Feature '{name}' has maps of {tuple(x.shape[2:])} and "
                        f"{tuple(y.shape[2:])}, whose places do not correspond; use maps = "
                        "'per-location' or 'pooled'."
                    )
                left, right = (as_samples(side, spec.maps, spec.size, name=name) for side in (x, y))
                if len(left) != len(right):
                    raise InputError(
                        f"Feature '{name}' is a map in one network and a vector in the other; use "
                        "maps = 'pooled'."
                    )
                sums[name].add(left, right)
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


def similarity_row(found: Mapping[str, BlockDistance], measure: str = "svcca") -> dict[str, Any]:
    """Columns of the variants table: `svcca.block1`, …, and `svcca_status`.

    Distances that are undefined are None; the status names them with their reasons, and is None
    where there is nothing to say.
    """
    row: dict[str, Any] = {
        f"{measure}.{name}": None if isnan(compared.distance) else compared.distance
        for name, compared in found.items()
    }
    reasons = [
        f"{name}: {compared.status}"
        for name, compared in found.items()
        if compared.status != DEFINED
    ]
    return {**row, f"{measure}_status": "; ".join(reasons) or None}


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


@contextmanager
def _asked(network: nn.Module) -> Iterator[None]:
    """Evaluation mode, and back."""
    training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(training)


# Compare models on disk on a part of their data, or modules on batches.

SEED = 0  # of the examples drawn: every pair of models is compared on the same


def similarity(
    a: nn.Module | str | Path,
    b: nn.Module | str | Path,
    data: Images | Iterable[Any] | Data | Mapping[str, Any] | str | None = None,
    *,
    spec: Similarity | Mapping[str, Any] | str | None = None,
    part: str = "test",
    root: str | Path | None = None,
    batch_size: int = BATCH,
    progress: Callable[[int, int], None] | None = None,
    refuse: bool = True,
) -> dict[str, BlockDistance]:
    """How far apart the representations of two models are, block by block.

    0 means alike up to a linear map (CKA: up to a rotation), 1 means unrelated.

    Parameters
    ----------
    a, b
        Folders that `train` or `compress` wrote, in any order; or two torch modules.
    data
        What folders are asked about: the images of a data set (of which at most `spec.examples`
        are drawn by a fixed seed), a data set by name or spec; by default the data that their
        cards name. Modules need batches of inputs as they take them.
    spec
        The measure (`svcca`, `cka`), or the fields of `Similarity`.
    part, root
        Which part of the data (train, validation, test), and the folder with data sets.
    batch_size
        Examples of a data set at a time.
    progress
        Of folders: called with the numbers of examples done and of all.
    refuse
        Whether too few samples for a feature are an error, or NaN with that reason.
    """
    asked = as_spec(Similarity, spec or {}, "The comparison", "measure")
    if isinstance(a, nn.Module) or isinstance(b, nn.Module):
        if not (isinstance(a, nn.Module) and isinstance(b, nn.Module)):
            raise InputError("A module is compared with a module, and a folder with a folder.")
        if data is None or isinstance(data, Data | Mapping | str):
            raise InputError("Two modules need batches of inputs as they take them: give data.")
        return compare_features(a, b, cast("Iterable[Any]", data), spec=asked, refuse=refuse)
    (first, first_card), (second, second_card) = load(a), load(b)
    for path, card in ((a, first_card), (b, second_card)):
        if card.preprocessing is None:
            raise InputError(
                f"The card of '{path}' does not say how pixels are scaled; give a model that "
                "`train` or `compress` wrote."
            )
    if not isinstance(data, Images):
        pair = ((a, first_card), (b, second_card))
        members = [ModelFile(card.variant, card.seed, Path(path), card) for path, card in pair]
        if data is None:
            data = data_of(members)
        if not isinstance(data, Data | Mapping | str):
            raise InputError(
                "Folders are compared on the images of a data set; give those, or its name. "
                "Batches are for modules."
            )
        data = prepare(as_spec(Data, data, "The data", "name"), root).part(part)
    rows = drawn(len(data), asked.examples)
    images = (data.images[rows[held]] for held in batch_slices(len(rows), batch_size))
    return compare_features(
        first,
        second,
        images,
        spec=asked,
        scalings=(first_card.preprocessing, second_card.preprocessing),
        progress=lambda done: progress and progress(done, len(rows)),
        refuse=refuse,
    )


def drawn(n: int, most: int | None) -> NDArray[np.int64]:
    """Positions of at most so many of n examples, in their order, the same every time.

    Data sets are often sorted by class, so the first ones would not do.
    """
    if most is None or n <= most:
        return np.arange(n)
    return np.sort(generator(SEED, "similarity").choice(n, most, replace=False))
